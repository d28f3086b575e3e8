/*
 * Attention written by hand, forward and trained, in all the ways the pass knows:
 * fused, and the same up to the order of sums. And the ways that are none.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>

#include "ops/attention.h"
#include "trace/test_record.h"

enum { BATCH = 2, HEADS = 3, LONG = 9, WIDE = 5, VALUES = 4 };

typedef enum form { BY_PRODUCT, TRANSPOSED, ROTATED } form; /* how k becomes k^T */
typedef enum scaling { NONE, TIMES, TIMES_LEFT, DIVIDED, QUERY } scaling;
typedef enum masking {
    OPEN,
    ADDED,
    ADDED_LEFT,
    WHERE,
    WHERE_NOT,
    OFF_BY_ONE,
    WHERE_OFF,
    MILD
} masking;
typedef enum twist {
    PLAIN,
    P_IS_RESULT,
    SCORES_ARE_RESULT,
    P_USED_TWICE,
    SECOND_PRODUCT, /* with other values */
    OTHER_AXIS,
    DP_IS_RESULT, /* a gradient of p is asked for */
    ONLY_V        /* q and k are not trained */
} twist;

typedef struct program {
    form form;
    scaling scaling;
    masking masking;
    twist twist;
    bool trained;
    ls_dtype dtype;
} program;

/* [LONG, LONG]: `low` above the diagonal (moved by `by`), `high` elsewhere. */
static ls_tensor *triangle(ls_dtype dtype, int by, double high, double low)
{
    float m[LONG * LONG];
    for (int i = 0; i < LONG * LONG; i++)
        m[i] = (float)(i % LONG > i / LONG + by ? low : high);
    return ls_cast(ls_from(LS_F32, LS_DIMS(LONG, LONG), m), dtype);
}

static ls_tensor *masked(const program *s, ls_tensor *scores)
{
    ls_dtype t = s->dtype;
    ls_tensor *low = ls_scalar(t, -INFINITY);
    switch (s->masking) {
    case ADDED:
        return ls_add(scores, triangle(t, 0, 0, -1e9));
    case ADDED_LEFT:
        return ls_add(triangle(t, 0, 0, -INFINITY), scores);
    case WHERE:
        return ls_where(ls_cast(triangle(t, 0, 1, 0), LS_BOOL), scores, low);
    case WHERE_NOT:
        return ls_where(ls_cast(triangle(t, 0, 0, 1), LS_BOOL), low, scores);
    case OFF_BY_ONE:
        return ls_add(scores, triangle(t, 1, 0, -1e9));
    case WHERE_OFF:
        return ls_where(ls_cast(triangle(t, 1, 1, 0), LS_BOOL), scores, low);
    case MILD:
        return ls_add(scores, triangle(t, 0, 0, -3));
    default:
        return scores;
    }
}

static ls_tensor *scaled(const program *s, ls_tensor *x)
{
    ls_tensor *c = ls_full(s->dtype, LS_DIMS(1), 0.375);
    switch (s->scaling) {
    case TIMES:
        return ls_mul(x, c);
    case TIMES_LEFT:
        return ls_mul(c, x);
    case DIVIDED:
        return ls_div(x, ls_scalar(s->dtype, 2.5));
    default:
        return x;
    }
}

/* Arguments q, k, v as [batch, heads, long, width]; ROTATED: k as [batch, long, heads, width]. */
static ls_tensor *scores_of(const program *s, ls_tensor *q, ls_tensor *k)
{
    static const int64_t last_two[4] = { 0, 1, 3, 2 }, rotated[4] = { 0, 2, 3, 1 };
    if (s->scaling == QUERY)
        q = ls_scale(q, 0.375);
    if (s->form == BY_PRODUCT)
        return ls_matmul_t(q, false, k, true);
    return ls_matmul(q, ls_transpose(k, 4, s->form == TRANSPOSED ? last_two : rotated));
}

