/*
 * Graphs to bytes and back. What comes back is the same graph; anything but
 * what the writer writes is refused: truncated at every byte, changed in every
 * byte, longer, of another version, or a lie with a correct checksum.
 */
#include "trace/graph_bytes.h"

#include "trace/graph_test_support.h"
#include "trace/pass.h"

typedef struct stored {
    unsigned char *at;
    size_t size;
} stored;

static stored store(const ls__graph *g)
{
    void *bytes = NULL;
    stored s = { 0 };
    if (ls__graph_write(g, &bytes, &s.size))
        fail_msg("%s: %s", g->name, ls_error_report());
    s.at = bytes;
    return s;
}

static stored store_sample(const char *name)
{
    ls__graph *g = made(name);
    stored s = store(g);
    ls__graph_free(g);
    return s;
}

static void sign(stored *s)
{
    uint64_t size = s->size, sum;
    memcpy(s->at + LS__GRAPH_HEAD - sizeof size, &size, sizeof size);
    sum = ls__graph_checksum(s->at, s->size - sizeof sum);
    memcpy(s->at + s->size - sizeof sum, &sum, sizeof sum);
}

static void refused(const stored *s, ls_status want, const char *words)
{
    assert_null(ls__graph_read(s->at, s->size));
    assert_int_equal(ls_error(), want);
    if (!strstr(ls_error_text(), words))
        fail_msg("'%s' does not say '%s'", ls_error_text(), words);
}

/* ---- there and back ------------------------------------------------------------------- */

static void same_after_trip(const ls__graph *g)
{
    stored s = store(g);
    ls__graph *back = ls__graph_read(s.at, s.size);
    if (!back)
        fail_msg("%s: %s", g->name, ls_error_report());
    stored again = store(back);
    assert_int_equal(again.size, s.size);
    assert_memory_equal(again.at, s.at, s.size);
    char *one = ls__graph_text(g), *two = ls__graph_text(back);
    assert_string_equal(one, two);
    free(one);
    free(two);
    assert_int_equal(back->draws, g->draws);
    assert_int_equal(back->calls, g->calls);
    assert_int_equal(back->n_cells, g->n_cells);
    for (int i = 0; i < g->n_cells; i++) {
        assert_true(back->cells[i].serial == g->cells[i].serial);
        assert_string_equal(back->cells[i].name, g->cells[i].name);
        assert_true(ls__cell_is_hollow(back->cells[i].cell));
    }
    assert_int_equal(back->n_nodes, g->n_nodes);
    for (int i = 0; i < g->n_nodes; i++) {
        assert_ptr_equal(back->nodes[i]->op, g->nodes[i]->op);
        assert_true(ls__same_attrs(g->nodes[i]->op, g->nodes[i]->attrs, back->nodes[i]->attrs));
        assert_int_equal(back->nodes[i]->draw, g->nodes[i]->draw);
        assert_int_equal(back->nodes[i]->where, g->nodes[i]->where);
    }
    ls__graph_free(back);
    free(s.at);
    free(again.at);
}

static void test_round_trip(void **state)
{
    (void)state;
    size_t before = memory();
    for (int i = 0; i < SAMPLES; i++) {
        ls__graph *g = made(samples[i].name);
        same_after_trip(g);
        ls__graph_free(g);
    }
    assert_int_equal(memory(), before);
}

/* As a step is shipped: with fused rows, and holes where the passes took nodes away. */
static void test_round_trip_after_passes(void **state)
{
    (void)state;
    ls__graph *g = made("layers");
    if (ls__passes_run(g, 0))
        fail_msg("%s", ls_error_report());
    int fused = 0;
    for (int i = 0; i < g->n_nodes; i++)
        fused += (g->nodes[i]->op->flags & LS__OP_FUSED) != 0;
    assert_true(fused >= 3);
    same_after_trip(g);
    ls__graph_free(g);
}

