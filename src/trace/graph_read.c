/*
 * Bytes to a graph; graph_bytes.h has the format. The bytes may be anybody's.
 *
 * Invariants: nothing is read past the end; a count is believed only as far as there
 * are bytes for what it counts, so memory stays in proportion to the file (constants
 * that say less than they hold are bounded apart); no wire is taken before it is
 * made; what ls__graph_verify refuses does not get out.
 */
#include "trace/graph_bytes.h"

#include <stdio.h>
#include <stdlib.h>

#include "trace/graph_out.h"

/* The first failure sticks: afterwards everything reads as zeros. */
typedef struct reader {
    const unsigned char *at, *end;
    size_t size;           /* of the whole */
    size_t constant_bytes; /* that constants may still take */
    const char *part;      /* "node 4": what is being read, for errors */
    char part_text[32];
    ls_status st;
    ls__graph *g;
    const ls_op **rows;
    int n_rows, seen_rows;
    int *wires, *cells; /* of one node, used again for the next */
    ls__spec *specs;
    size_t room_wires, room_cells, room_specs;
} reader;

#define FAIL(r, ...)                                                                               \
    do {                                                                                           \
        if (!(r)->st)                                                                              \
            (r)->st = ls__fail(LS_CORRUPT, "graph: " __VA_ARGS__);                                 \
    } while (0)

static void part(reader *r, const char *what, uint32_t i)
{
    snprintf(r->part_text, sizeof r->part_text, "%s %u", what, i);
    r->part = r->part_text;
}

static const void *take(reader *r, size_t bytes)
{
    static const unsigned char zeros[8];
    if (!r->st && bytes <= (size_t)(r->end - r->at)) {
        r->at += bytes;
        return r->at - bytes;
    }
    FAIL(r, "%s: ends at byte %zu, %zu too few", r->part, r->size,
         bytes - (size_t)(r->end - r->at));
    return bytes <= sizeof zeros ? zeros : NULL;
}

static uint8_t take_u8(reader *r)
{
    return *(const uint8_t *)take(r, 1);
}

static uint32_t take_u32(reader *r)
{
    uint32_t v;
    memcpy(&v, take(r, sizeof v), sizeof v);
    return v;
}

static uint64_t take_u64(reader *r)
{
    uint64_t v;
    memcpy(&v, take(r, sizeof v), sizeof v);
    return v;
}

/* How many follow that take at least `each` bytes in the file. */
static int take_count(reader *r, const char *what, size_t each)
{
    uint32_t count = take_u32(r);
    size_t left = (size_t)(r->end - r->at);
    if (count <= left / each && count < INT32_MAX)
        return r->st ? 0 : (int)count;
    FAIL(r, "%s: %u %s in %zu bytes", r->part, count, what, left);
    return 0;
}