static int attend(ls_tensor *const *in, ls_tensor **out, const void *user)
{
    const program *s = user;
    int n = 0;
    ls_tape *tape = s->trained ? ls_tape_open() : NULL;
    ls_tensor *scores = masked(s, scaled(s, scores_of(s, in[0], in[1])));
    ls_tensor *p = ls_softmax(scores, s->twist == OTHER_AXIS ? 2 : -1);
    ls_tensor *y = ls_matmul(p, in[2]);
    out[n++] = y;
    if (s->twist == P_USED_TWICE)
        out[n++] = ls_neg(p);
    if (s->twist == SECOND_PRODUCT)
        out[n++] = ls_matmul(p, in[3]);
    if (s->twist == P_IS_RESULT)
        out[n++] = p;
    if (s->twist == SCORES_ARE_RESULT)
        out[n++] = scores;
    if (!s->trained)
        return n;
    ls_tensor *loss = ls_sum(ls_mul(y, in[3]), LS_ALL_AXES, false);
    ls_tape_stop(tape);
    ls_tensor *wanted[4] = { in[0], in[1], in[2], p };
    int from = s->twist == ONLY_V ? 2 : 0, to = s->twist == DP_IS_RESULT ? 4 : 3;
    ls_value *gradients = ls_gradients(tape, ls_leaf(loss), ls_tensors(to - from, wanted + from));
    for (int i = 0; i < to - from; i++)
        out[n++] = ls_item(gradients, i);
    return n;
}

static ls_tensor *numbers(ls_dtype dtype, int rank, const int64_t *dims, uint64_t salt)
{
    ls__spec spec;
    assert_int_equal(ls__spec_make(&spec, "test", LS_F32, rank, dims), LS_OK);
    return ls_cast(ls_scale(some_numbers(&spec, salt), 2), dtype);
}

