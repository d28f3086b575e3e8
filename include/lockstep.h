/*
 * lockstep.h: all of Lockstep.
 *
 * The first program: fit a line to four points.
 *
 *     #include <lockstep.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         ls_tensor *x = ls_from(LS_F32, LS_DIMS(4, 1), (float[]){ 0, 1, 2, 3 });
 *         ls_tensor *y = ls_from(LS_F32, LS_DIMS(4, 1), (float[]){ 1, 3, 5, 7 });
 *         ls_variable *w = ls_variable_new("w", ls_zeros(LS_F32, LS_DIMS(1, 1)), true);
 *         ls_variable *b = ls_variable_new("b", ls_zeros(LS_F32, LS_DIMS(1)), true);
 *         ls_optimizer *sgd = ls_sgd(LS_SGD(.rate = 0.1));
 *
 *         for (int step = 0; step < 200; step++)
 *             LS_FRAME {                                      // frees what the step makes
 *                 ls_tape *tape = ls_tape_open();
 *                 ls_tensor *guess = ls_dense(x, ls_read(w), ls_read(b));
 *                 ls_tensor *loss = ls_mean(ls_mse(guess, y), LS_ALL_AXES, false);
 *                 ls_minimize(sgd, tape, loss, 2, (ls_variable *[]){ w, b });
 *             }
 *         printf("y = %.2f x + %.2f\n", ls_to_float(ls_read(w)), ls_to_float(ls_read(b)));
 *
 *         ls_optimizer_free(sgd);
 *         ls_variable_free(w);
 *         ls_variable_free(b);
 *         if (ls_error_pending())                             // one check for all of it
 *             fprintf(stderr, "%s\n", ls_error_report());
 *         return 0;
 *     }
 *
 * Read on in this order: status.h (errors), tensor.h (tensors and frames),
 * ops.h (the operators), tape.h (gradients), variable.h, optimizer.h, function.h
 * (record a step once, replay it), strategy.h (run it on many replicas), data.h
 * (datasets), input.h (datasets for replicas), records.h, image.h, train.h (models,
 * losses, metrics, fit, checkpoints, TensorBoard: it leads to a header for each),
 * random.h, device.h, value.h, collective.h (for threads of your own), extended.h
 * to build on strategies, and operator.h to add operators of your own.
 */
#ifndef LOCKSTEP_H
#define LOCKSTEP_H

#include <lockstep/collective.h>
#include <lockstep/data.h>
#include <lockstep/device.h>
#include <lockstep/extended.h>
#include <lockstep/function.h>
#include <lockstep/image.h>
#include <lockstep/input.h>
#include <lockstep/loss.h>
#include <lockstep/operator.h>
#include <lockstep/ops.h>
#include <lockstep/random.h>
#include <lockstep/records.h>
#include <lockstep/status.h>
#include <lockstep/strategy.h>
#include <lockstep/tape.h>
#include <lockstep/tensor.h>
#include <lockstep/train.h>
#include <lockstep/value.h>
#include <lockstep/variable.h>

LS_BEGIN_DECLS

/* "0.1.0". */
LS_API const char *ls_version(void);

/* The libraries that a build can use, by number from 0: its name, or NULL beyond the last. `*version`
 * (may be NULL) is "2.9.0", or NULL when this build does without it. */
LS_API const char *ls_build_library(int i, const char **version);

LS_END_DECLS

#endif
