/*
 * What a traced step looks like inside: prints one as it was recorded, and as it is
 * replayed. docs/tour.md shows the output.
 */
#include <lockstep.h>

#include <stdio.h>

static ls_variable *w, *b;

static ls_value *train_step(ls_value *batch, void *sgd)
{
    ls_tensor *x = ls_item(batch, 0), *y = ls_item(batch, 1);
    ls_tensor *weights = ls_read(w), *bias = ls_read(b);
    ls_tape *tape = ls_tape_open();
    ls_tensor *h = ls_relu(ls_dense(x, weights, bias));
    ls_tensor *loss = ls_mean(ls_sparse_softmax_xent(h, y), LS_ALL_AXES, false);
    ls_minimize(sgd, tape, loss, 2, (ls_variable *[]){ w, b });
    return ls_leaf(loss);
}

int main(void)
{
    w = ls_variable_new("w", ls_glorot_uniform(LS_F32, LS_DIMS(4, 3)), true);
    b = ls_variable_new("b", ls_zeros(LS_F32, LS_DIMS(3)), true);
    ls_optimizer *sgd = ls_sgd(NULL);
    ls_function *step = ls_trace_with(LS_TRACE(.name = "train_step"), train_step, sgd);
    ls_tensor *batch[] = { ls_ones(LS_F32, LS_DIMS(8, 4)), ls_zeros(LS_I32, LS_DIMS(8)) };

    if (ls_function_call(step, ls_tensors(2, batch))) {
        printf("recorded:\n%s\n", ls_function_dump(step, LS_DUMP_TEXT, false));
        printf("compiled:\n%s", ls_function_dump(step, LS_DUMP_TEXT, true));
    }
    ls_function_free(step);
    ls_optimizer_free(sgd);
    ls_variable_free(w);
    ls_variable_free(b);
    if (ls_error_pending()) {
        fprintf(stderr, "traced_step: %s\n", ls_error_report());
        return 1;
    }
    return 0;
}
