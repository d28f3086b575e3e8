/*
 * Dot output: every statement is one that graphviz knows, quotes are closed, names
 * cannot break out, every edge joins things that were declared. Where there is a
 * `dot`, it draws them.
 */
#include "trace/graph_test_support.h"

#include <ctype.h>
#include <stdio.h>

static char *dot_of(const char *name)
{
    ls__graph *g = made(name);
    char *dot = ls__graph_dot(g);
    assert_non_null(dot);
    ls__graph_free(g);
    return dot;
}

/* Past a quoted text, which must end on its line. */
static const char *quoted(const char *at)
{
    assert_int_equal(*at, '"');
    for (at++; *at != '"'; at++) {
        assert_true((unsigned char)*at >= ' ');
        if (*at == '\\') {
            at++;
            assert_non_null(memchr("n\"\\", *at, 3));
        }
    }
    return at + 1;
}

static const char *word(const char *at)
{
    assert_true(isalpha((unsigned char)*at));
    while (isalnum((unsigned char)*at))
        at++;
    return at;
}

/* Past "[name=value, name=value]". */
static const char *options(const char *at)
{
    assert_int_equal(*at, '[');
    do {
        at++;
        at += *at == ' ';
        at = word(at);
        assert_int_equal(*at++, '=');
        at = *at == '"' ? quoted(at) : word(at);
    } while (*at == ',');
    assert_int_equal(*at, ']');
    return at + 1;
}

static bool declared(const char *dot, const char *name, size_t length)
{
    char line[32];
    snprintf(line, sizeof line, "\n  %.*s [label", (int)length, name);
    return strstr(dot, line) != NULL;
}

/* A reader of the part of the language we write. */
static int edges_of(const char *dot)
{
    int edges = 0;
    const char *at = dot;
    assert_int_equal(strncmp(at, "digraph ", 8), 0);
    at = quoted(at + 8);
    assert_int_equal(strncmp(at, " {\n", 3), 0);
    at += 3;
    while (*at != '}') {
        assert_int_equal(strncmp(at, "  ", 2), 0);
        const char *from = at + 2;
        at = word(from);
        if (strncmp(at, " -> ", 4) == 0) {
            const char *to = at + 4;
            assert_true(declared(dot, from, (size_t)(at - from)));
            at = word(to);
            assert_true(declared(dot, to, (size_t)(at - to)));
            edges++;
        }
        assert_int_equal(*at, ' ');
        at = options(at + 1);
        assert_int_equal(strncmp(at, ";\n", 2), 0);
        at += 2;
    }
    assert_string_equal(at, "}\n");
    return edges;
}

static int wanted_edges(const char *name)
{
    ls__graph *g = made(name);
    int edges = g->n_outputs;
    for (int i = 0; i < g->n_nodes; i++)
        edges += g->nodes[i]->n_inputs + g->nodes[i]->n_cells;
    ls__graph_free(g);
    return edges;
}

static void test_well_formed(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        char *dot = dot_of(samples[i].name);
        assert_int_equal(edges_of(dot), wanted_edges(samples[i].name));
        free(dot);
    }
}

static void test_what_it_shows(void **state)
{
    (void)state;
    char *dot = dot_of("step");
    assert_non_null(strstr(dot, "n1 [label=\"conv2d\\nstride 1,1 dilation 1,1 padding 0\\n#2\", "
                                "shape=box];\n"));
    assert_non_null(strstr(dot, "n0 -> n1 [label=\"f32[3,3,1,2]\"];\n"));
    assert_non_null(strstr(dot, "c0 -> n0 [style=dashed];\n"));
    assert_non_null(strstr(dot, "n6 -> c2 [style=dashed];\n"));
    assert_null(strstr(dot, "c2 -> n6"));
    assert_non_null(strstr(dot, "c0 [label=\"conv/w\\nf32[3,3,1,2]\", shape=cylinder"));
    assert_non_null(strstr(dot, "adam_update\\nbeta1 0.9 beta2 0.999 epsilon 1e-07 weight_decay 0 "
                                "clip_value 0\\n#7\", shape=box, "
                                "style=filled"));
    assert_non_null(strstr(dot, "c3 [label=\"odd \\\"name\\\"\\\\x0a\\\\\\nf32[3,3,1,2]\""));
    free(dot);
}

static void test_graphviz_draws_it(void **state)
{
    (void)state;
    if (system("dot -V >/dev/null 2>&1") != 0)
        skip();
    for (int i = 0; i < SAMPLES; i++) {
        char *dot = dot_of(samples[i].name);
        FILE *pipe = popen("dot -Tsvg >/dev/null", "w");
        assert_non_null(pipe);
        fputs(dot, pipe);
        assert_int_equal(pclose(pipe), 0);
        free(dot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_well_formed, clean),
        cmocka_unit_test_setup(test_what_it_shows, clean),
        cmocka_unit_test_setup(test_graphviz_draws_it, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
