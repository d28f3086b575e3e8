/*
 * Element-wise chains: what is fused, into what, and that results keep their bits;
 * in cases made for each rule, and in random graphs over all functions, dtypes and
 * ways to broadcast.
 */
#include <lockstep/function.h>
#include <lockstep/ops.h>
#include <math.h>
#include <stdio.h>

#include "ops/fused_chain.h"
#include "tensor/convert.h"
#include "trace/pass.h"
#include "trace/test_run.h"

enum { MOST = 128 };

static uint64_t seed = 5;

static int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

/* A row that no pass knows: its input as it is. */
static ls_status copy_shape(ls_call *c)
{
    return ls__output_like(c, 0, 0);
}

static ls_status copy_kernel(ls_call *c)
{
    memcpy(c->out_data[0], c->in_data[0], ls__spec_bytes(c->in[0]));
    return LS_OK;
}

static const ls_op copy_row = { .size = sizeof(ls_op),
                                .name = "test.copy",
                                .inputs = 1,
                                .outputs = 1,
                                .shape = copy_shape,
                                .kernel = copy_kernel };

/* ---- building ---------------------------------------------------------------------------- */

static int input(ls__graph *g, ls_dtype dtype, int rank, const int64_t *dims)
{
    ls__spec s;
    assert_int_equal(ls__spec_make(&s, "test", dtype, rank, dims), LS_OK);
    return ls__graph_input(g, &s);
}

static int call1(ls__graph *g, const char *row, int x)
{
    return add_call(g, row, NULL, 1, &x);
}

static int call2(ls__graph *g, const char *row, int a, int b)
{
    return add_call(g, row, NULL, 2, (const int[]){ a, b });
}

static int copied(ls__graph *g, int x)
{
    return ls__graph_call(g, NULL, &copy_row, NULL, 1, &x)->outputs[0];
}

/* Special values, everyday ones, small integers. */
static ls_tensor *numbers(const ls__spec *spec)
{
    static const double special[] = { 0,   -0.0, 1,    -1,  INFINITY, -INFINITY, NAN, 0.5,
                                      2.5, -2.5, 1e30, -88, 1e-30,    3e9,       300, -14 };
    int64_t n = ls__spec_count(spec);
    char *data = ls__frame_alloc((size_t)n * 8 + 8);
    for (int64_t i = 0; i < n; i++) {
        double x = below(2) ? below(4000) / 500.0 - 4 : below(41) - 20;
        if (below(16) == 0)
            x = special[below((int)(sizeof special / sizeof *special))];
        ls__store_double(spec->dtype, data, i, spec->dtype == LS_BOOL ? below(2) : x);
    }
    ls_tensor *t = ls_from(spec->dtype, spec->rank, spec->dims, data);
    assert_non_null(t);
    return t;
}

/* Equal bits, where one NaN is as good as another. */
static void same_numbers(const ls_tensor *a, const ls_tensor *b)
{
    ls_dtype dtype = ls_dtype_of(a);
    assert_int_equal(dtype, ls_dtype_of(b));
    assert_int_equal(ls_size_in_bytes(a), ls_size_in_bytes(b));
    size_t size = ls_dtype_size(dtype);
    for (size_t i = 0; i * size < ls_size_in_bytes(a); i++) {
        const char *x = (const char *)ls__data(a) + i * size;
        const char *y = (const char *)ls__data(b) + i * size;
        double v = ls__load_double(dtype, x, 0), w = ls__load_double(dtype, y, 0);
        if (memcmp(x, y, size) != 0 && !(isnan(v) && isnan(w)))
            fail_msg("element %zu of %s: %.9g, was %.9g", i, ls_describe(a), w, v);
    }
}

/* Runs the pass; the graph must stay right and give what it gave. */
static void fuse(ls__graph *g)
{
    LS_FRAME {
        ls_tensor *arguments[MOST], *before[MOST], *after[MOST];
        assert_true(g->n_outputs <= MOST && g->n_inputs <= MOST);
        for (int i = 0; i < g->n_inputs; i++)
            arguments[i] = numbers(&g->wires[g->inputs[i]].spec);
        run_graph(g, arguments, before);
        if (ls__pass_fuse_chain(g) || ls__graph_verify(g))
            fail_msg("%s", ls_error_report());
        run_graph(g, arguments, after);
        for (int i = 0; i < g->n_outputs; i++)
            same_numbers(before[i], after[i]);
    }
}

