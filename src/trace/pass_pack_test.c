/*
 * Packed weights: which products get them, that a weight is packed once for all
 * products that want the same, that results stay what they were up to the order
 * of sums, and what the two rows refuse.
 */
#include "kernels/threads.h"
#include "ops/matmul.h"
#include "trace/pass.h"
#include "trace/test_record.h"

/* Sizes for which packing pays, transposed or not. */
enum { ROWS = 32, K = 768, N = 1024 };

typedef struct step {
    ls__graph *g;
    int cell, x, w;
} step;

static ls__spec f32(int rank, const int64_t *dims)
{
    ls__spec s;
    assert_int_equal(ls__spec_make(&s, "test", LS_F32, rank, dims), LS_OK);
    return s;
}

static int read_again(step *s)
{
    s->g->calls++;
    ls__node *read =
        ls__graph_call_cells(s->g, NULL, ls_op_find("read"), NULL, 0, NULL, 1, &s->cell);
    assert_non_null(read);
    return read->outputs[0];
}

static void assign(step *s, int wire)
{
    s->g->calls++;
    assert_non_null(
        ls__graph_call_cells(s->g, NULL, ls_op_find("assign"), NULL, 1, &wire, 1, &s->cell));
}

/* An argument x [2, rows / 2, k] and a variable w [k, n] that has been read. */
static step begin(int64_t rows, int64_t k, int64_t n)
{
    step s = { .g = ls__graph_new("test") };
    ls__spec x = f32(3, (const int64_t[]){ 2, rows / 2, k });
    ls__spec w = f32(2, (const int64_t[]){ k, n });
    s.x = ls__graph_input(s.g, &x);
    ls__cell *cell;
    assert_int_equal(ls__cell_new("w", &w, &cell), LS_OK);
    LS_FRAME {
        ls_tensor *value = some_numbers(&w, 5);
        memcpy(ls__cell_write(cell), ls__data(value), ls_size_in_bytes(value));
    }
    s.cell = ls__graph_cell_add(s.g, ls__cell_serial(cell), "w", &w, cell);
    ls__cell_unref(cell);
    s.w = read_again(&s);
    return s;
}

static int product(step *s, int a, int b, bool ta, bool tb)
{
    const ls__matmul_attrs attrs = { ta, tb };
    return add_call(s->g, "matmul", &attrs, 2, (const int[]){ a, b });
}

/* Runs the pass; what the graph gives must stay the same (it must not write). */
static void pack(step *s)
{
    LS_FRAME {
        ls_tensor *arguments[4], *before[4], *after[4];
        assert_true(s->g->n_inputs <= 4 && s->g->n_outputs <= 4);
        for (int i = 0; i < s->g->n_inputs; i++)
            arguments[i] = some_numbers(&s->g->wires[s->g->inputs[i]].spec, (uint64_t)i + 7);
        run_graph(s->g, arguments, before);
        if (ls__pass_pack(s->g) || ls__graph_verify(s->g))
            fail_msg("%s", ls_error_report());
        run_graph(s->g, arguments, after);
        for (int i = 0; i < s->g->n_outputs; i++)
            close_to(after[i], before[i], 1e-4); /* sums of 1,024, then perhaps a tanh */
    }
}

/* Without oneDNN no routine wants a layout of its own, and nothing is packed. */
static int packing_there(void)
{
    const ls__matmul_pack_attrs p = { .m = ROWS, .n = N, .k = K, .threads = 1 };
    ls__matmul_plan plan;
    assert_int_equal(ls__matmul_pack_open(&p, &plan), LS_OK);
    bool there = !plan.b_plain;
    ls__matmul_plan_close(&plan);
    return there;
}

static void expect(step *s, int packs, int packed)
{
    if (!packing_there())
        packs = packed = 0;
    assert_int_equal(count_rows(s->g, "matmul_pack"), packs);
    assert_int_equal(count_rows(s->g, "matmul_packed"), packed);
    ls__graph_free(s->g);
}

/* ---- what is packed ---------------------------------------------------------------------- */

static void test_product(void **state)
{
    (void)state;
    step s = begin(ROWS, K, N);
    ls__graph_output(s.g, product(&s, s.x, s.w, false, false));
    pack(&s);
    if (packing_there())
        assert_int_equal(s.g->n_nodes, 3);
    expect(&s, 1, 1);
}

