/*
 * Weights in the layout their products like best:
 *
 *     y = matmul(x, w)             w a plain read of a variable
 *
 * becomes
 *
 *     p = matmul_pack(w)           again only when the variable has changed
 *     y = matmul_packed(x, p)
 *
 * and the same with bias and activation, where the sizes say that it pays
 * (kernels/matmul.c). Invariant: a variable that this step writes is left alone.
 * Packing it anew in every step would cost more than it saves; and so the version
 * of the cell tells which value was packed. Another routine computes, so the last
 * bits may differ.
 */
#include "kernels/threads.h"
#include "ops/matmul.h"
#include "ops/shape.h"
#include "trace/pass.h"

static bool is_written(const ls__graph *g, int cell)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const ls__node *node = g->nodes[i];
        for (int k = 0; node->op->flags & LS_OP_WRITES && k < node->n_cells; k++)
            if (node->cells[k] == cell)
                return true;
    }
    return false;
}

/* How the product's weight is to be packed; false: it is left alone. */
static bool wants_packing(const ls__graph *g, const ls__node *node, const ls__matmul_attrs *t,
                          ls__matmul_pack_attrs *out)
{
    const ls__spec *a = &g->wires[node->inputs[0]].spec, *b = &g->wires[node->inputs[1]].spec;
    int cell = ls__wire_cell(g, node->inputs[1]);
    if (cell < 0 || a->dtype != LS_F32 || b->rank != 2 || t->transpose_a)
        return false;
    bool tb = t->transpose_b != 0;
    *out = (ls__matmul_pack_attrs){ .m = ls__row_count(a),
                                    .n = b->dims[!tb],
                                    .k = b->dims[tb],
                                    .transpose_b = tb,
                                    .threads = ls__kernel_threads_get() };
    const ls__matmul_shape s = { .batch = 1, .m = out->m, .n = out->n, .k = out->k, .tb = tb };
    return ls__matmul_packing_pays(&s) && !is_written(g, cell);
}

/* The packing of this weight, one for all products that want the same; made
 * before `node` when there is none yet. */
static ls__node *packing(ls__graph *g, ls__node *node, const ls__matmul_pack_attrs *p)
{
    const ls_op *op = ls_op_find("matmul_pack");
    for (int i = 0; i < node->at; i++)
        if (g->nodes[i]->op == op && g->nodes[i]->inputs[0] == node->inputs[1] &&
            ls__same_attrs(op, g->nodes[i]->attrs, p))
            return g->nodes[i];
    return ls__graph_call(g, node, op, p, 1, &node->inputs[1]);
}

static ls_status pack(ls__graph *g, ls__node *node, const ls__matmul_pack_attrs *p, int64_t act)
{
    ls__node *packed = packing(g, node, p);
    if (!packed)
        return ls_error_pending();
    const ls__matmul_packed_attrs attrs = { .pack = *p, .act = act };
    int inputs[3] = { node->inputs[0], packed->outputs[0] };
    if (node->n_inputs == 3)
        inputs[2] = node->inputs[2];
    ls__node *product =
        ls__graph_call(g, node, ls_op_find("matmul_packed"), &attrs, node->n_inputs, inputs);
    if (!product)
        return ls_error_pending();
    ls__graph_redirect(g, node->outputs[0], product->outputs[0], NULL);
    ls__graph_remove(g, node);
    return LS_OK;
}

static ls_status try_node(ls__graph *g, ls__node *node)
{
    ls__matmul_bias_attrs t = { .act = LS__ACT_NONE };
    if (ls__node_is(node, "matmul"))
        t.matmul = *(const ls__matmul_attrs *)node->attrs;
    else if (ls__node_is(node, "matmul_bias_act"))
        t = *(const ls__matmul_bias_attrs *)node->attrs;
    else
        return LS_OK;
    ls__matmul_pack_attrs p;
    if (!wants_packing(g, node, &t.matmul, &p))
        return LS_OK;
    ls__matmul_plan plan;
    ls_status st = ls__matmul_pack_open(&p, &plan);
    if (st)
        return st;
    bool plain = plan.b_plain; /* it likes the weight as it is */
    ls__matmul_plan_close(&plan);
    return plain ? LS_OK : pack(g, node, &p, t.act);
}

ls_status ls__pass_pack(ls__graph *g)
{
    ls_status st = LS_OK;
    for (int i = 0; i < g->n_nodes && !st; i++)
        st = try_node(g, g->nodes[i]);
    return st;
}