/* The pass leaves `nodes` nodes, `chains` of them chains. */
static void leaves(ls__graph *g, int nodes, int chains)
{
    fuse(g);
    if (g->n_nodes != nodes || count_rows(g, "chain") != chains)
        fail_msg("%d nodes, %d chains; wants %d, %d\n%s", g->n_nodes, count_rows(g, "chain"), nodes,
                 chains, ls__graph_text(g));
    ls__graph_free(g);
}

static ls__graph *begin(void)
{
    ls__graph *g = ls__graph_new("test");
    assert_non_null(g);
    g->calls = 1;
    return g;
}

#define MATRIX                                                                                     \
    2, (const int64_t[])                                                                           \
    {                                                                                              \
        30, 70                                                                                     \
    }
#define ROW                                                                                        \
    1, (const int64_t[])                                                                           \
    {                                                                                              \
        70                                                                                         \
    }

/* ---- what is fused ------------------------------------------------------------------------- */

static void test_program(void **state)
{
    (void)state;
    ls__graph *g = begin();
    int x = input(g, LS_F32, MATRIX), scale = input(g, LS_F32, 0, NULL);
    int bias = input(g, LS_F32, ROW);
    int t = call2(g, "mul", x, scale);
    ls__graph_output(g, call1(g, "relu", call2(g, "add", t, bias)));
    fuse(g);
    assert_int_equal(g->n_nodes, 1);
    const ls__node *node = g->nodes[0];
    const ls__chain_attrs *a = node->attrs;
    assert_int_equal(node->n_inputs, 3);
    assert_int_equal(a->outs.count, 1);
    assert_int_equal(a->outs.at[0], 2);
    assert_int_equal(a->step[0].at[0], ls__chain_code(LS__FN_mul));
    assert_int_equal(node->inputs[a->step[0].at[3]], x);
    assert_int_equal(node->inputs[a->step[0].at[4]], scale);
    assert_int_equal(a->step[1].at[3], 3);
    assert_int_equal(node->inputs[a->step[1].at[4]], bias);
    assert_int_equal(a->step[2].at[3], 4);
    assert_int_equal(a->step[3].count, 0);
    ls__graph_free(g);
}

/* What others want of the middle leaves the chain too: graph outputs and later calls. */
static void test_outputs(void **state)
{
    (void)state;
    ls__graph *g = begin();
    int t = call1(g, "exp", input(g, LS_F32, MATRIX));
    int u = call1(g, "neg", t);
    int y = call1(g, "tanh", u);
    ls__graph_output(g, t);
    ls__graph_output(g, copied(g, u));
    ls__graph_output(g, y);
    fuse(g);
    assert_int_equal(g->n_nodes, 2);
    assert_true(ls__node_is(g->nodes[0], "chain"));
    assert_int_equal(g->nodes[0]->n_outputs, 3);
    ls__graph_free(g);
}

/* t is wanted before the last call: it stays where it is, and is no part of it. */
static void test_user_between(void **state)
{
    (void)state;
    ls__graph *g = begin();
    int t = call1(g, "exp", input(g, LS_F32, MATRIX));
    int c = copied(g, t);
    int u = call1(g, "neg", t);
    ls__graph_output(g, call2(g, "mul", u, c));
    leaves(g, 3, 1); /* exp, copy, chain(neg, mul) */
}

/* Two groups whose members lie among each other. */
static void test_interleaved(void **state)
{
    (void)state;
    ls__graph *g = begin();
    int a = input(g, LS_F32, MATRIX), b = input(g, LS_F32, ROW);
    int a1 = call1(g, "exp", a), b1 = call1(g, "exp", b);
    int a2 = call2(g, "add", a1, b1), b2 = call1(g, "neg", b1);
    ls__graph_output(g, call1(g, "tanh", a2));
    ls__graph_output(g, call1(g, "tanh", b2));
    leaves(g, 3, 2); /* b1 is wanted by the first chain: it stays alone before it */
}

/* neg moves behind tanh with its group, so exp, which both use, can join tanh. */
static void test_moved_user(void **state)
{
    (void)state;
    ls__graph *g = begin();
    int t = call1(g, "exp", input(g, LS_F32, MATRIX));
    int u = call1(g, "neg", t);
    ls__graph_output(g, call1(g, "tanh", t));
    ls__graph_output(g, call1(g, "square", u));
    leaves(g, 2, 2);
}

