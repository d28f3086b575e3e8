/*
 * loss.h: losses of one replica, scaled so that their sum over replicas is the loss of the
 * whole batch.
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

LS_END_DECLS

#endif
