/*
 * Dead nodes: what has no effect and nobody uses goes. Effects stay, used or not: a
 * draw that nobody looks at still counts (rule F).
 */
#include <stdlib.h>

#include "trace/pass.h"

ls_status ls__pass_dead(ls__graph *g)
{
    bool *used = calloc((size_t)g->n_wires + 1, sizeof *used);
    if (!used)
        return ls__fail_memory("a pass", (size_t)g->n_wires + 1);
    for (int i = 0; i < g->n_outputs; i++)
        used[g->outputs[i]] = true;
    int kept = g->n_nodes; /* nodes[kept ..] stay */
    for (int i = g->n_nodes; i-- > 0;) {
        ls__node *node = g->nodes[i];
        bool alive = ls__node_has_effect(node);
        for (int k = 0; k < node->n_outputs; k++)
            alive = alive || used[node->outputs[k]];
        if (!alive)
            continue;
        for (int k = 0; k < node->n_inputs; k++)
            used[node->inputs[k]] = true;
        g->nodes[--kept] = node;
    }
    for (int i = kept; i < g->n_nodes; i++)
        g->nodes[i - kept] = g->nodes[i];
    g->n_nodes -= kept;
    ls__graph_number(g);
    free(used);
    return LS_OK;
}