static void test_clip(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const double pairs[2][2] = { { 0.5, 2.25 }, { -3.25, -0.5 } }, *limits = pairs[i / 4];
        const ls_dtype types[] = { LS_F32, LS_F64, LS_I32, LS_I64 };
        ls__graph *g = begin();
        int x = input(g, types[i % 4], MATRIX);
        int y = add_call(g, "clip", limits, 1, &x);
        y = call1(g, "square", y);
        if (i % 4 < 2)
            y = add_call(g, "clip_grad", limits, 2, (const int[]){ x, y });
        ls__graph_output(g, y);
        fuse(g);
        assert_int_equal(g->n_nodes, 1);
        assert_int_equal(g->nodes[0]->n_inputs, 3); /* the limits are there once */
        ls__graph_free(g);
    }
}

static void test_gelu(void **state)
{
    (void)state;
    for (int64_t approximate = 0; approximate < 2; approximate++) {
        ls__graph *g = begin();
        int x = input(g, LS_F32, MATRIX);
        int y = add_call(g, "gelu", &approximate, 1, &x);
        int d = add_call(g, "gelu_grad", &approximate, 2, (const int[]){ x, y });
        ls__graph_output(g, d);
        leaves(g, 1, 1);
    }
}

/* bf16 is rounded after every call; casts and selections have nothing to round. */
static void test_bf16(void **state)
{
    (void)state;
    ls__graph *g = begin();
    int x = input(g, LS_BF16, MATRIX);
    ls__graph_output(g, call1(g, "exp", call1(g, "neg", x)));
    leaves(g, 2, 0);

    g = begin();
    x = input(g, LS_BF16, MATRIX);
    const int64_t wide = LS_F32, narrow = LS_BF16;
    int y = add_call(g, "cast", &wide, 1, &x);
    y = call1(g, "exp", y);
    ls__graph_output(g, add_call(g, "cast", &narrow, 1, &y));
    leaves(g, 1, 1);
}

/* ---- what is not ------------------------------------------------------------------------------ */

/* Integers divided by 0 are an error, which a chain cannot give. */
static void test_division(void **state)
{
    (void)state;
    const char *const rows[] = { "div", "mod" };
    for (int i = 0; i < 2; i++) {
        ls__graph *g = begin();
        int x = input(g, LS_I32, MATRIX);
        int y = call2(g, "mul", x, x);
        ls__spec spec = { .dtype = LS_I32 };
        ls__storage *s = ls__storage_new("test", 64);
        *(int32_t *)s->data = 3;
        int three = ls__graph_constant(g, &spec, s);
        ls__storage_unref(s);
        ls__graph_output(g, call2(g, rows[i], y, three));
        leaves(g, 2, 0);

        g = begin();
        x = input(g, LS_F32, MATRIX);
        ls__graph_output(g, call2(g, rows[i], call1(g, "exp", x), x));
        leaves(g, 1, 1);
    }
}

/* A variable is written between the two: moving the first would make a copy of what
 * was read. */
static void test_write_between(void **state)
{
    (void)state;
    for (int after = 0; after < 2; after++) {
        ls__cell *cell;
        ls__spec spec = { LS_F32, 2, { 30, 70 } };
        assert_int_equal(ls__cell_new("w", &spec, &cell), LS_OK);
        ls__graph *g = begin();
        int w = ls__graph_cell_add(g, ls__cell_serial(cell), "w", &spec, cell);
        ls__cell_unref(cell);
        int x = input(g, LS_F32, MATRIX);
        int r = ls__graph_call_cells(g, NULL, ls_op_find("read"), NULL, 0, NULL, 1, &w)->outputs[0];
        int t = call2(g, "mul", r, x);
        int y = after ? call1(g, "exp", t) : t;
        assert_non_null(ls__graph_call_cells(g, NULL, ls_op_find("assign"), NULL, 1, &x, 1, &w));
        y = after ? y : call1(g, "exp", t);
        ls__graph_output(g, y);
        assert_int_equal(ls__pass_fuse_chain(g), LS_OK);
        assert_int_equal(ls__graph_verify(g), LS_OK);
        assert_int_equal(count_rows(g, "chain"), after);
        ls__graph_free(g);
    }
}

