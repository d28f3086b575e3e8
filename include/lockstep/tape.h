/*
 * tape.h: gradients.
 *
 * How to use it
 *
 * While a tape is open, every operator called on this thread is noted on it;
 * nothing has to be watched. Then ask for the gradient of any value with
 * respect to any other:
 *
 *     ls_tape *tape = ls_tape_open();
 *     ls_tensor *y = ls_mul(x, x);
 *     ls_tensor *dy = ls_gradient(tape, y, x);          // 2x
 *     ls_tensor *ddy = ls_gradient(tape, dy, x);        // 2: the tape still ran
 *
 * A value with several elements is summed first, so the gradient has the shape
 * of x. What y does not depend on has gradient zero. To hold a value constant:
 * ls_stop_gradient. A variable is differentiated through what ls_read gives:
 * ls_gradient(tape, loss, ls_read(w)) is right for any number of reads of w
 * since it was last written.
 *
 * A tape belongs to the innermost frame and closes with it. ls_tape_stop ends
 * the noting early (gradients can still be asked): the backward pass then
 * frees what it makes as it goes. Several tapes may be open at once.
 */
#ifndef LOCKSTEP_TAPE_H
#define LOCKSTEP_TAPE_H

#include <lockstep/value.h>

LS_BEGIN_DECLS

typedef struct ls_tape ls_tape;

LS_API ls_tape *ls_tape_open(void);
LS_API ls_status ls_tape_stop(ls_tape *tape);
LS_API ls_status ls_tape_close(ls_tape *tape);

/* d sum(y) / dx. */
LS_API ls_tensor *ls_gradient(ls_tape *tape, ls_tensor *y, ls_tensor *x);

/* For many at once: the gradients of the sum of all leaves of `ys` with
 * respect to every leaf of `xs`, in a value of the structure of `xs`. */
LS_API ls_value *ls_gradients(ls_tape *tape, ls_value *ys, ls_value *xs);

/* The same with the gradients that arrive at the ys given: `seeds` has the
 * structure and shapes of `ys` (a vector-Jacobian product). */
LS_API ls_value *ls_gradients_from(ls_tape *tape, ls_value *ys, ls_value *seeds,
                                   ls_value *xs);

/* The same value, through which no gradient flows. */
LS_API ls_tensor *ls_stop_gradient(ls_tensor *x);

/* A gradient may be sparse: rows of a table, named by index, the rest zero
 * (what ls_embedding gives). Operators take it as the dense tensor it stands
 * for; these look inside. ls_sparse_rows and ls_sparse_values of a dense
 * tensor fail with LS_INVALID. Rows may repeat; they add up in order, those of an
 * earlier lookup in the program before those of a later one. */
LS_API ls_tensor *ls_sparse(ls_tensor *rows, ls_tensor *values, int64_t table_rows);
LS_API bool ls_is_sparse(const ls_tensor *t);
LS_API ls_tensor *ls_sparse_rows(const ls_tensor *t);
LS_API ls_tensor *ls_sparse_values(const ls_tensor *t);
LS_API ls_tensor *ls_densify(ls_tensor *t);

/* Debugging: while set on this thread, an operator that makes a NaN (or an
 * infinity) out of inputs that have none fails with LS_INVALID and says which
 * operator, and where in which output; in a traced step also which call of the
 * step it is. LS_NUMERICS_OFF is the default: NaN is data. Returns what was set
 * before.
 *
 * What came in with a step's arguments, or was in a variable before, was not made:
 * it passes until ls_require_finite (ops.h), which then says where it came from.
 * A step that failed can be run again with this on, with the same arguments: it
 * is as if it had not been run before, the numbers it draws too. */
typedef enum ls_numerics { LS_NUMERICS_OFF, LS_NUMERICS_NAN, LS_NUMERICS_NAN_AND_INF } ls_numerics;
LS_API ls_numerics ls_check_numerics(ls_numerics check);

LS_END_DECLS

#endif
