/*
 * Events as protobuf. The messages are tensorflow.Event and what is in it: numbers of fields are
 * theirs (tensorflow/core/util/event.proto, core/framework/summary.proto, tensor.proto). They are
 * written by hand: a writer of five messages is smaller than a code generator in the build.
 *
 * Scalars are simple values, which every reader of event files knows; TensorBoard shows them
 * wherever it shows scalars. Texts and histograms are tensors with the name of the plugin they are
 * for, as TensorFlow 2 writes them: so edges and counts arrive as they are, in doubles. Fields come in
 * the order of their numbers and zeros are left out: the bytes are those of protobuf's own writer.
 */
#include <string.h>

#include "data/wire_write.h"
#include "train/events.h"

enum { EVENT_WALL_TIME = 1, EVENT_STEP, EVENT_VERSION, EVENT_GRAPH, EVENT_SUMMARY };
enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, METADATA_CLASS = 4, CLASS_TENSOR = 2 };
enum { PLUGIN_NAME = 1 };
enum { TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4, TENSOR_STRING = 8 };
enum { DTYPE_DOUBLE = 2, DTYPE_STRING = 7 };
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };

static void put_head(ls__buffer *b, double wall, int64_t step)
{
    ls__wire_put_double(b, EVENT_WALL_TIME, wall);
    if (step != 0)
        ls__wire_put_varint(b, EVENT_STEP, (uint64_t)step);
}

/* An event is a summary of one value: begin, put what it is, end. */
typedef struct nested {
    size_t summary, value;
} nested;

static nested begin_value(ls__buffer *b, double wall, int64_t step, const char *tag)
{
    put_head(b, wall, step);
    nested n = { .summary = ls__wire_begin(b, EVENT_SUMMARY) };
    n.value = ls__wire_begin(b, SUMMARY_VALUE);
    ls__wire_put_string(b, VALUE_TAG, tag);
    return n;
}

static void end_value(ls__buffer *b, nested n)
{
    ls__wire_end(b, n.value);
    ls__wire_end(b, n.summary);
}

static void put_metadata(ls__buffer *b, const char *plugin)
{
    size_t metadata = ls__wire_begin(b, VALUE_METADATA);
    size_t inner = ls__wire_begin(b, METADATA_PLUGIN);
    ls__wire_put_string(b, PLUGIN_NAME, plugin);
    ls__wire_end(b, inner);
    ls__wire_put_varint(b, METADATA_CLASS, CLASS_TENSOR);
    ls__wire_end(b, metadata);
}

static void put_shape(ls__buffer *b, int rank, const int64_t *dims)
{
    size_t shape = ls__wire_begin(b, TENSOR_SHAPE);
    for (int i = 0; i < rank; i++) {
        size_t dim = ls__wire_begin(b, SHAPE_DIM);
        ls__wire_put_varint(b, DIM_SIZE, (uint64_t)dims[i]);
        ls__wire_end(b, dim);
    }
    ls__wire_end(b, shape);
}

void ls__event_version(ls__buffer *b, double wall)
{
    put_head(b, wall, 0);
    ls__wire_put_string(b, EVENT_VERSION, "brain.Event:2");
}

void ls__event_scalar(ls__buffer *b, double wall, int64_t step, const char *tag, double value)
{
    nested n = begin_value(b, wall, step, tag);
    ls__wire_put_float(b, VALUE_SIMPLE, (float)value);
    end_value(b, n);
}

void ls__event_text(ls__buffer *b, double wall, int64_t step, const char *tag, const char *text)
{
    nested n = begin_value(b, wall, step, tag);
    size_t tensor = ls__wire_begin(b, VALUE_TENSOR);
    ls__wire_put_varint(b, TENSOR_DTYPE, DTYPE_STRING);
    put_shape(b, 0, NULL);
    ls__wire_put_string(b, TENSOR_STRING, text);
    ls__wire_end(b, tensor);
    put_metadata(b, "text");
    end_value(b, n);
}

void ls__event_histogram(ls__buffer *b, double wall, int64_t step, const char *tag,
                         const ls__histogram *h)
{
    double rows[LS__BUCKETS][3];
    for (int i = 0; i < LS__BUCKETS; i++) {
        rows[i][0] = h->edges[i];
        rows[i][1] = h->edges[i + 1];
        rows[i][2] = (double)h->counts[i];
    }
    nested n = begin_value(b, wall, step, tag);
    size_t tensor = ls__wire_begin(b, VALUE_TENSOR);
    ls__wire_put_varint(b, TENSOR_DTYPE, DTYPE_DOUBLE);
    put_shape(b, 2, (const int64_t[]){ LS__BUCKETS, 3 });
    ls__wire_put_bytes(b, TENSOR_CONTENT, rows, sizeof rows);
    ls__wire_end(b, tensor);
    put_metadata(b, "histograms");
    end_value(b, n);
}

void ls__event_graph(ls__buffer *b, double wall, const ls__buffer *graph)
{
    put_head(b, wall, 0);
    ls__wire_put_bytes(b, EVENT_GRAPH, graph->at, graph->used);
}
