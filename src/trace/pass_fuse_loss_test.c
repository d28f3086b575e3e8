/*
 * Softmax losses with their gradient: recorded training steps keep their bits and
 * lose the probabilities; what must stay apart stays apart; errors are the loss's.
 */
#include <lockstep/ops.h>
#include <lockstep/tape.h>
#include <stdio.h>

#include "ops/variable.h"
#include "trace/test_record.h"

enum { ROWS = 5, CLASSES = 37 };

typedef enum twist {
    PLAIN,
    PER_ROW,       /* no mean: the gradient of a sum */
    WEIGHTED,      /* by an argument */
    USES_P,        /* the probabilities are wanted as well */
    SQUARED,       /* dloss depends on the loss */
    SCALED_BY_READ /* dloss depends on a read that comes after the loss */
} twist;

typedef struct kind {
    bool dense;
    ls_dtype dtype;
    twist twist;
    ls__cell *cell;
} kind;

static ls_tensor *loss_and_p(const kind *k, ls_tensor *logits, ls_tensor *labels, ls_tensor **p)
{
    const ls_op *op = ls_op_find(k->dense ? "softmax_xent" : "sparse_softmax_xent");
    ls_tensor *in[2] = { logits, labels }, *out[2] = { NULL };
    assert_int_equal(ls__call(op, NULL, 2, in, 0, NULL, out), LS_OK);
    *p = out[1];
    return out[0];
}

static int train(ls_tensor *const *in, ls_tensor **out, const void *user)
{
    const kind *k = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *p, *total, *logits = ls_scale(in[0], 3), *loss = loss_and_p(k, logits, in[1], &p);
    switch (k->twist) {
    case PER_ROW:
        total = ls_sum(loss, LS_ALL_AXES, false);
        break;
    case WEIGHTED:
        total = ls_mean(ls_mul(loss, in[2]), LS_ALL_AXES, false);
        break;
    case USES_P:
        total = ls_add(ls_mean(loss, LS_ALL_AXES, false), ls_sum(p, LS_ALL_AXES, false));
        break;
    case SQUARED:
        total = ls_mean(ls_mul(loss, loss), LS_ALL_AXES, false);
        break;
    case SCALED_BY_READ:
        total = ls_mul(ls_mean(loss, LS_ALL_AXES, false), ls__cell_read_op(k->cell));
        break;
    default:
        total = ls_mean(loss, LS_ALL_AXES, false);
    }
    out[0] = total;
    out[1] = ls_gradient(tape, total, in[0]);
    out[2] = loss;
    return 3;
}

/* some_numbers of bf16, too. */
static ls_tensor *numbers(ls_dtype dtype, int rank, const int64_t *dims, uint64_t salt)
{
    ls__spec spec;
    assert_int_equal(ls__spec_make(&spec, "test", LS_F32, rank, dims), LS_OK);
    return ls_cast(some_numbers(&spec, salt), dtype);
}

static void arguments(const kind *k, ls_tensor **in)
{
    const int64_t label[ROWS] = { 0, 36, 7, 7, 20 };
    in[0] = numbers(k->dtype, LS_DIMS(ROWS, CLASSES), 3);
    in[1] = k->dense ? numbers(k->dtype, LS_DIMS(ROWS, CLASSES), 4)
                     : ls_from(LS_I64, LS_DIMS(ROWS), label);
    in[2] = numbers(k->dtype, LS_DIMS(ROWS), 5);
}

static void trained(bool dense, ls_dtype dtype, twist t, bool fused)
{
    kind k = { dense, dtype, t, NULL };
    const ls__spec number = { .dtype = dtype };
    const char *both = dense ? "softmax_xent_both" : "sparse_softmax_xent_both";
    const char *gradient = dense ? "softmax_xent_grad" : "sparse_softmax_xent_grad";
    assert_int_equal(ls__cell_new("scale", &number, &k.cell), LS_OK);
    LS_FRAME {
        ls_tensor *in[3];
        arguments(&k, in);
        ls__graph *g = record_step(train, &k, 3, in);
        assert_int_equal(count_rows(g, gradient), 1);
        keeps_results(ls__pass_fuse_loss, g, in, 0);
        assert_int_equal(count_rows(g, both), fused);
        assert_int_equal(count_rows(g, gradient), !fused);
        assert_int_equal(count_rows(g, dense ? "softmax_xent" : "sparse_softmax_xent"), !fused);
        ls__graph_free(g);
    }
    ls__cell_unref(k.cell);
}