/* Nodes that are left of a fused program, dead ones aside, but for the transposes. */
static void all_gone(const ls__graph *g)
{
    static const char *const rows[] = {
        "matmul", "softmax", "softmax_grad", "where", "add", "div"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(count_rows(g, rows[i]), 0);
}

static void check(program s, bool fused)
{
    LS_FRAME {
        ls_dtype t = s.dtype;
        ls_tensor *in[4] = { numbers(t, LS_DIMS(BATCH, HEADS, LONG, WIDE), 1),
                             s.form == ROTATED ? numbers(t, LS_DIMS(BATCH, LONG, HEADS, WIDE), 2)
                                               : numbers(t, LS_DIMS(BATCH, HEADS, LONG, WIDE), 2),
                             numbers(t, LS_DIMS(BATCH, HEADS, LONG, VALUES), 3),
                             numbers(t, LS_DIMS(BATCH, HEADS, LONG, VALUES), 4) };
        ls__graph *g = record_step(attend, &s, 4, in);
        double tolerance = t == LS_F64 ? 1e-13 : t == LS_BF16 ? 0.05 : 3e-6;
        keeps_results(ls__pass_fuse_attention, g, in, fused ? tolerance : 0);
        assert_int_equal(count_rows(g, "attention"), fused);
        assert_int_equal(count_rows(g, "attention_grad"), fused && s.trained);
        if (fused)
            all_gone(g);
        ls__graph_free(g);
    }
}

static void fuses(void **state)
{
    (void)state;
    program s = { .dtype = LS_F32 };
    for (int trained = 0; trained < 2; trained++)
        for (s.form = BY_PRODUCT; s.form <= ROTATED; s.form++)
            for (s.scaling = NONE; s.scaling <= QUERY; s.scaling++)
                for (s.masking = OPEN; s.masking <= WHERE_NOT; s.masking++) {
                    s.trained = trained;
                    check(s, true);
                }
    for (int trained = 0; trained < 2; trained++) {
        check((program){ BY_PRODUCT, TIMES, WHERE, PLAIN, trained, LS_F64 }, true);
        check((program){ ROTATED, TIMES, ADDED, PLAIN, trained, LS_BF16 }, true);
    }
}

static void traced(void **state)
{
    (void)state;
    for (int trained = 0; trained < 2; trained++)
        LS_FRAME {
            program s = { TRANSPOSED, TIMES, ADDED, PLAIN, trained, LS_F32 };
            ls_tensor *in[4];
            for (int i = 0; i < 4; i++)
                in[i] = numbers(LS_F32, LS_DIMS(BATCH, HEADS, LONG, WIDE), (uint64_t)i);
            traces_alike("fuse-attention", attend, &s, 4, in, 3e-6);
        }
}

static void stays_apart(void **state)
{
    (void)state;
    for (int trained = 0; trained < 2; trained++) {
        for (twist t = P_IS_RESULT; t <= OTHER_AXIS; t++)
            check((program){ BY_PRODUCT, TIMES, OPEN, t, trained, LS_F32 }, false);
        for (masking m = OFF_BY_ONE; m <= MILD; m++)
            check((program){ BY_PRODUCT, TIMES, m, PLAIN, trained, LS_F32 }, false);
    }
    check((program){ BY_PRODUCT, TIMES, WHERE, DP_IS_RESULT, true, LS_F32 }, false);
    check((program){ BY_PRODUCT, TIMES, WHERE, ONLY_V, true, LS_F32 }, false);
}

/* k transposed and dk transposed back: nothing of it is left to do. */
static void transposes_cancel(void **state)
{
    (void)state;
    for (form f = TRANSPOSED; f <= ROTATED; f++)
        LS_FRAME {
            program s = { f, TIMES, WHERE, PLAIN, true, LS_F32 };
            ls_tensor *q = numbers(LS_F32, LS_DIMS(2, 2, LONG, 2), 1);
            ls_tensor *in[4] = { q, f == ROTATED ? numbers(LS_F32, LS_DIMS(2, LONG, 2, 2), 1) : q,
                                 q, q };
            ls__graph *g = record_step(attend, &s, 4, in);
            run_pass(ls__pass_fuse_attention, g);
            ls__uses uses;
            int used = 0;
            assert_int_equal(ls__uses_find(g, &uses), LS_OK);
            for (int i = 0; i < g->n_nodes; i++)
                used += ls__node_is(g->nodes[i], "transpose") &&
                        ls__uses_count(&uses, g->nodes[i]->outputs[0]) > 0;
            assert_int_equal(used, f == TRANSPOSED ? 0 : 2);
            ls__uses_free(&uses);
            ls__graph_free(g);
        }
}

/* A backward pass that the program writes itself; in a way it is none of this forward's. */
typedef enum slip {
    RIGHT,
    OTHER_FACTOR,
    OTHER_DY,
    OTHER_V,
    OTHER_K,
    OTHER_Q,
    OTHER_MASK,
    TWO_DQ
} slip;

static int own_backward(ls_tensor *const *in, ls_tensor **out, const void *user)
{
    slip slipped = *(const slip *)user;
    const int64_t axis = -1;
    ls_tensor *q = in[0], *k = in[1], *v = in[2], *dy = in[3];
    ls_tensor *seen = ls_cast(triangle(LS_F32, 0, 1, 0), LS_BOOL), *other = ls_logical_not(seen);
    ls_tensor *scores = ls_scale(ls_matmul_t(q, false, k, true), 0.5);
    ls_tensor *p = ls_softmax(ls_where(seen, scores, ls_scalar(LS_F32, -1e30)), -1);
    out[0] = ls_matmul(p, v);
    ls_tensor *dp = ls_matmul_t(dy, false, slipped == OTHER_V ? k : v, true);
    ls_tensor *ds = ls__call2(ls_op_find("softmax_grad"), &axis, p, dp);
    ds = ls_where(slipped == OTHER_MASK ? other : seen, ds, ls_scalar(LS_F32, 0));
    ds = ls_scale(ds, slipped == OTHER_FACTOR ? 0.25 : 0.5);
    out[1] = ls_matmul(ds, slipped == OTHER_K ? v : k);
    out[2] = ls_matmul_t(ds, true, slipped == OTHER_Q ? v : q, false);
    out[3] = ls_matmul_t(p, true, slipped == OTHER_DY ? q : dy, false);
    if (slipped == TWO_DQ)
        out[4] = ls_neg(ls_matmul(ds, k));
    return slipped == TWO_DQ ? 5 : 4;
}

static void backward_must_fit(void **state)
{
    (void)state;
    for (slip s = RIGHT; s <= TWO_DQ; s++)
        LS_FRAME {
            ls_tensor *in[4];
            for (int i = 0; i < 4; i++)
                in[i] = numbers(LS_F32, LS_DIMS(2, LONG, 3), (uint64_t)i + 1);
            ls__graph *g = record_step(own_backward, &s, 4, in);
            keeps_results(ls__pass_fuse_attention, g, in, s == RIGHT ? 3e-6 : 0);
            assert_int_equal(count_rows(g, "attention"), s == RIGHT);
            ls__graph_free(g);
        }
}

/* The attributes, and shapes the row has no place for: one k for all heads. */
static int few_keys(ls_tensor *const *in, ls_tensor **out, const void *user)
{
    (void)user;
    out[0] = ls_matmul(ls_softmax(ls_matmul_t(in[0], false, in[1], true), -1), in[2]);
    return 1;
}

/* The program makes p^T dy itself before y; `common` gives the gradient that one. */
static ls_value *product_of_the_gradient_first(ls_value *in, void *user)
{
    (void)user;
    ls_tensor *q = ls_item(in, 0), *k = ls_item(in, 1), *v = ls_item(in, 2), *dy = ls_item(in, 3);
    ls_tape *tape = ls_tape_open();
    ls_tensor *p = ls_softmax(ls_matmul_t(q, false, k, true), -1);
    ls_tensor *early = ls_matmul_t(p, true, dy, false), *y = ls_matmul(p, v);
    ls_value *g = ls_gradients_from(tape, ls_tensors(1, &y), ls_tensors(1, &dy),
                                    ls_tensors(3, (ls_tensor *[]){ q, k, v }));
    return ls_tensors(5, (ls_tensor *[]){ y, ls_item(g, 0), ls_item(g, 1), ls_item(g, 2), early });
}

static void the_gradient_comes_after_the_forward_pass(void **state)
{
    (void)state;
    LS_FRAME {
        ls_tensor *in[4];
        const ls__spec heads = { LS_F32, 3, { 2, 5, 4 } };
        for (int i = 0; i < 4; i++)
            in[i] = some_numbers(&heads, (uint64_t)i + 1);
        ls_function *f = ls_trace(product_of_the_gradient_first, NULL);
        ls_value *want = product_of_the_gradient_first(ls_tensors(4, in), NULL);
        ls_value *got = ls_function_call(f, ls_tensors(4, in));
        if (!want || !got)
            fail_msg("%s", ls_error_report());
        for (int i = 0; i < 5; i++) {
            ls_tensor *far = ls_abs(ls_sub(ls_item(want, i), ls_item(got, i)));
            assert_true(ls_to_float(ls_max(far, LS_ALL_AXES, false)) < 1e-5f);
        }
        ls_function_free(f);
    }
}

static void attributes_and_shapes(void **state)
{
    (void)state;
    LS_FRAME {
        program s = { BY_PRODUCT, DIVIDED, ADDED, PLAIN, false, LS_F64 };
        ls_tensor *q = numbers(LS_F64, LS_DIMS(1, 2, LONG, 3), 1);
        ls_tensor *in[4] = { q, q, q, q };
        ls__graph *g = record_step(attend, &s, 4, in);
        run_pass(ls__pass_fuse_attention, g);
        const ls__attention_attrs *attrs = g->nodes[0]->attrs;
        assert_string_equal(g->nodes[0]->op->name, "attention");
        assert_true(attrs->causal == 1 && attrs->scale == 1 / 2.5);
        ls__graph_free(g);

        in[1] = numbers(LS_F64, LS_DIMS(1, 1, LONG, 3), 2);
        g = record_step(few_keys, NULL, 3, in);
        keeps_results(ls__pass_fuse_attention, g, in, 0);
        assert_int_equal(count_rows(g, "attention"), 0);
        ls__graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(fuses, clean),
        cmocka_unit_test_setup(traced, clean),
        cmocka_unit_test_setup(stays_apart, clean),
        cmocka_unit_test_setup(transposes_cancel, clean),
        cmocka_unit_test_setup(backward_must_fit, clean),
        cmocka_unit_test_setup(the_gradient_comes_after_the_forward_pass, clean),
        cmocka_unit_test_setup(attributes_and_shapes, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
