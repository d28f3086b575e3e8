/*
 * events.h: event files for TensorBoard.
 *
 * How to use it
 *
 *     ls_events *e = ls_events_open("logs/run1");
 *     ls_events_scalar(e, step, "loss", loss);
 *     ls_events_histogram(e, step, "conv/kernel", ls_read(kernel));
 *     ls_events_graph(e, step_function);
 *     ls_events_close(e);
 *
 *     $ tensorboard --logdir logs
 *
 * One writer for a directory at a time. What was written is on the disk after ls_events_flush, which
 * is also done when some seconds have passed since the last time.
 *
 * A failure to write (LS_IO: a full disk) loses the events that were not on the disk yet, never those
 * that are: the file stays one that is read. The writer can be used on. (A fit with ls_event_log
 * fails then, as with any callback; its checkpoint is saved.)
 */
#ifndef LOCKSTEP_EVENTS_H
#define LOCKSTEP_EVENTS_H

#include <lockstep/function.h>
#include <lockstep/tensor.h>

LS_BEGIN_DECLS

typedef struct ls_events ls_events;

/* Makes the directory, and a new file in it. Yours until ls_events_close, which takes NULL and
 * frees it even when it says that something could not be written. */
LS_API ls_events *ls_events_open(const char *directory);
LS_API ls_status ls_events_close(ls_events *e);
LS_API ls_status ls_events_flush(ls_events *e);

/* Tags and texts are UTF-8; a text may be Markdown. Scalars are stored in 32 bits. */
LS_API ls_status ls_events_scalar(ls_events *e, int64_t step, const char *tag, double value);
LS_API ls_status ls_events_text(ls_events *e, int64_t step, const char *tag, const char *text);

/* Of all elements: a number tensor of any shape. Those that are not finite are left out. 30 buckets of
 * equal width, as TensorFlow makes. */
LS_API ls_status ls_events_histogram(ls_events *e, int64_t step, const char *tag, ls_tensor *values);

/* The program last called, as recorded: operators, what flows between them, variables; grouped by the
 * layers in variables' names ("conv/kernel"), gradients and updates apart. Of a run on many replicas:
 * replica 0's, with what is done where replicas meet. LS_STATE when it was not called yet. */
LS_API ls_status ls_events_graph(ls_events *e, const ls_function *function);

LS_END_DECLS

#endif
