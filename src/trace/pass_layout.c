/*
 * Layouts of convolutions: blocked inside, plain at the edges, weights packed once.
 *
 *     y = conv2d(x, w)                  p = conv2d_pack(x)
 *     z = relu(y)              ->       v = conv2d_pack_weights(w)   again only when w has changed
 *     u = conv2d(z, w2)                 q = conv2d_packed(p, v)
 *                                       r = relu(q)                  on the packed elements
 *                                       ...
 *
 * and a pool takes, and its gradient makes, an image in blocks of channels.
 *
 * Which nodes run packed is what layout_problem.c answers; this file carries it out. Two
 * plans share a packed activation when their layouts are equal, be it from one
 * convolution to the next or from the forward pass to the filter's gradient. A
 * convolution that stays plain still has its weights packed ahead, if this step does
 * not write them.
 *
 * Invariants: a wire is packed at most once a form, where it is first wanted so, and
 * unpacked at most once, where it is made; a variable is not written between its read
 * and a packing that is kept. Sums are in another order, so the last bits may differ.
 */
#include "trace/pass.h"

#include <stdlib.h>

#include "ops/conv.h"
#include "ops/pool.h"
#include "trace/layout_problem.h"

typedef struct packed_wire {
    int wire, form; /* this wire in this form ... */
    int packed;     /* ... is that one */
} packed_wire;

typedef struct rewrite {
    ls__layout layout;
    ls__graph *g;
    packed_wire *packed; /* room for all ports */
    int n_packed;
} rewrite;

/* ---- moving wires ---------------------------------------------------------------------- */

/* A call of a row with one result, before `before`: the wire, or -1. */
static int call(rewrite *r, ls__node *before, const ls_op *op, const void *attrs, int n,
                const int *inputs)
{
    ls__node *node = ls__graph_call(r->g, before, op, attrs, n, inputs);
    return node ? node->outputs[0] : -1;
}

static void note(rewrite *r, int wire, int form, int packed)
{
    r->packed[r->n_packed++] = (packed_wire){ wire, form, packed };
}

/* The wire in a form, packed before `before` unless it is there. */
static int in_form(rewrite *r, ls__node *before, int wire, int form)
{
    if (form == 0)
        return wire;
    for (int i = 0; i < r->n_packed; i++)
        if (r->packed[i].wire == wire && r->packed[i].form == form)
            return r->packed[i].packed;
    int packed = call(r, before, &ls__conv2d_pack, &r->layout.forms[form - 1].attrs, 1, &wire);
    if (packed >= 0)
        note(r, wire, form, packed);
    return packed;
}

/* `made` is what `node` made, in a form, from now on; plain users get it plain. */
static ls_status replace(rewrite *r, ls__node *node, int made, int form, bool wants_plain)
{
    int old = node->outputs[0];
    if (made < 0)
        return ls_error_pending();
    if (form == 0) {
        ls__graph_redirect(r->g, old, made, NULL);
        return LS_OK;
    }
    if (!wants_plain) {
        note(r, old, form, made);
        return LS_OK;
    }
    int plain = call(r, node, &ls__conv2d_unpack, &r->layout.forms[form - 1].attrs, 1, &made);
    if (plain < 0)
        return ls_error_pending();
    ls__graph_redirect(r->g, old, plain, NULL);
    note(r, plain, form, made);
    return LS_OK;
}

/* ---- weights ------------------------------------------------------------------------------ */

/* Whether a node writes the cell, among those after `from` and before `to` in the list. */
static bool written_between(const ls__graph *g, int cell, int from, int to)
{
    for (int i = from + 1; i < to; i++) {
        const ls__node *node = g->nodes[i];
        for (int k = 0; node->op->flags & LS_OP_WRITES && k < node->n_cells; k++)
            if (node->cells[k] == cell)
                return true;
    }
    return false;
}

/* The weights as the plan of `attrs` wants them; kept from replay to replay if they are a
 * variable as it was read. Each plan has its own packing: no two passes share weights. */
static int pack_weights(rewrite *r, ls__node *before, int wire, const ls__conv_packed_attrs *attrs)
{
    ls__conv_packed_attrs a = *attrs;
    a.argument = LS__CONV_W;
    int cell = ls__wire_cell(r->g, wire);
    bool keep = cell >= 0 ? !written_between(r->g, cell, r->g->wires[wire].node->at, before->at)
                          : r->g->wires[wire].kind == LS__WIRE_CONSTANT;
    return call(r, before, keep ? &ls__conv2d_pack_weights : &ls__conv2d_pack, &a, 1, &wire);
}