static void test_constants_travel(void **state)
{
    (void)state;
    static const double numbers[] = { 0x1.fffffffffffffp1023, -0.0, 0x0.0000000000001p-1022 };
    ls__graph *g = ls__graph_new("numbers");
    ls__graph_output(g, sample_constant(g, LS_F64, 1, 3, 0, numbers));
    float *many = malloc(sizeof *many * 100000);
    for (int i = 0; i < 100000; i++)
        many[i] = 2.5f;
    ls__graph_output(g, sample_constant(g, LS_F32, 1, 100000, 0, many));
    same_after_trip(g);
    stored s = store(g);
    assert_true(s.size < 300); /* one number of the 100,000 */
    ls__graph *back = ls__graph_read(s.at, s.size);
    assert_memory_equal(ls__wire_data(back, back->outputs[0]), numbers, sizeof numbers);
    assert_memory_equal(ls__wire_data(back, back->outputs[1]), many, sizeof *many * 100000);
    free(many);
    free(s.at);
    ls__graph_free(back);
    ls__graph_free(g);
}

/* ---- what does not travel --------------------------------------------------------------- */

static void writing_fails(const ls__graph *g, const char *words)
{
    void *bytes = NULL;
    size_t size = 7;
    assert_int_equal(ls__graph_write(g, &bytes, &size), LS_UNSUPPORTED);
    assert_int_equal(ls_error(), LS_UNSUPPORTED);
    assert_non_null(strstr(ls_error_text(), words));
    assert_null(bytes);
    assert_int_equal(size, 7);
}

static void test_unregistered_row(void **state)
{
    (void)state;
    ls__graph *g = made("fused");
    ls_op mine = *node_of(g, "softmax")->op;
    node_of(g, "softmax")->op = &mine;
    writing_fails(g, "operator 'softmax'");
    mine.name = "nobody_knows";
    writing_fails(g, "operator 'nobody_knows'");
    ls__graph_free(g);
}

static void test_strings(void **state)
{
    (void)state;
    static const char nothing[16];
    ls__graph *g = ls__graph_new("strings");
    int wire = sample_constant(g, LS_BYTES, 1, 1, 0, nothing);
    same_after_trip(g); /* nobody uses it */
    ls__graph_output(g, wire);
    writing_fails(g, "strings");
    ls__graph_free(g);
}

/* ---- damage ------------------------------------------------------------------------------- */

static void test_not_a_graph(void **state)
{
    (void)state;
    stored s = store_sample("draws");
    assert_null(ls__graph_read(NULL, 0));
    failed(LS_CORRUPT);
    s.at[0] ^= 1;
    refused(&s, LS_CORRUPT, "no stored step");
    s.at[0] ^= 1;
    s.at[8] = 2;
    refused(&s, LS_UNSUPPORTED, "version 2, this library reads version 1");
    s.at[8] = 1;
    s.at[s.size - 1] ^= 1;
    refused(&s, LS_CORRUPT, "checksum");
    s.size--;
    sign(&s);
    s.size++;
    refused(&s, LS_CORRUPT, "says it has");
    free(s.at);
}

/* Cut anywhere and signed again: never accepted, never read past its end. */
static void test_truncated(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        stored s = store_sample(samples[i].name);
        for (size_t size = 0; size < s.size; size++) {
            stored cut = { malloc(size + 1), size };
            memcpy(cut.at, s.at, size);
            assert_null(ls__graph_read(cut.at, cut.size));
            failed(LS_CORRUPT);
            if (size >= LS__GRAPH_HEAD + 8) {
                sign(&cut);
                assert_null(ls__graph_read(cut.at, cut.size));
                failed(LS_CORRUPT);
            }
            free(cut.at);
        }
        free(s.at);
    }
}

/* Every byte changed in several ways and signed again: refused, or a graph that is
 * stored as exactly these bytes. */
