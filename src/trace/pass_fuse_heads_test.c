/*
 * Attention of heads that lie side by side, forward and trained: fused, with the same
 * bits. And programs that only look like it.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>

#include "trace/test_record.h"

enum { BATCH = 2, LONG = 9, HEADS = 3, WIDE = 4 };

typedef enum twist {
    PLAIN,
    NEGATIVE_AXES,
    Q_IS_RESULT,  /* fused all the same: it is still there */
    KEYS_FIRST,   /* the parts are k, q, v */
    TWO_PRODUCTS, /* the values are another product's */
    OTHER_ORDER,  /* heads become the last axis but one in another way */
    Y_IS_RESULT,
    DY_AS_IT_LIES, /* y is not transposed back */
    DK_IS_RESULT
} twist;

typedef struct program {
    twist twist;
    bool trained, causal;
    ls_dtype dtype;
} program;

static ls_tensor *to_heads(const program *s, ls_tensor *x)
{
    ls_tensor *heads = ls_reshape(x, LS_DIMS(BATCH, LONG, HEADS, WIDE));
    if (s->twist == OTHER_ORDER) /* the rows of two batches exchanged */
        return ls_reshape(
            ls_transpose(ls_reshape(x, LS_DIMS(LONG, BATCH, HEADS, WIDE)), LS_DIMS(1, 2, 0, 3)),
            LS_DIMS(BATCH, HEADS, LONG, WIDE));
    if (s->twist == NEGATIVE_AXES)
        return ls_transpose(heads, LS_DIMS(-4, -2, -3, -1));
    return ls_transpose(heads, LS_DIMS(0, 2, 1, 3));
}

/* in: x and another x [batch, long, 3 heads wide], dy [batch, long, heads wide]. */
static int attend(ls_tensor *const *in, ls_tensor **out, const void *user)
{
    const program *s = user;
    int n = 0;
    ls_tape *tape = s->trained ? ls_tape_open() : NULL;
    ls_value *parts = ls_split(in[0], 3, -1), *others = ls_split(in[1], 3, -1);
    ls_tensor *q = to_heads(s, ls_item(parts, s->twist == KEYS_FIRST));
    ls_tensor *k = to_heads(s, ls_item(parts, s->twist != KEYS_FIRST));
    ls_tensor *v = to_heads(s, ls_item(s->twist == TWO_PRODUCTS ? others : parts, 2));
    ls_tensor *heads = ls_attention(q, k, v, s->causal, 0.5), *y = heads;
    if (s->twist != DY_AS_IT_LIES)
        y = ls_transpose(y, LS_DIMS(0, 2, 1, 3));
    out[n++] = y = ls_reshape(y, LS_DIMS(BATCH, LONG, HEADS * WIDE));
    if (s->twist == Y_IS_RESULT)
        out[n++] = heads;
    if (s->twist == Q_IS_RESULT)
        out[n++] = q;
    if (!s->trained)
        return n;
    ls_tensor *loss = ls_sum(ls_mul(y, in[2]), LS_ALL_AXES, false);
    ls_tape_stop(tape);
    ls_tensor *wanted[3] = { in[0], in[1], k };
    ls_value *gradients =
        ls_gradients(tape, ls_leaf(loss), ls_tensors(s->twist == DK_IS_RESULT ? 3 : 2, wanted));
    out[n++] = ls_item(gradients, 0);
    if (s->twist == TWO_PRODUCTS)
        out[n++] = ls_item(gradients, 1);
    if (s->twist == DK_IS_RESULT)
        out[n++] = ls_item(gradients, 2);
    return n;
}

static void inputs(ls_dtype dtype, ls_tensor *in[3])
{
    const ls__spec wide = { LS_F32, 3, { BATCH, LONG, 3 * HEADS * WIDE } };
    const ls__spec narrow = { LS_F32, 3, { BATCH, LONG, HEADS * WIDE } };
    for (int i = 0; i < 3; i++)
        in[i] = ls_cast(some_numbers(i < 2 ? &wide : &narrow, (uint64_t)i + 1), dtype);
}

static void check(program s, bool fused)
{
    LS_FRAME {
        ls_tensor *in[3];
        inputs(s.dtype, in);
        ls__graph *g = record_step(attend, &s, 3, in);
        keeps_results(ls__pass_fuse_heads, g, in, 0);
        run_pass(ls__pass_dead, g);
        assert_int_equal(count_rows(g, "attention_qkv"), fused);
        assert_int_equal(count_rows(g, "attention_qkv_grad"), fused && s.trained);
        assert_int_equal(count_rows(g, "attention"), !fused);
        assert_int_equal(count_rows(g, "attention_grad"), !fused && s.trained);
        if (fused && s.twist != Q_IS_RESULT) {
            assert_int_equal(count_rows(g, "split"), 0);
            assert_int_equal(count_rows(g, "transpose"), 0);
            assert_int_equal(count_rows(g, "concat"), 0);
        }
        ls__graph_free(g);
    }
}

static void fuses(void **state)
{
    (void)state;
    for (int trained = 0; trained < 2; trained++)
        for (int causal = 0; causal < 2; causal++)
            for (twist t = PLAIN; t <= Q_IS_RESULT; t++)
                check((program){ t, trained, causal, LS_F32 }, true);
}

static void stays_apart(void **state)
{
    (void)state;
    for (int trained = 0; trained < 2; trained++) {
        for (twist t = KEYS_FIRST; t <= DY_AS_IT_LIES; t++)
            check((program){ t, trained, true, LS_F32 }, false);
        check((program){ PLAIN, trained, true, LS_F64 }, false);
        check((program){ PLAIN, trained, true, LS_BF16 }, false);
    }
    check((program){ DK_IS_RESULT, true, true, LS_F32 }, false);
}

static void traced(void **state)
{
    (void)state;
    for (int trained = 0; trained < 2; trained++)
        LS_FRAME {
            program s = { PLAIN, trained, true, LS_F32 };
            ls_tensor *in[3];
            inputs(LS_F32, in);
            traces_alike("fuse-heads", attend, &s, 3, in, 0);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(fuses, clean),
        cmocka_unit_test_setup(stays_apart, clean),
        cmocka_unit_test_setup(traced, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
