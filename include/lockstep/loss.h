/*
 * loss.h: losses of one replica, scaled so that their sum over replicas is the loss of the
 * whole batch; and losses of each row beside those of ops.h.
 *
 * How to use it
 *
 *     ls_tensor *each = ls_sparse_softmax_xent(logits, y);           // one loss a row
 *     ls_tensor *loss = ls_compute_average_loss(each, GLOBAL_BATCH);
 *     loss = ls_add(loss, ls_scale_regularization_loss(penalty));    // the same on every replica
 *     ls_minimize(adam, tape, loss, n, variables);                   // sums the gradients
 *
 * ls_mean would divide by the rows of this replica alone, and the sum of V such means is V times
 * too much. As tf.nn.compute_average_loss and tf.nn.scale_regularization_loss.
 */
#ifndef LOCKSTEP_LOSS_H
#define LOCKSTEP_LOSS_H

#include <lockstep/tensor.h>

LS_BEGIN_DECLS

/* The sum of all elements of `per_example` (float, rank 1 or more) divided by the global
 * batch. 0 stands for the rows of this replica times the number of replicas: right when all have as
 * many; LS_STATE in cross-replica context, which has no rows. 0 rows have a loss of 0. */
LS_API ls_tensor *ls_compute_average_loss(ls_tensor *per_example, int64_t global_batch);

/* The same of per_example * weights. Weights (numbers or bools) have the shape of `per_example` or
 * broadcast to it; those of one axis less stand for all of the last one ([n] for [n, t]), and a last
 * axis of 1 too many is left out ([n, 1] for [n]). They do not change what is divided by. */
LS_API ls_tensor *ls_compute_weighted_average_loss(ls_tensor *per_example, ls_tensor *weights,
                                                   int64_t global_batch);

/* The sum of all elements of a loss that does not depend on the batch, divided by the number of
 * replicas. LS_STATE in cross-replica context. */
LS_API ls_tensor *ls_scale_regularization_loss(ls_tensor *loss);

/* ---- one loss a row (ls_loss_fn, model.h) -------------------------------------------------------
 *
 * As Keras's of these names; ops.h has ls_sparse_softmax_xent, ls_softmax_xent and ls_mse. Outputs
 * and labels are floats of one dtype and shape, [.., width], or it is LS_SHAPE; the result is [..]. */

LS_API ls_tensor *ls_mae(ls_tensor *prediction, ls_tensor *target); /* mean of |difference| */
/* The mean of d^2 / 2 where |d| is at most delta (1), else of delta (|d| - delta / 2). */
LS_API ls_tensor *ls_huber(ls_tensor *prediction, ls_tensor *target);
LS_API ls_tensor *ls_huber_delta(ls_tensor *prediction, ls_tensor *target, double delta);
/* The mean of max(0, 1 - label * output); labels are -1 and 1. */
LS_API ls_tensor *ls_hinge(ls_tensor *outputs, ls_tensor *labels);
/* The mean of ls_sigmoid_xent: labels in 0 .. 1, outputs are logits. */
LS_API ls_tensor *ls_binary_xent(ls_tensor *logits, ls_tensor *labels);
/* The sum of label * log(label / output); both are distributions, taken to be at least 1e-7. */
LS_API ls_tensor *ls_kl_divergence(ls_tensor *outputs, ls_tensor *labels);

/* Distributions [.., classes] with `amount` (0 to 1) of each given to all classes alike:
 * ls_softmax_xent(logits, ls_smooth_labels(ls_one_hot(y, 10, LS_F32), 0.1)). */
LS_API ls_tensor *ls_smooth_labels(ls_tensor *labels, double amount);

LS_END_DECLS

#endif