/* A copy in the graph's arena. */
static char *take_string(reader *r, const char *what)
{
    uint32_t length = take_u32(r);
    const char *text = take(r, length);
    if (!r->st && memchr(text, '\0', length))
        FAIL(r, "%s: a zero byte in its %s", r->part, what);
    if (r->st)
        return NULL;
    char *copy = ls__arena_alloc(&r->g->arena, (size_t)length + 1);
    if (!copy) {
        r->st = LS_NO_MEMORY;
        return NULL;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

static void take_spec(reader *r, ls__spec *spec)
{
    int dtype = take_u8(r), rank = take_u8(r);
    int64_t dims[LS_MAX_RANK] = { 0 };
    for (int i = 0; i < rank && i < LS_MAX_RANK; i++)
        dims[i] = (int64_t)take_u64(r);
    *spec = (ls__spec){ .dtype = LS_F32 };
    if (r->st)
        return;
    ls__error_scope scope;
    ls__error_record why;
    ls__error_scope_open(&scope);
    ls_status st = ls__spec_make(spec, "spec", (ls_dtype)dtype, rank, dims);
    ls__error_take(&why);
    ls__error_scope_close(&scope, LS_OK, "spec");
    if (st)
        FAIL(r, "%s: %s", r->part, why.text);
}

/* ---- the parts before the nodes --------------------------------------------------------- */

static void read_cell(reader *r, int i)
{
    uint64_t serial = take_u64(r);
    const char *name = take_string(r, "name");
    ls__spec spec;
    take_spec(r, &spec);
    if (r->st)
        return;
    int number = ls__graph_cell_add(r->g, serial, name, &spec, NULL);
    if (number < 0)
        r->st = LS_NO_MEMORY;
    else if (number != i)
        FAIL(r, "%s: the same variable as cell %d", r->part, number);
}

static void fill_constant(const ls__spec *spec, bool splat, const void *from, char *to)
{
    size_t bytes = ls__spec_bytes(spec), done = splat ? ls_dtype_size(spec->dtype) : bytes;
    if (bytes > 0)
        memcpy(to, from, done);
    while (done < bytes) { /* doubles what is there */
        size_t more = done < bytes - done ? done : bytes - done;
        memcpy(to + done, to, more);
        done += more;
    }
}

static bool are_bools(const unsigned char *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (at[i] > 1)
            return false;
    return true;
}

static void add_constant(reader *r, const ls__spec *spec, bool splat, const void *data)
{
    ls__storage *s = ls__storage_new("graph", ls__spec_bytes(spec));
    if (!s) {
        r->st = LS_NO_MEMORY;
        return;
    }
    fill_constant(spec, splat, data, s->data);
    int wire = ls__graph_constant(r->g, spec, s);
    ls__storage_unref(s);
    if (wire < 0)
        r->st = LS_NO_MEMORY;
    else if (r->g->constants[r->g->n_constants - 1].splat != splat)
        FAIL(r, "%s: %s is stored as if it were %sthe same everywhere", r->part,
             ls__spec_text(spec), splat ? "" : "not ");
}

static void read_constant(reader *r)
{
    ls__spec spec;
    take_spec(r, &spec);
    unsigned splat = take_u8(r);
    if (r->st)
        return;
    if (spec.dtype == LS_BYTES || splat > 1) {
        FAIL(r, "%s: %s of kind %u", r->part, ls__spec_text(&spec), splat);
        return;
    }
    size_t bytes = ls__spec_bytes(&spec), stored = splat ? ls_dtype_size(spec.dtype) : bytes;
    if (bytes > r->constant_bytes) {
        FAIL(r, "%s: %s, and constants may take only %zu bytes more", r->part, ls__spec_text(&spec),
             r->constant_bytes);
        return;
    }
    const void *data = take(r, stored);
    if (!r->st && spec.dtype == LS_BOOL && !are_bools(data, stored))
        FAIL(r, "%s: a bool that is neither 0 nor 1", r->part);
    if (r->st)
        return;
    r->constant_bytes -= bytes;
    add_constant(r, &spec, splat, data);
}

/* ---- rows -------------------------------------------------------------------------------- */

/* The row here must have the attributes that were written, by name and kind. */
static void read_attr_list(reader *r, const ls_op *op)
{
    int count = take_count(r, "attributes", 5), known = 0;
    while (op->attrs && op->attrs[known].kind != LS_ATTR_KIND_END)
        known++;
    if (!r->st && count != known)
        FAIL(r, "operator '%s' has %d attributes here and %d there", op->name, known, count);
    for (int i = 0; i < count && !r->st; i++) {
        int kind = take_u8(r);
        const char *name = take_string(r, "attribute");
        if (!r->st && (kind != (int)op->attrs[i].kind || strcmp(name, op->attrs[i].name) != 0))
            FAIL(r, "operator '%s': attribute %d is '%s' of kind %d here, '%s' of kind %d there",
                 op->name, i, op->attrs[i].name, (int)op->attrs[i].kind, name, kind);
    }
}

static void read_row(reader *r)
{
    const char *name = take_string(r, "name");
    if (r->st)
        return;
    const ls_op *op = ls_op_find(name);
    if (!op) {
        r->st =
            ls__hint(ls__fail(LS_CORRUPT, "graph: %s: there is no operator '%s'", r->part, name),
                     "an operator of your own must be registered here too");
        return;
    }
    for (int i = 0; i < r->n_rows; i++)
        if (r->rows[i] == op)
            FAIL(r, "%s: operator '%s' a second time", r->part, name);
    read_attr_list(r, op);
    r->rows[r->n_rows++] = op;
}

/* ---- nodes ------------------------------------------------------------------------------- */

/* A number must be of something that is there already: so there are no cycles. */
static void take_indices(reader *r, const char *what, int count, int below, int *out)
{
    for (int i = 0; i < count && !r->st; i++) {
        uint32_t v = take_u32(r);
        if (!r->st && v >= (uint32_t)below)
            FAIL(r, "%s: %s %u, there are %d before it", r->part, what, v, below);
        out[i] = (int)v;
    }
}

static void read_attrs(reader *r, const ls_op *op, char *attrs)
{
    for (const ls_attr *a = op->attrs; a && a->kind != LS_ATTR_KIND_END && !r->st; a++) {
        uint64_t value = take_u64(r);
        memcpy(attrs + a->offset, &value, sizeof value);
        if (a->kind != LS_ATTR_KIND_INTS)
            continue;
        int64_t count = (int64_t)value;
        if (count < -1 || count > LS_MAX_RANK) {
            FAIL(r, "%s (%s): %lld numbers of %s", r->part, op->name, (long long)count, a->name);
            return;
        }
        for (int64_t i = 0; i < count; i++) {
            value = take_u64(r);
            memcpy(attrs + a->offset + offsetof(ls_ints, at) + (size_t)i * sizeof value, &value,
                   sizeof value);
        }
    }
}

static const ls_op *take_row(reader *r)
{
    uint32_t row = take_u32(r);
    if (!r->st && (row >= (uint32_t)r->n_rows || (int)row > r->seen_rows))
        FAIL(r, "%s: operator %u of %d, after %d", r->part, row, r->n_rows, r->seen_rows);
    if (r->st)
        return NULL;
    r->seen_rows += (int)row == r->seen_rows;
    return r->rows[row];
}

/* Room for `count` in an array of the reader's that is used again and again. */
static void *room_for(reader *r, void *at, size_t *room, size_t count, size_t element)
{
    if (count <= *room && at)
        return at;
    void *bigger = realloc(at, (count + 16) * element);
    if (!bigger) {
        r->st = ls__fail_memory("graph", count * element);
        return at;
    }
    *room = count + 16;
    return bigger;
}

static void read_node(reader *r)
{
    ls__graph *g = r->g;
    const ls_op *op = take_row(r);
    uint32_t where = take_u32(r);
    uint64_t draw = op && op->flags & LS_OP_DRAWS ? take_u64(r) : UINT64_MAX;
    int n_inputs = take_count(r, "inputs", 4);
    r->wires = room_for(r, r->wires, &r->room_wires, (size_t)n_inputs, sizeof *r->wires);
    take_indices(r, "wire", n_inputs, g->n_wires, r->wires);
    int n_cells = take_count(r, "cells", 4);
    r->cells = room_for(r, r->cells, &r->room_cells, (size_t)n_cells, sizeof *r->cells);
    take_indices(r, "cell", n_cells, g->n_cells, r->cells);
    int n_outputs = take_count(r, "outputs", 2);
    r->specs = room_for(r, r->specs, &r->room_specs, (size_t)n_outputs, sizeof *r->specs);
    for (int i = 0; i < n_outputs && !r->st; i++)
        take_spec(r, &r->specs[i]);
    if (r->st)
        return;
    if (where < 1 || where > (uint32_t)g->calls) {
        FAIL(r, "%s (%s): call %u of %d", r->part, op->name, where, g->calls);
        return;
    }
    char *attrs = calloc(1, op->attr_size + 1);
    if (!attrs) {
        r->st = ls__fail_memory("graph", op->attr_size);
        return;
    }
    read_attrs(r, op, attrs);
    if (!r->st) {
        ls__node *node = ls__graph_add(g, NULL, op, attrs, n_inputs, r->wires, n_cells, r->cells,
                                       n_outputs, r->specs);
        if (node) {
            node->where = (int)where;
            node->draw = (int64_t)draw;
        } else {
            r->st = LS_NO_MEMORY;
        }
    }
    free(attrs);
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Magic, version, size and checksum; leaves the reader between head and checksum. */
static ls_status open_bytes(reader *r, const void *bytes, size_t size)
{
    uint32_t version = 0;
    uint64_t said = 0, sum;
    if (!bytes || size < LS__GRAPH_HEAD + sizeof sum || memcmp(bytes, LS__GRAPH_MAGIC, 8) != 0)
        return ls__fail(LS_CORRUPT, "graph: %zu bytes that are no stored step", size);
    memcpy(&version, (const char *)bytes + 8, sizeof version);
    if (version != LS__GRAPH_VERSION)
        return ls__hint(ls__fail(LS_UNSUPPORTED,
                                 "graph: stored in version %u, this library reads "
                                 "version %u",
                                 version, LS__GRAPH_VERSION),
                        "use the same version of the library on both sides");
    memcpy(&said, (const char *)bytes + 12, sizeof said);
    if (said != size)
        return ls__fail(LS_CORRUPT, "graph: says it has %llu bytes and has %zu",
                        (unsigned long long)said, size);
    size -= sizeof sum;
    memcpy(&sum, (const char *)bytes + size, sizeof sum);
    if (sum != ls__graph_checksum(bytes, size))
        return ls__fail(LS_CORRUPT, "graph: the checksum is wrong");
    r->at = (const unsigned char *)bytes + LS__GRAPH_HEAD;
    r->end = (const unsigned char *)bytes + size;
    r->size = size;
    return LS_OK;
}

typedef struct counts {
    int inputs, cells, constants, rows, nodes, outputs;
} counts;

static void read_head(reader *r, counts *n)
{
    const char *name = take_string(r, "name");
    if (name)
        r->g->name = name;
    n->inputs = take_count(r, "inputs", 2);
    n->cells = take_count(r, "cells", 14);
    n->constants = take_count(r, "constants", 3);
    n->rows = take_count(r, "operators", 8);
    n->nodes = take_count(r, "nodes", 20);
    n->outputs = take_count(r, "outputs", 4);
    uint32_t calls = take_u32(r);
    uint64_t draws = take_u64(r);
    if (!r->st && (calls > INT32_MAX || draws > INT64_MAX))
        FAIL(r, "%u calls, %llu draws", calls, (unsigned long long)draws);
    if (!r->st && n->cells > LS__GRAPH_MAX_CELLS)
        FAIL(r, "%d variables, at most %d can be stored", n->cells, LS__GRAPH_MAX_CELLS);
    r->g->calls = (int)calls;
    r->g->draws = (int64_t)draws;
}

static void read_outputs(reader *r, int count)
{
    for (int i = 0; i < count && !r->st; i++) {
        int wire = 0;
        part(r, "output", (uint32_t)i);
        take_indices(r, "wire", 1, r->g->n_wires, &wire);
        if (!r->st)
            r->st = ls__graph_output(r->g, wire);
    }
}

/* What the writer would not have written. */
static void check_spare(reader *r)
{
    if (r->st)
        return;
    if (r->at != r->end)
        FAIL(r, "%zu bytes too many", (size_t)(r->end - r->at));
    if (r->seen_rows != r->n_rows)
        FAIL(r, "operator '%s' is not used", r->rows[r->seen_rows]->name);
    ls__numbers numbers;
    if (!r->st)
        r->st = ls__numbers_find(r->g, &numbers);
    if (r->st)
        return;
    if (numbers.n_constants != r->g->n_constants)
        FAIL(r, "%d of %d constants are not used", r->g->n_constants - numbers.n_constants,
             r->g->n_constants);
    ls__numbers_free(&numbers);
}

static void read_all(reader *r)
{
    counts n;
    r->part = "head";
    read_head(r, &n);
    for (int i = 0; i < n.inputs && !r->st; i++) {
        ls__spec spec;
        part(r, "input", (uint32_t)i);
        take_spec(r, &spec);
        if (!r->st && ls__graph_input(r->g, &spec) < 0)
            r->st = LS_NO_MEMORY;
    }
    for (int i = 0; i < n.cells && !r->st; i++) {
        part(r, "cell", (uint32_t)i);
        read_cell(r, i);
    }
    for (int i = 0; i < n.constants && !r->st; i++) {
        part(r, "constant", (uint32_t)i);
        read_constant(r);
    }
    r->rows = calloc((size_t)n.rows + 1, sizeof *r->rows);
    if (!r->rows && !r->st)
        r->st = ls__fail_memory("graph", sizeof *r->rows * (size_t)n.rows);
    for (int i = 0; i < n.rows && !r->st; i++) {
        part(r, "operator", (uint32_t)i);
        read_row(r);
    }
    for (int i = 0; i < n.nodes && !r->st; i++) {
        part(r, "node", (uint32_t)i);
        read_node(r);
    }
    read_outputs(r, n.outputs);
    check_spare(r);
}

ls__graph *ls__graph_read_within(const void *bytes, size_t size, size_t constant_bytes)
{
    reader r = { .constant_bytes = constant_bytes };
    if (open_bytes(&r, bytes, size))
        return NULL;
    r.g = ls__graph_new("");
    if (!r.g)
        return NULL;
    read_all(&r);
    free(r.rows);
    free(r.wires);
    free(r.cells);
    free(r.specs);
    if (!r.st)
        r.st = ls__graph_verify(r.g);
    if (r.st) {
        ls__graph_free(r.g);
        return NULL;
    }
    return r.g;
}

ls__graph *ls__graph_read(const void *bytes, size_t size)
{
    return ls__graph_read_within(bytes, size, LS__GRAPH_CONSTANT_BYTES);
}
