/*
 * What the executor tells the tape, and what the optimizer asks of it.
 */
#ifndef LS__DISPATCH_TAPE_H
#define LS__DISPATCH_TAPE_H

#include <lockstep/operator.h>
#include <lockstep/tape.h>

/* Whether any tape of this thread is noting. */
bool ls__tape_noting(void);

/* From pause to resume, which takes what pause gave, tapes opened before note nothing on
 * this thread; those opened in between note as usual, and nothing any more after it. Gradients
 * can be asked of either at any time. Pauses nest. */
int ls__tape_pause(void);
void ls__tape_resume(int before);

/* Notes one call, when a tape is noting. Only rows with a gradient need be noted. */
ls_status ls__tape_note(const ls_op *op, const void *attrs, int n_inputs, ls_tensor *const *inputs,
                        int n_outputs, ls_tensor *const *outputs);

/* The gradients of sum_i <ys[i], seeds[i]> with respect to xs; a NULL seed
 * stands for ones. Writes handles of the innermost frame to `out`, and how many of
 * the xs some y depends on to `connected` (which may be NULL). */
ls_status ls__gradients(ls_tape *tape, int n_ys, ls_tensor *const *ys, ls_tensor *const *seeds,
                        int n_xs, ls_tensor *const *xs, ls_tensor **out, int *connected);

/* ---- the log, between tape.c (which writes it) and gradient.c (which reads it) -- */

typedef struct ls__note {
    const ls_op *op;
    const void *attrs;
    int n_inputs;
    int n_outputs;
    ls_tensor **inputs; /* handles of the log's own */
    ls_tensor **outputs;
} ls__note;

/* The notes a tape sees, as indices for ls__tape_get; LS_STATE when the tape is
 * not of this thread or has closed. */
ls_status ls__tape_range(ls_tape *tape, const char *who, size_t *begin, size_t *end);
ls__note ls__tape_get(const ls_tape *tape, size_t index);

#endif
