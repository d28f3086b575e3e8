/*
 * Nodes of a GraphDef as protobuf; numbers of fields are those of tensorflow/core/framework's
 * node_def.proto, attr_value.proto and tensor_shape.proto.
 */
#include "train/events_node.h"

#include "data/wire_write.h"

enum { GRAPH_NODE = 1 };
enum { NODE_NAME = 1, NODE_OP = 2, NODE_INPUT = 3, NODE_ATTR = 5 };
enum { ATTR_KEY = 1, ATTR_VALUE = 2 };
enum { VALUE_LIST = 1, VALUE_STRING = 2, VALUE_INT = 3, VALUE_FLOAT = 4, VALUE_TYPE = 6 };
enum { LIST_INT = 3, LIST_SHAPE = 7 };
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };

size_t ls__node_def_begin(ls__buffer *b, const char *name, const char *op)
{
    size_t node = ls__wire_begin(b, GRAPH_NODE);
    ls__wire_put_string(b, NODE_NAME, name);
    ls__wire_put_string(b, NODE_OP, op);
    return node;
}

void ls__node_def_input(ls__buffer *b, const char *name, int index)
{
    size_t input = ls__wire_begin(b, NODE_INPUT);
    ls__buffer_print(b, "%s", name);
    if (index > 0)
        ls__buffer_print(b, ":%d", index);
    ls__wire_end(b, input);
}

/* ---- attributes --------------------------------------------------------------------------------- */

typedef struct attribute {
    size_t entry, value;
} attribute;

static attribute begin(ls__buffer *b, const char *key)
{
    attribute a = { .entry = ls__wire_begin(b, NODE_ATTR) };
    ls__wire_put_string(b, ATTR_KEY, key);
    a.value = ls__wire_begin(b, ATTR_VALUE);
    return a;
}

static void end(ls__buffer *b, attribute a)
{
    ls__wire_end(b, a.value);
    ls__wire_end(b, a.entry);
}

void ls__node_def_int(ls__buffer *b, const char *key, int64_t value)
{
    attribute a = begin(b, key);
    ls__wire_put_varint(b, VALUE_INT, (uint64_t)value);
    end(b, a);
}

void ls__node_def_text(ls__buffer *b, const char *key, const char *text, size_t bytes)
{
    attribute a = begin(b, key);
    ls__wire_put_bytes(b, VALUE_STRING, text, bytes);
    end(b, a);
}

static void put_float(ls__buffer *b, const char *key, double value)
{
    attribute a = begin(b, key);
    ls__wire_put_float(b, VALUE_FLOAT, (float)value);
    end(b, a);
}

static void put_ints(ls__buffer *b, const char *key, const ls_ints *ints)
{
    if (ints->count < 0) {
        ls__node_def_text(b, key, "all", 3);
        return;
    }
    attribute a = begin(b, key);
    size_t list = ls__wire_begin(b, VALUE_LIST);
    for (int64_t i = 0; i < ints->count; i++)
        ls__wire_put_varint(b, LIST_INT, (uint64_t)ints->at[i]);
    ls__wire_end(b, list);
    end(b, a);
}

void ls__node_def_attrs(ls__buffer *b, const ls__node *node)
{
    for (const ls_attr *a = node->op->attrs; a && a->kind != LS_ATTR_KIND_END; a++) {
        const void *field = (const char *)node->attrs + a->offset;
        if (a->kind == LS_ATTR_KIND_INT)
            ls__node_def_int(b, a->name, *(const int64_t *)field);
        else if (a->kind == LS_ATTR_KIND_FLOAT)
            put_float(b, a->name, *(const double *)field);
        else
            put_ints(b, a->name, field);
    }
}

/* ---- specs ------------------------------------------------------------------------------------------ */

/* tensorflow.DataType. */
static uint64_t type_number(ls_dtype dtype)
{
    static const struct {
        ls_dtype dtype;
        uint64_t number;
    } types[] = { { LS_F32, 1 },   { LS_F64, 2 }, { LS_I32, 3 },   { LS_U8, 4 },
                  { LS_BYTES, 7 }, { LS_I64, 9 }, { LS_BOOL, 10 }, { LS_BF16, 14 } };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].dtype == dtype)
            return types[i].number;
    return 0;
}

static void put_shape(ls__buffer *b, const ls__spec *spec)
{
    size_t shape = ls__wire_begin(b, LIST_SHAPE);
    for (int i = 0; i < spec->rank; i++) {
        size_t dim = ls__wire_begin(b, SHAPE_DIM);
        ls__wire_put_varint(b, DIM_SIZE, (uint64_t)spec->dims[i]);
        ls__wire_end(b, dim);
    }
    ls__wire_end(b, shape);
}

void ls__node_def_specs(ls__buffer *b, int count, const ls__spec *const *specs)
{
    if (count == 0)
        return;
    attribute a = begin(b, "_output_shapes");
    size_t list = ls__wire_begin(b, VALUE_LIST);
    for (int i = 0; i < count; i++)
        put_shape(b, specs[i]);
    ls__wire_end(b, list);
    end(b, a);
    a = begin(b, "dtype");
    ls__wire_put_varint(b, VALUE_TYPE, type_number(specs[0]->dtype));
    end(b, a);
}
