/*
 * The words and the numbering behind graph_text.c, graph_dot.c and graph_write.c.
 */
#include "trace/graph_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bf16.h"
#include "ops/fused_chain.h"

/* Elements of a constant that are shown. */
#define SHOWN 6

void ls__buffer_name(ls__buffer *b, const char *name)
{
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;
        if (c == '"' || c == '\\')
            ls__buffer_print(b, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            ls__buffer_print(b, "\\\\x%02x", c);
        else
            ls__buffer_add(b, name, 1);
    }
}

void ls__buffer_f64(ls__buffer *b, double value)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    ls__buffer_print(b, "%s", text);
}

void ls__buffer_f32(ls__buffer *b, float value)
{
    char text[40];
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    ls__buffer_print(b, "%s", text);
}

static void print_attr(ls__buffer *b, const ls_attr *a, const void *attrs)
{
    const void *field = (const char *)attrs + a->offset;
    ls__buffer_print(b, "%s ", a->name);
    if (a->kind == LS_ATTR_KIND_INT) {
        ls__buffer_print(b, "%lld", (long long)*(const int64_t *)field);
    } else if (a->kind == LS_ATTR_KIND_FLOAT) {
        ls__buffer_f64(b, *(const double *)field);
    } else {
        const ls_ints *ints = field;
        if (ints->count < 0)
            ls__buffer_print(b, "all");
        else if (ints->count == 0)
            ls__buffer_print(b, "none");
        for (int64_t i = 0; i < ints->count; i++)
            ls__buffer_print(b, i ? ",%lld" : "%lld", (long long)ints->at[i]);
    }
}

/* The program of a chain: "2 = mul 0 1; 3 = relu 2 -> 3". Inputs are numbered first. */
static void print_chain(ls__buffer *b, const ls__chain_attrs *attrs, int n_inputs)
{
    for (int k = 0; k < LS__CHAIN_STEPS && attrs->step[k].count > 0; k++) {
        const ls_ints *step = &attrs->step[k];
        ls__buffer_print(b, "%s%d = %s", k ? "; " : "", n_inputs + k, ls__chain_name(step->at[0]));
        for (int64_t i = 3; i < step->count; i++)
            ls__buffer_print(b, " %lld", (long long)step->at[i]);
    }
    for (int64_t i = 0; i < attrs->outs.count; i++)
        ls__buffer_print(b, i ? ",%lld" : " -> %lld", (long long)(n_inputs + attrs->outs.at[i]));
}

void ls__buffer_attrs(ls__buffer *b, const ls__node *node)
{
    if (node->op == &ls__chain_row) {
        print_chain(b, node->attrs, node->n_inputs);
        return;
    }
    for (const ls_attr *a = node->op->attrs; a && a->kind != LS_ATTR_KIND_END; a++) {
        if (a != node->op->attrs)
            ls__buffer_print(b, " ");
        print_attr(b, a, node->attrs);
    }
}

/* ---- numbers ------------------------------------------------------------------- */

static void mark_constants(const ls__graph *g, int *of, const int *wires, int count)
{
    for (int i = 0; i < count; i++)
        if (g->wires[wires[i]].kind == LS__WIRE_CONSTANT)
            of[wires[i]] = 0;
}

ls_status ls__numbers_find(const ls__graph *g, ls__numbers *out)
{
    size_t bytes = sizeof *out->of * ((size_t)g->n_wires + 1);
    int *of = malloc(bytes), *constants = malloc(bytes);
    if (!of || !constants) {
        free(of);
        free(constants);
        return ls__fail_memory("graph", bytes);
    }
    for (int w = 0; w < g->n_wires; w++)
        of[w] = -1;
    int next = 0, n_constants = 0;
    for (int i = 0; i < g->n_inputs; i++)
        of[g->inputs[i]] = next++;
    for (int i = 0; i < g->n_nodes; i++)
        mark_constants(g, of, g->nodes[i]->inputs, g->nodes[i]->n_inputs);
    mark_constants(g, of, g->outputs, g->n_outputs);
    for (int w = 0; w < g->n_wires; w++)
        if (g->wires[w].kind == LS__WIRE_CONSTANT && of[w] == 0) {
            of[w] = next++;
            constants[n_constants++] = w;
        }
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_outputs; k++)
            of[g->nodes[i]->outputs[k]] = next++;
    *out = (ls__numbers){ of, constants, n_constants };
    return LS_OK;
}

void ls__numbers_free(ls__numbers *n)
{
    free(n->of);
    free(n->constants);
    *n = (ls__numbers){ 0 };
}

void ls__buffer_wire(ls__buffer *b, const ls__graph *g, const ls__numbers *n, int wire)
{
    if (g->wires[wire].kind == LS__WIRE_CONSTANT)
        ls__buffer_print(b, "k%d", n->of[wire] - g->n_inputs);
    else
        ls__buffer_print(b, "%%%d", n->of[wire]);
}

static void print_element(ls__buffer *b, ls_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case LS_F32:
        ls__buffer_f32(b, ((const float *)data)[i]);
        break;
    case LS_F64:
        ls__buffer_f64(b, ((const double *)data)[i]);
        break;
    case LS_BF16:
        ls__buffer_f32(b, ls__bf16_to_f32(((const uint16_t *)data)[i]));
        break;
    case LS_I32:
        ls__buffer_print(b, "%d", ((const int32_t *)data)[i]);
        break;
    case LS_I64:
        ls__buffer_print(b, "%lld", (long long)((const int64_t *)data)[i]);
        break;
    case LS_U8:
        ls__buffer_print(b, "%d", ((const uint8_t *)data)[i]);
        break;
    case LS_BOOL:
        ls__buffer_print(b, ((const uint8_t *)data)[i] ? "true" : "false");
        break;
    case LS_BYTES: /* strings are not shown */
        ls__buffer_print(b, "string");
        break;
    }
}

void ls__buffer_constant(ls__buffer *b, const ls__graph *g, int wire)
{
    const ls__wire *w = &g->wires[wire];
    const ls__constant *constant = &g->constants[w->index];
    int64_t count = ls__spec_count(&w->spec);
    if (constant->splat && count > 1) {
        ls__buffer_print(b, "all ");
        count = 1;
    }
    for (int64_t i = 0; i < count && i < SHOWN; i++) {
        ls__buffer_print(b, i ? ", " : "");
        print_element(b, w->spec.dtype, constant->storage->data, i);
    }
    if (count > SHOWN)
        ls__buffer_print(b, ", ...");
    else if (count == 0)
        ls__buffer_print(b, "empty");
}