/* Another shape; another row of a known name; nothing but one call. */
static void test_left_alone(void **state)
{
    (void)state;
    ls__graph *g = begin();
    int x = input(g, LS_F32, MATRIX), b = call1(g, "exp", input(g, LS_F32, ROW));
    ls__graph_output(g, call2(g, "add", x, b));
    leaves(g, 2, 0);

    static const ls_op own = { .size = sizeof(ls_op),
                               .name = "exp",
                               .inputs = 1,
                               .outputs = 1,
                               .shape = copy_shape,
                               .kernel = copy_kernel };
    g = begin();
    x = input(g, LS_F32, MATRIX);
    int y = ls__graph_call(g, NULL, &own, NULL, 1, &x)->outputs[0];
    ls__graph_output(g, call1(g, "neg", y));
    leaves(g, 2, 0);
}

static void test_limits(void **state)
{
    (void)state;
    ls__graph *g = begin(); /* steps: 16 + 16 + 8 */
    int y = input(g, LS_F32, MATRIX);
    for (int i = 0; i < 40; i++)
        y = call1(g, i % 2 ? "tanh" : "neg", y);
    ls__graph_output(g, y);
    leaves(g, 3, 3);

    g = begin(); /* inputs: seven additions have eight */
    y = input(g, LS_F32, MATRIX);
    for (int i = 0; i < 14; i++)
        y = call2(g, "add", y, input(g, LS_F32, ROW));
    ls__graph_output(g, y);
    leaves(g, 2, 2);

    g = begin(); /* outputs: four, then the rest */
    y = input(g, LS_F32, MATRIX);
    for (int i = 0; i < 8; i++)
        ls__graph_output(g, y = call1(g, i % 2 ? "tanh" : "neg", y));
    leaves(g, 2, 2);
}

/* ---- random graphs ------------------------------------------------------------------------------ */

static const ls_dtype dtypes[] = { LS_F32, LS_F64, LS_I32, LS_I64, LS_U8, LS_BOOL, LS_BF16 };
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static const ls__spec shapes[] = { { LS_F32, 0, { 0 } },         { LS_F32, 1, { 7 } },
                                   { LS_F32, 2, { 40, 30 } },    { LS_F32, 2, { 3, 2500 } },
                                   { LS_F32, 3, { 9, 5, 130 } }, { LS_F32, 4, { 2, 3, 40, 5 } },
                                   { LS_F32, 2, { 1500, 2 } },   { LS_F32, 3, { 2, 1, 1024 } },
                                   { LS_F32, 2, { 0, 4 } } };
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct pool {
    ls__graph *g;
    int n;
    int wire[MOST];
} pool;

/* An input that broadcasts to `shape`: itself, or with sizes of 1 and fewer axes. */
static void add_input(pool *p, const ls__spec *shape, ls_dtype dtype)
{
    int64_t dims[LS_MAX_RANK];
    int skip = below(3) ? 0 : below(shape->rank + 1), full = below(2);
    for (int i = 0; i < shape->rank; i++)
        dims[i] = full || below(2) ? shape->dims[i] : 1;
    p->wire[p->n++] = input(p->g, dtype, shape->rank - skip, dims + skip);
}

static int pick(const pool *p, ls_dtype dtype)
{
    int found = -1, seen = 0;
    for (int i = 0; i < p->n; i++) /* the newest a little more often */
        if (p->g->wires[p->wire[i]].spec.dtype == dtype && (below(++seen) == 0 || below(4) == 0))
            found = p->wire[i];
    return found;
}

/* A call of a random row on random values; false when they do not fit. */
static bool random_call(pool *p)
{
    static const struct {
        const char *row;
        int operands;
    } functions[] = {
#define FUNCTION(name, operands) { #name, operands },
        LS__FN_LIST(FUNCTION)
    };
    ls_dtype dtype = dtypes[below(DTYPES)];
    int fn = below(LS__FN_COUNT + 4), in[4], n;
    union {
        int64_t dtype;
        double limits[2];
    } attrs = { .limits = { -0.75, 3 } };
    const ls_op *row = NULL;
    if (fn < LS__FN_COUNT) {
        bool fails = (fn == LS__FN_div || fn == LS__FN_mod) && ls_dtype_is_integer(dtype);
        row = fails ? NULL : ls_op_find(functions[fn].row);
        n = row ? row->inputs : 0;
        if (fn == LS__FN_gelu || fn == LS__FN_gelu_grad)
            attrs.dtype = below(2); /* approximate */
    } else if (fn == LS__FN_COUNT) {
        row = &copy_row;
        n = 1;
    } else {
        row = ls_op_find(fn == LS__FN_COUNT + 1 ? "where" : "cast");
        n = row->inputs;
        if (n == 1)
            attrs.dtype = dtypes[below(DTYPES)];
    }
    for (int i = 0; row && i < n; i++)
        in[i] = pick(p, n == 3 && i == 0 ? LS_BOOL : dtype);
    ls__node *node = row ? ls__graph_call(p->g, NULL, row, &attrs, n, in) : NULL;
    ls_error(); /* what does not fit is not called */
    if (node)
        p->wire[p->n++] = node->outputs[0];
    return node != NULL;
}

