/*
 * The inside of <lockstep/events.h>: what becomes of an event on its way to the file.
 *
 *     ls_events_histogram -> events_histogram.c   values to buckets
 *     ls_events_graph     -> events_graph.c       a recorded step to nodes, named by events_names.c
 *     all of them         -> events_encode.c      to protobuf's bytes
 *                         -> events.c             framed, kept for some seconds, appended
 */
#ifndef LS__TRAIN_EVENTS_H
#define LS__TRAIN_EVENTS_H

#include <lockstep/events.h>

#include "base/buffer.h"

/* How long events wait for the disk, at most, when more come. For tests. */
void ls__events_wait(ls_events *e, double seconds);

/* ---- histograms ------------------------------------------------------------------------------- */

#define LS__BUCKETS 30 /* as many as TensorFlow's, by default */

/* Bucket i has edges[i] <= x < edges[i + 1], the last one also its right edge. */
typedef struct ls__histogram {
    double edges[LS__BUCKETS + 1];
    int64_t counts[LS__BUCKETS];
} ls__histogram;

/* Of the finite ones of `count` numbers. One value alone: all edges are it, and the last bucket has
 * all. None: zeros. */
void ls__histogram_of(ls_dtype dtype, const void *data, int64_t count, ls__histogram *out);

/* ---- bytes ---------------------------------------------------------------------------------------- */

/* Each adds the bytes of one tensorflow.Event. `wall`: seconds since 1970. */
void ls__event_version(ls__buffer *b, double wall);
void ls__event_scalar(ls__buffer *b, double wall, int64_t step, const char *tag, double value);
void ls__event_text(ls__buffer *b, double wall, int64_t step, const char *tag, const char *text);
void ls__event_histogram(ls__buffer *b, double wall, int64_t step, const char *tag,
                         const ls__histogram *h);

/* `graph` is the bytes of a tensorflow.GraphDef. */
void ls__event_graph(ls__buffer *b, double wall, const ls__buffer *graph);

/* ---- graphs ------------------------------------------------------------------------------------------ */

/* Adds the bytes of a tensorflow.GraphDef: the program the function last ran. Fails with LS_STATE when
 * there is none. Of a run on many replicas, it is replica 0's, with what is done at its meetings. */
ls_status ls__graph_def(const char *who, const ls_function *f, ls__buffer *b);

#endif