/* As in a backward pass: dx = dy w^T. */
static void test_transposed(void **state)
{
    (void)state;
    step s = begin(ROWS, K, N);
    int y = product(&s, s.x, s.w, false, false);
    ls__graph_output(s.g, product(&s, y, s.w, false, true));
    pack(&s);
    expect(&s, 2, 2);
}

static void test_bias_and_activation(void **state)
{
    (void)state;
    for (int64_t act = 0; act < LS__ACT_END; act++) {
        step s = begin(ROWS, K, N);
        ls__spec bias = f32(1, (const int64_t[]){ N });
        const ls__matmul_bias_attrs attrs = { .act = act };
        const int inputs[3] = { s.x, s.w, ls__graph_input(s.g, &bias) };
        ls__graph_output(s.g, add_call(s.g, "matmul_bias_act", &attrs, 3, inputs));
        pack(&s);
        expect(&s, 1, 1);
    }
}

static void test_one_packing_for_two(void **state)
{
    (void)state;
    step s = begin(ROWS, K, N);
    ls__spec x = s.g->wires[s.x].spec;
    ls__graph_output(s.g, product(&s, s.x, s.w, false, false));
    ls__graph_output(s.g, product(&s, ls__graph_input(s.g, &x), s.w, false, false));
    pack(&s);
    expect(&s, 1, 2);
}

/* The packed layout is that of the threads there were when the pass ran. */
static void test_threads_are_kept(void **state)
{
    (void)state;
    step s = begin(ROWS, K, N);
    ls__graph_output(s.g, product(&s, s.x, s.w, false, false));
    ls__kernel_threads(2);
    ls_status st = ls__pass_pack(s.g);
    ls__kernel_threads(1);
    assert_int_equal(st, LS_OK);
    assert_int_equal(ls__graph_verify(s.g), LS_OK);
    for (int i = 0; i < s.g->n_nodes; i++)
        if (ls__node_is(s.g->nodes[i], "matmul_pack"))
            assert_int_equal(((ls__matmul_pack_attrs *)s.g->nodes[i]->attrs)->threads, 2);
    assert_int_equal(ls__kernel_threads_get(), 1);
    expect(&s, 1, 1);
}

/* ---- what is not --------------------------------------------------------------------------- */

static void test_left_alone(void **state)
{
    (void)state;
    step s = begin(2, 512, 64); /* A transposed: no routine wants w packed */
    ls__spec a = f32(2, (const int64_t[]){ 64, 64 });
    ls__graph_output(s.g, product(&s, ls__graph_input(s.g, &a), s.w, true, true));
    pack(&s);
    expect(&s, 0, 0);

    s = begin(ROWS, K, N); /* not a variable as it is */
    int w = add_call(s.g, "relu", NULL, 1, &s.w);
    ls__graph_output(s.g, product(&s, s.x, w, false, false));
    pack(&s);
    expect(&s, 0, 0);

    s = begin(ROWS, K, N); /* the variable as A */
    ls__spec b = f32(2, (const int64_t[]){ N, ROWS });
    ls__graph_output(s.g, product(&s, s.w, ls__graph_input(s.g, &b), false, false));
    pack(&s);
    expect(&s, 0, 0);

    s = begin(8, 4, 4); /* small */
    ls__graph_output(s.g, product(&s, s.x, s.w, false, false));
    pack(&s);
    expect(&s, 0, 0);

    s = begin(0, K, N); /* empty */
    ls__graph_output(s.g, product(&s, s.x, s.w, false, false));
    pack(&s);
    expect(&s, 0, 0);
}

/* Packing anew in every step does not pay; and a value that the variable has no
 * longer must not be packed as if it had. */
static void test_trained_weight(void **state)
{
    (void)state;
    for (int when = 0; when < 3; when++) {
        step s = begin(ROWS, K, N);
        if (when < 2)
            assign(&s, s.w);
        product(&s, s.x, when == 1 ? read_again(&s) : s.w, false, false);
        if (when == 2)
            assign(&s, s.w);
        assert_int_equal(ls__pass_pack(s.g), LS_OK);
        expect(&s, 0, 0);
    }
}

/* ---- the rows -------------------------------------------------------------------------------- */

