/* See work.h. Products are known by the names of their rows; what is packed has no shape, but its plan has. */
#include "trace/work.h"

#include <string.h>

#include "ops/layout_conv.h"

static double count(const ls__graph *g, int wire)
{
    return (double)ls__spec_count(&g->wires[wire].spec);
}

static double bytes_of(const ls__graph *g, const ls__node *node)
{
    double bytes = 0;
    for (int i = 0; i < node->n_inputs; i++)
        bytes += (double)ls__spec_bytes(&g->wires[node->inputs[i]].spec);
    for (int i = 0; i < node->n_outputs; i++)
        bytes += (double)ls__spec_bytes(&g->wires[node->outputs[i]].spec);
    for (int i = 0; i < node->n_cells && node->op->flags & LS_OP_WRITES; i++)
        bytes += 2 * (double)ls__spec_bytes(&g->cells[node->cells[i]].spec);
    return bytes;
}

static int64_t last_dim(const ls__spec *spec)
{
    return spec->rank > 0 ? spec->dims[spec->rank - 1] : 1;
}

/* Rows of the result, all batches together, times its columns, times what each is a sum of. */
static double matmul_flops(const ls__graph *g, const ls__node *node)
{
    const double out = count(g, node->outputs[0]);
    const double rows = out / (double)last_dim(&g->wires[node->outputs[0]].spec);
    return rows > 0 ? 2 * out * count(g, node->inputs[0]) / rows : 0;
}

static double packed_conv_flops(const ls__node *node)
{
    ls__conv_plan plan;
    if (ls__conv_packed_plan(node->attrs, &plan)) {
        ls_error(); /* it cannot run either, and says so there */
        return 0;
    }
    const ls__conv_shape *s = &plan.shape;
    const double flops = 2 * (double)ls__conv_count(s, LS__CONV_Y) * (double)(s->kh * s->kw * s->c);
    ls__conv_plan_close(&plan);
    return flops;
}

/* Every number of the output side meets every weight of its channel. A pool behind it leaves a quarter. */
static double conv_flops(const ls__graph *g, const ls__node *node)
{
    const char *name = node->op->name;
    const bool back = strstr(name, "grad") != NULL, data = strstr(name, "grad_input") != NULL;
    const int w = data ? node->inputs[0] : back ? node->outputs[0] : node->inputs[1];
    const int y = back ? node->inputs[1] : node->outputs[0];
    const ls__spec *spec = &g->wires[w].spec;
    if (spec->rank != 4)
        return 0;
    const double cells = strstr(name, "pool") ? 4 : 1;
    return 2 * cells * count(g, y) * count(g, w) / (double)last_dim(spec);
}

/* By plain sums, for both ways alike; rows begin with x and w, and gradients of both come from one row. */
static double winograd_flops(const ls__graph *g, const ls__node *node)
{
    const bool back = strstr(node->op->name, "_grad") != NULL;
    const double cells = strstr(node->op->name, "pool") ? 4 : 1;
    const double y = count(g, back ? node->inputs[2] : node->outputs[0]);
    const int w = node->inputs[1];
    return 2 * cells * y * count(g, w) / (double)last_dim(&g->wires[w].spec) * (back ? 2 : 1);
}

/* Of all replicas: an element of the variable meets every row of x. The matrices are x of all, dy of all. */
static double products_flops(const ls__graph *g, const ls__node *node)
{
    double flops = 0;
    int matrices = 0, seen = 0;
    for (int i = 0; i < node->n_inputs; i++)
        matrices += g->wires[node->inputs[i]].spec.rank == 2;
    for (int i = 0; i < node->n_inputs; i++)
        if (g->wires[node->inputs[i]].spec.rank == 2 && seen++ < matrices / 2)
            flops +=
                2 * count(g, node->inputs[i]) * (double)last_dim(&g->cells[node->cells[0]].spec);
    return flops;
}

/* Two products forward, five backward, of every query with every key before it. */
static double attention_flops(const ls__graph *g, const ls__node *node)
{
    const ls__spec *q = &g->wires[node->inputs[0]].spec;
    const double products = strstr(node->op->name, "grad") ? 5 : 2;
    const double queries = count(g, node->inputs[0]) / (strstr(node->op->name, "qkv") ? 3 : 1);
    return q->rank < 2 ? 0 : products * queries * (double)q->dims[q->rank - 2];
}

ls__work ls__node_work(const ls__graph *g, const ls__node *node)
{
    const char *name = node->op->name;
    ls__work work = { .bytes = bytes_of(g, node) };
    if (node->n_inputs < 1)
        return work;
    if (strstr(name, "_products"))
        work.flops = products_flops(g, node);
    else if (node->n_outputs < 1)
        return work;
    else if (strncmp(name, "attention", 9) == 0)
        work.flops = attention_flops(g, node);
    else if (node->n_inputs < 2)
        return work;
    else if (strncmp(name, "matmul", 6) == 0)
        work.flops = matmul_flops(g, node);
    else if (strcmp(name, "conv2d_packed") == 0)
        work.flops = packed_conv_flops(node);
    else if (strncmp(name, "conv2d_winograd", 15) == 0)
        work.flops = winograd_flops(g, node);
    else if (strncmp(name, "conv2d", 6) == 0)
        work.flops = conv_flops(g, node);
    return work;
}