static void test_every_byte(void **state)
{
    (void)state;
    static const unsigned char masks[] = { 1, 0x80, 0xff };
    for (int i = 0; i < SAMPLES; i++) {
        stored s = store_sample(samples[i].name);
        for (size_t at = LS__GRAPH_HEAD; at < s.size - 8; at++)
            for (size_t m = 0; m < sizeof masks; m++) {
                s.at[at] ^= masks[m];
                sign(&s);
                ls__graph *g = ls__graph_read_within(s.at, s.size, 1 << 20);
                if (g) {
                    stored again = store(g);
                    assert_int_equal(again.size, s.size);
                    assert_memory_equal(again.at, s.at, s.size);
                    free(again.at);
                    ls__graph_free(g);
                } else {
                    assert_int_not_equal(ls_error(), LS_OK);
                }
                s.at[at] ^= masks[m];
            }
        free(s.at);
    }
}

static void test_trailing(void **state)
{
    (void)state;
    stored s = store_sample("step");
    s.at = realloc(s.at, s.size + 5);
    s.size += 5;
    sign(&s);
    refused(&s, LS_CORRUPT, "5 bytes too many");
    free(s.at);
}

/* Replaces the first occurrence of some bytes by others of that length, and signs. */
static void patch(stored *s, const void *from, const void *to, size_t length)
{
    unsigned char *at = memmem(s->at, s->size, from, length);
    assert_non_null(at);
    memcpy(at, to, length);
    sign(s);
}

static void test_unknown_operator(void **state)
{
    (void)state;
    stored s = store_sample("step");
    patch(&s, "conv2d", "conv9d", 6);
    refused(&s, LS_CORRUPT, "no operator 'conv9d'");
    patch(&s, "conv9d", "conv2d", 6);
    patch(&s, "dilation", "dilatiom", 8);
    refused(&s, LS_CORRUPT, "'dilation' of kind 3 here, 'dilatiom' of kind 3 there");
    free(s.at);
}

/* Rows stand in the order of their first use, once each. */
static void test_rows(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("rows");
    int x = sample_input(g, LS_F32, 1, 3, 0, 0, 0);
    ls__graph_output(g, sample_wire(g, "neg", NULL, WIRES(x), NULL));
    ls__graph_output(g, sample_wire(g, "exp", NULL, WIRES(x), NULL));
    stored s = store(g);
    /* A node begins with row, call, number of inputs, input. */
    const uint32_t first[] = { 0, 1, 1, 0 }, early[] = { 1, 1, 1, 0 };
    patch(&s, first, early, sizeof first);
    refused(&s, LS_CORRUPT, "node 0: operator 1 of 2, after 0");
    patch(&s, early, first, sizeof first);
    const uint32_t second[] = { 1, 2, 1, 0 }, again[] = { 0, 2, 1, 0 };
    patch(&s, second, again, sizeof second);
    refused(&s, LS_CORRUPT, "operator 'exp' is not used");
    patch(&s, again, second, sizeof second);
    patch(&s, "exp", "neg", 3);
    refused(&s, LS_CORRUPT, "operator 'neg' a second time");
    free(s.at);
    ls__graph_free(g);
}

static void test_values(void **state)
{
    (void)state;
    stored s = store_sample("step");
    patch(&s, "conv/w", "conv\0w", 6);
    refused(&s, LS_CORRUPT, "a zero byte in its name");
    free(s.at);
    s = store_sample("constants");
    static const char bools[] = "\6\1\3\0\0\0\0\0\0\0\0\1\0\1";
    static const char other[] = "\6\1\3\0\0\0\0\0\0\0\0\1\0\2";
    patch(&s, bools, other, sizeof bools - 1);
    refused(&s, LS_CORRUPT, "neither 0 nor 1");
    free(s.at);
}

/* Where the counts stand: after head and name. */
static unsigned char *count_at(stored *s, int which)
{
    uint32_t name;
    memcpy(&name, s->at + LS__GRAPH_HEAD, sizeof name);
    return s->at + LS__GRAPH_HEAD + 4 + name + 4 * which;
}