static ls__graph *random_graph(void)
{
    pool p = { .g = begin() };
    const ls__spec *shape = &shapes[below(SHAPES)];
    for (int i = 0; i < 2 * DTYPES; i++)
        add_input(&p, shape, dtypes[i % DTYPES]);
    int calls = 2 + below(50);
    for (int made = 0; made < calls;)
        made += random_call(&p);
    int every = 1 + below(12);
    for (int i = 2 * DTYPES; i < p.n; i++)
        if (below(every) == 0 || i == p.n - 1)
            ls__graph_output(p.g, p.wire[i]);
    return p.g;
}

static void test_random(void **state)
{
    (void)state;
    int before = 0, after = 0, chains = 0;
    for (int i = 0; i < 600; i++) {
        ls__graph *g = random_graph();
        before += g->n_nodes;
        fuse(g);
        after += g->n_nodes;
        chains += count_rows(g, "chain");
        for (int k = 0; k < g->n_nodes; k++)
            assert_true(!ls__node_is(g->nodes[k], "chain") || g->nodes[k]->n_inputs <= 8);
        ls__graph_free(g);
    }
    printf("%d nodes became %d, %d of them chains\n", before, after, chains);
    assert_true(chains > 1000 && after < before * 3 / 4);
}

/* ---- traced ----------------------------------------------------------------------------------- */

/* The calls of a graph, made by a program. */
static ls_value *calls_of(ls_value *arguments, void *user)
{
    const ls__graph *g = user;
    ls_tensor *in[MOST], *out[MOST];
    for (int i = 0; i < g->n_inputs; i++)
        in[i] = ls_item(arguments, i);
    run_graph(g, in, out);
    return ls_tensors(g->n_outputs, out);
}

/* What a traced function gives, and how many instructions it takes. */
static int64_t traced(ls__graph *g, const char *off, ls_tensor *const *arguments,
                      ls_tensor *const *want)
{
    ls_function *f = ls_trace_with(LS_TRACE(.off = off), calls_of, g);
    assert_non_null(f);
    for (int turn = 0; turn < 2; turn++) {
        ls_value *results = ls_function_call(f, ls_tensors(g->n_inputs, arguments));
        if (!results)
            fail_msg("%s", ls_error_report());
        for (int i = 0; i < g->n_outputs; i++)
            same_numbers(want[i], ls_item(results, i));
    }
    ls_function_figures figures = { .size = sizeof figures };
    assert_int_equal(ls_function_look(f, &figures), LS_OK);
    ls_function_free(f);
    return figures.instructions;
}

static void test_traced(void **state)
{
    (void)state;
    int64_t with = 0, without = 0;
    for (int i = 0; i < 80; i++)
        LS_FRAME {
            ls__graph *g = random_graph();
            ls_tensor *arguments[MOST], *want[MOST];
            for (int k = 0; k < g->n_inputs; k++)
                arguments[k] = numbers(&g->wires[g->inputs[k]].spec);
            run_graph(g, arguments, want);
            with += traced(g, "", arguments, want);
            without += traced(g, "fuse-chain", arguments, want);
            ls__graph_free(g);
        }
    printf("%lld instructions, %lld without chains\n", (long long)with, (long long)without);
    assert_true(with < without * 4 / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_program, clean),
        cmocka_unit_test_setup(test_outputs, clean),
        cmocka_unit_test_setup(test_user_between, clean),
        cmocka_unit_test_setup(test_interleaved, clean),
        cmocka_unit_test_setup(test_moved_user, clean),
        cmocka_unit_test_setup(test_clip, clean),
        cmocka_unit_test_setup(test_gelu, clean),
        cmocka_unit_test_setup(test_bf16, clean),
        cmocka_unit_test_setup(test_division, clean),
        cmocka_unit_test_setup(test_write_between, clean),
        cmocka_unit_test_setup(test_left_alone, clean),
        cmocka_unit_test_setup(test_limits, clean),
        cmocka_unit_test_setup(test_random, clean),
        cmocka_unit_test_setup(test_traced, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