/* Any sizes, wanted packed or not, on odd shapes: pack and multiply. */
static void test_rows(void **state)
{
    (void)state;
    for (int turn = 0; turn < 12; turn++) {
        int64_t m = 2 + 6 * turn, k = 1 + 7 * turn, n = turn & 4 ? 130 + turn : 5 + turn;
        bool tb = turn & 1;
        step s = begin(m, tb ? n : k, tb ? k : n);
        ls__spec x = f32(2, (const int64_t[]){ m, k });
        const ls__matmul_pack_attrs p = {
            .m = m, .n = n, .k = k, .transpose_b = tb, .threads = 1 + (turn & 2) / 2
        };
        const ls__matmul_packed_attrs attrs = { .pack = p };
        int a = ls__graph_input(s.g, &x);
        int packed = add_call(s.g, "matmul_pack", &p, 1, &s.w);
        ls__graph_output(s.g, product(&s, a, s.w, false, tb));
        ls__graph_output(s.g, add_call(s.g, "matmul_packed", &attrs, 2, (int[]){ a, packed }));
        LS_FRAME {
            ls_tensor *arguments[] = { some_numbers(&s.g->wires[s.x].spec, 1),
                                       some_numbers(&x, 2) };
            ls_tensor *out[2];
            run_graph(s.g, arguments, out);
            close_to(out[1], out[0], 1e-5);
        }
        ls__graph_free(s.g);
    }
}

static void refused(step *s, const char *row, const ls__matmul_packed_attrs *attrs, int n,
                    const int *inputs, ls_status want)
{
    assert_null(ls__graph_call(s->g, NULL, ls_op_find(row), attrs, n, inputs));
    failed(want);
}

static void test_rows_refuse(void **state)
{
    (void)state;
    step s = begin(ROWS, K, N);
    const ls__matmul_packed_attrs good = { .pack = { .m = ROWS, .n = N, .k = K, .threads = 1 } };
    int packed = add_call(s.g, "matmul_pack", &good, 1, &s.w);
    const int inputs[4] = { s.x, packed, s.x, s.x };
    add_call(s.g, "matmul_packed", &good, 2, inputs);
    ls__matmul_packed_attrs bad = good;
    bad.pack.m = -1;
    refused(&s, "matmul_pack", &bad, 1, &s.w, LS_INVALID);
    bad.pack.m = INT64_MAX;
    refused(&s, "matmul_pack", &bad, 1, &s.w, LS_INVALID);
    bad = good, bad.pack.threads = 0;
    refused(&s, "matmul_pack", &bad, 1, &s.w, LS_INVALID);
    refused(&s, "matmul_packed", &bad, 2, inputs, LS_INVALID);
    bad = good, bad.pack.k = N, bad.pack.n = K;
    refused(&s, "matmul_pack", &bad, 1, &s.w, LS_SHAPE);
    refused(&s, "matmul_pack", &good, 1, &s.x, LS_SHAPE);
    bad = good, bad.pack.m = ROWS / 2;
    refused(&s, "matmul_packed", &bad, 2, inputs, LS_SHAPE);
    bad = good, bad.pack.n = 2 * N; /* the packed weight is too small for that */
    refused(&s, "matmul_packed", &bad, 2, inputs, LS_SHAPE);
    bad = good, bad.act = LS__ACT_END;
    refused(&s, "matmul_packed", &bad, 2, inputs, LS_INVALID);
    refused(&s, "matmul_packed", &good, 3, inputs, LS_SHAPE); /* x is no bias */
    refused(&s, "matmul_packed", &good, 1, inputs, LS_INVALID);
    refused(&s, "matmul_packed", &good, 4, inputs, LS_INVALID);
    ls__graph_free(s.g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_product, clean),
        cmocka_unit_test_setup(test_transposed, clean),
        cmocka_unit_test_setup(test_bias_and_activation, clean),
        cmocka_unit_test_setup(test_one_packing_for_two, clean),
        cmocka_unit_test_setup(test_threads_are_kept, clean),
        cmocka_unit_test_setup(test_left_alone, clean),
        cmocka_unit_test_setup(test_trained_weight, clean),
        cmocka_unit_test_setup(test_rows, clean),
        cmocka_unit_test_setup(test_rows_refuse, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