/* ---- nodes --------------------------------------------------------------------------------- */

/* The convolution by a plan, on its activations in these forms. */
static ls_status convolve(rewrite *r, ls__node *node, const ls__layout_conv *c, ls__conv_layout by,
                          const int form[3], bool wants_plain)
{
    const ls__conv_packed_attrs attrs = ls__conv_packed(&c->shape, c->pass, by);
    ls__conv_plan plan;
    ls_status st = ls__conv_packed_plan(&attrs, &plan);
    if (st)
        return st;
    const bool plain_weights = plan.arg[LS__CONV_W].plain;
    ls__conv_plan_close(&plan);
    int inputs[3] = { 0 };
    for (int k = 0; k < node->n_inputs; k++) {
        int wire = node->inputs[k];
        if (k < 2 && c->in[k] != LS__CONV_W)
            wire = in_form(r, node, wire, form[c->in[k]]);
        else if (k < 2 && !plain_weights)
            wire = pack_weights(r, node, wire, &attrs);
        if (wire < 0)
            return ls_error_pending();
        inputs[k] = wire;
    }
    int made = call(r, node, &ls__conv2d_packed, &attrs, node->n_inputs, inputs);
    if (c->out == LS__CONV_W && !plain_weights && made >= 0) {
        ls__conv_packed_attrs a = attrs;
        a.argument = LS__CONV_W;
        made = call(r, node, &ls__conv2d_unpack, &a, 1, &made);
    }
    return replace(r, node, made, c->out == LS__CONV_W ? 0 : form[c->out], wants_plain);
}

/* ---- images -------------------------------------------------------------------------------- */

/* The row, with its attributes, for an image of `shape` in blocks; in `attrs`, which has room. */
typedef union image_attrs {
    ls__pool_packed_attrs pool;
    ls__conv_pool_attrs conv;
    ls__conv_pool_grad_attrs conv_grad;
} image_attrs;

static const ls_op *image_row(const ls__node *node, const ls__spec *image, int64_t block,
                              image_attrs *attrs)
{
    if (ls__node_is(node, "conv2d_pool_relu")) {
        attrs->conv = *(const ls__conv_pool_attrs *)node->attrs;
        attrs->conv.block = block;
        return node->op;
    }
    if (ls__node_is(node, "conv2d_pool_relu_grad")) {
        attrs->conv_grad = *(const ls__conv_pool_grad_attrs *)node->attrs;
        attrs->conv_grad.block = block;
        return node->op;
    }
    const ls__pool_attrs *from = node->attrs;
    attrs->pool = (ls__pool_packed_attrs){ .window = from->window,
                                           .stride = from->stride,
                                           .padding = from->padding,
                                           .shape = { .count = 4 },
                                           .block = block,
                                           .relu = ls__node_is(node, "max_pool2d_relu") };
    for (int k = 0; k < 4; k++)
        attrs->pool.shape.at[k] = image->dims[k];
    return ls__node_is(node, "max_pool2d_grad") ? &ls__max_pool2d_grad_packed
                                                : &ls__max_pool2d_packed;
}

/* The node on its image in a form. */
static ls_status run_image(rewrite *r, ls__node *node, const ls__layout_candidate *c, int form,
                           bool wants_plain)
{
    const bool makes = c->kind == LS__LAYOUT_MAKES_IMAGE;
    const int wire = makes ? node->outputs[0] : node->inputs[c->image];
    image_attrs attrs;
    const ls_op *op =
        image_row(node, &r->g->wires[wire].spec, ls__layout_block(&r->layout, form), &attrs);
    int inputs[LS__LAYOUT_PORTS];
    for (int k = 0; k < node->n_inputs; k++) {
        inputs[k] = node->inputs[k];
        if (!makes && k == c->image)
            inputs[k] = in_form(r, node, wire, form);
        if (inputs[k] < 0)
            return ls_error_pending();
    }
    ls__node *packed = ls__graph_call(r->g, node, op, &attrs, node->n_inputs, inputs);
    if (!packed)
        return ls_error_pending();
    for (int i = makes ? 1 : 0; i < node->n_outputs; i++)
        ls__graph_redirect(r->g, node->outputs[i], packed->outputs[i], NULL);
    return makes ? replace(r, node, packed->outputs[0], form, wants_plain) : LS_OK;
}