static void test_counts(void **state)
{
    (void)state;
    static const uint32_t lies[] = { 0x7fffffff, 0xffffffff, 0x00100000, 1000 };
    for (int which = 0; which < 6; which++) {
        stored s = store_sample("step");
        unsigned char *at = count_at(&s, which);
        for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
            memcpy(at, &lies[i], 4);
            sign(&s);
            refused(&s, LS_CORRUPT, "head: "); /* before anything is made for them */
        }
        free(s.at);
    }
}

/* A few bytes that stand for a terabyte. */
static void test_splat_bomb(void **state)
{
    (void)state;
    float *many = calloc(1000, sizeof *many);
    ls__graph *g = ls__graph_new("bomb");
    ls__graph_output(g, sample_constant(g, LS_F32, 1, 1000, 0, many));
    stored s = store(g);
    int64_t small = 1000, big = ((int64_t)1 << 40) + 0x1234567;
    patch(&s, &small, &big, sizeof big);
    refused(&s, LS_CORRUPT, "constants may take only 1073741824 bytes");
    patch(&s, &big, &small, sizeof big);
    assert_null(ls__graph_read_within(s.at, s.size, 3999));
    failed(LS_CORRUPT);
    ls__graph *back = ls__graph_read_within(s.at, s.size, 4000);
    assert_non_null(back);
    ls__graph_free(back);
    free(s.at);
    ls__graph_output(g, sample_constant(g, LS_F32, 1, 500, 0, many));
    s = store(g); /* together, not each */
    assert_null(ls__graph_read_within(s.at, s.size, 5999));
    failed(LS_CORRUPT);
    ls__graph_free(g);
    free(s.at);
    free(many);
}

static void test_specs_and_order(void **state)
{
    (void)state;
    stored s = store_sample("step");
    /* The convolution's inputs: wires 0 and 4 (x; inputs, two constants, then the read). */
    const uint32_t uses[] = { 2, 0, 4 }, itself[] = { 2, 5, 4 }, later[] = { 2, 6, 4 };
    patch(&s, uses, itself, sizeof uses);
    refused(&s, LS_CORRUPT, "node 1: wire 5, there are 5 before it");
    patch(&s, itself, later, sizeof uses);
    refused(&s, LS_CORRUPT, "node 1: wire 6, there are 5 before it");
    patch(&s, later, uses, sizeof uses);
    const int64_t shape[] = { 2, 4, 4, 2 }, wrong[] = { 2, 4, 5, 2 };
    patch(&s, shape, wrong, sizeof shape);
    refused(&s, LS_CORRUPT, "node 1 (conv2d, call 2): output 0 is f32[2,4,5,2]");
    free(s.at);
}

static void test_same_variable_twice(void **state)
{
    (void)state;
    stored s = store_sample("step");
    const uint64_t second = 99, first = 100;
    patch(&s, &second, &first, sizeof first);
    refused(&s, LS_CORRUPT, "cell 1: the same variable as cell 0");
    free(s.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_round_trip, clean),
        cmocka_unit_test_setup(test_round_trip_after_passes, clean),
        cmocka_unit_test_setup(test_constants_travel, clean),
        cmocka_unit_test_setup(test_unregistered_row, clean),
        cmocka_unit_test_setup(test_strings, clean),
        cmocka_unit_test_setup(test_not_a_graph, clean),
        cmocka_unit_test_setup(test_truncated, clean),
        cmocka_unit_test_setup(test_every_byte, clean),
        cmocka_unit_test_setup(test_trailing, clean),
        cmocka_unit_test_setup(test_unknown_operator, clean),
        cmocka_unit_test_setup(test_rows, clean),
        cmocka_unit_test_setup(test_values, clean),
        cmocka_unit_test_setup(test_counts, clean),
        cmocka_unit_test_setup(test_splat_bomb, clean),
        cmocka_unit_test_setup(test_specs_and_order, clean),
        cmocka_unit_test_setup(test_same_variable_twice, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