static void fuses(void **state)
{
    (void)state;
    for (int dense = 0; dense < 2; dense++)
        for (int wide = 0; wide < 2; wide++)
            for (twist t = PLAIN; t <= WEIGHTED; t++)
                trained(dense, wide ? LS_F64 : LS_F32, t, true);
}

static void traced(void **state)
{
    (void)state;
    for (int dense = 0; dense < 2; dense++)
        LS_FRAME {
            kind k = { dense, LS_F32, PLAIN, NULL };
            ls_tensor *in[3];
            arguments(&k, in);
            traces_alike("fuse-loss", train, &k, 3, in, 0);
        }
}

static void stays_apart(void **state)
{
    (void)state;
    for (int dense = 0; dense < 2; dense++) {
        trained(dense, LS_F32, USES_P, false);
        trained(dense, LS_F32, SQUARED, false);
        trained(dense, LS_F32, SCALED_BY_READ, false);
        trained(dense, LS_BF16, PLAIN, false);
    }
}

/* By hand: p is a result of the step; two gradients; other labels. */
static void by_hand(bool p_out, int gradients, bool other_labels, bool fused)
{
    LS_FRAME {
        const ls__spec logits = { LS_F32, 2, { 3, 4 } }, labels = { LS_I32, 1, { 3 } },
                       rows = { LS_F32, 1, { 3 } };
        ls__graph *g = ls__graph_new("test");
        g->calls = 1; /* what `where` of its nodes says */
        int x = ls__graph_input(g, &logits), t = ls__graph_input(g, &labels);
        int d = ls__graph_input(g, &rows), u = ls__graph_input(g, &labels);
        ls__node *loss = ls__graph_call(g, NULL, ls_op_find("sparse_softmax_xent"), NULL, 2,
                                        (const int[]){ x, t });
        int p = loss->outputs[1];
        ls__graph_output(g, loss->outputs[0]);
        for (int i = 0; i < gradients; i++)
            ls__graph_output(g, add_call(g, "sparse_softmax_xent_grad", NULL, 3,
                                         (const int[]){ p, other_labels ? u : t, d }));
        if (p_out)
            ls__graph_output(g, p);
        const int32_t first[3] = { 0, 3, 1 }, second[3] = { 2, 2, 2 };
        ls_tensor *in[4] = { some_numbers(&logits, 1), ls_from(LS_I32, LS_DIMS(3), first),
                             some_numbers(&rows, 2), ls_from(LS_I32, LS_DIMS(3), second) };
        keeps_results(ls__pass_fuse_loss, g, in, 0);
        assert_int_equal(count_rows(g, "sparse_softmax_xent_both"), fused);
        ls__graph_free(g);
    }
}

static void graphs_by_hand(void **state)
{
    (void)state;
    by_hand(false, 1, false, true);
    by_hand(true, 1, false, false);
    by_hand(false, 2, false, false);
    by_hand(false, 1, true, false);
    by_hand(false, 0, false, false);
}

static void error_names_the_loss(void **state)
{
    (void)state;
    LS_FRAME {
        const ls__spec logits = { LS_F32, 2, { 3, 4 } }, rows = { LS_F32, 1, { 3 } };
        const int32_t label[3] = { 0, 4, 1 };
        ls_tensor *in[3] = { some_numbers(&logits, 1), ls_from(LS_I32, LS_DIMS(3), label),
                             some_numbers(&rows, 2) };
        ls_tensor *out[2];
        char want[512];
        assert_int_equal(ls__call(ls_op_find("sparse_softmax_xent"), NULL, 2, in, 0, NULL, out),
                         LS_INVALID);
        snprintf(want, sizeof want, "%s", ls_error_text());
        ls_error();
        assert_int_equal(
            ls__call(ls_op_find("sparse_softmax_xent_both"), NULL, 3, in, 0, NULL, out),
            LS_INVALID);
        assert_string_equal(ls_error_text(), want);
        failed(LS_INVALID);
        in[2] = in[0];
        assert_int_equal(
            ls__call(ls_op_find("sparse_softmax_xent_both"), NULL, 3, in, 0, NULL, out), LS_SHAPE);
        failed(LS_SHAPE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(fuses, clean),
        cmocka_unit_test_setup(traced, clean),
        cmocka_unit_test_setup(stays_apart, clean),
        cmocka_unit_test_setup(graphs_by_hand, clean),
        cmocka_unit_test_setup(error_names_the_loss, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