static ls_status run_packed(rewrite *r, ls__node *node, int candidate)
{
    const ls__layout_candidate *c = &r->layout.candidates[candidate];
    const ls__layout_node *n = &r->layout.problem.nodes[candidate];
    const bool wants_plain =
        n->port[n->n_ports - 1].makes &&
        ls__layout_wants_plain(&r->layout.problem, n->port[n->n_ports - 1].wire);
    int form[3] = { 0 }, inputs[LS__LAYOUT_PORTS], port = 0;
    if (c->kind == LS__LAYOUT_CONVOLUTION) {
        for (int k = 0; k < 2; k++)
            if (c->conv.in[k] != LS__CONV_W)
                form[c->conv.in[k]] = n->port[port++].form[n->state];
        if (c->conv.out != LS__CONV_W)
            form[c->conv.out] = n->port[port].form[n->state];
        return convolve(r, node, &c->conv, c->by, form, wants_plain);
    }
    if (c->kind != LS__LAYOUT_ELEMENTWISE)
        return run_image(r, node, c, n->port[0].form[n->state], wants_plain);
    for (int k = 0; k < node->n_inputs; k++) {
        inputs[k] = in_form(r, node, node->inputs[k], n->port[k].form[n->state]);
        if (inputs[k] < 0)
            return ls_error_pending();
    }
    return replace(r, node, call(r, node, node->op, NULL, node->n_inputs, inputs),
                   n->port[0].form[n->state], wants_plain);
}

/* A convolution that stays plain: packs its weights ahead, if they are a variable this
 * step leaves alone. (Weights that change with every step are packed in any case.) */
static ls_status run_plain(rewrite *r, ls__node *node, bool *changed)
{
    static const int plain[3] = { 0 };
    ls__layout_conv c;
    ls__conv_plan plan;
    if (!ls__layout_is_convolution(r->g, node, &c) || c.out == LS__CONV_W)
        return LS_OK;
    int cell = ls__wire_cell(r->g, node->inputs[c.in[0] == LS__CONV_W ? 0 : 1]);
    if (cell < 0 || written_between(r->g, cell, -1, r->g->n_nodes))
        return LS_OK;
    const ls__conv_packed_attrs attrs = ls__conv_packed(&c.shape, c.pass, LS__CONV_NHWC);
    ls_status st = ls__conv_packed_plan(&attrs, &plan);
    if (st)
        return st;
    *changed = !plan.arg[LS__CONV_W].plain;
    ls__conv_plan_close(&plan);
    return *changed ? convolve(r, node, &c, LS__CONV_NHWC, plain, true) : LS_OK;
}

/* Puts the answer into the graph. The nodes that were replaced go at the end, last first:
 * until then later ones that will be replaced, too, still take what they made. */
static ls_status carry_out(rewrite *r)
{
    ls__layout *l = &r->layout;
    bool *gone = calloc((size_t)l->n_nodes + 1, sizeof *gone);
    ls_status st = gone ? LS_OK : ls__fail_memory("the layout of a step", (size_t)l->n_nodes);
    for (int i = 0; i < l->n_nodes && !st; i++) {
        int c = l->candidate_of[i];
        if (c >= 0 && l->problem.nodes[c].state > 0) {
            gone[i] = true;
            st = run_packed(r, l->nodes[i], c);
        } else {
            st = run_plain(r, l->nodes[i], &gone[i]);
        }
    }
    for (int i = l->n_nodes; i-- > 0 && !st;)
        if (gone[i])
            ls__graph_remove(r->g, l->nodes[i]);
    free(gone);
    return st;
}

ls_status ls__pass_layout(ls__graph *g)
{
    rewrite r = { .g = g };
    ls_status st = ls__layout_solve(&r.layout, g);
    if (!st) {
        r.packed =
            malloc(((size_t)r.layout.problem.n_nodes * LS__LAYOUT_PORTS + 1) * sizeof *r.packed);
        st = r.packed ? carry_out(&r) : ls__fail_memory("the layout of a step", sizeof *r.packed);
    }
    free(r.packed);
    ls__layout_free(&r.layout);
    return st;
}
