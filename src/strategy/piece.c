#include "strategy/piece.h"

#include <stdlib.h>

#include "dispatch/call.h"

ls_status ls__source_add(ls__sources *list, int from, int index)
{
    ls__source *more = realloc(list->at, sizeof *more * (size_t)(list->count + 1));
    if (!more)
        return ls__fail_memory("a traced step", sizeof *more * (size_t)(list->count + 1));
    list->at = more;
    more[list->count++] = (ls__source){ from, index };
    return LS_OK;
}

void ls__piece_free(ls__piece *p)
{
    ls__instance_close(p->instance);
    if (!p->shares_plan)
        ls__plan_free(p->plan);
    ls__graph_free(p->recorded);
    ls__graph_free(p->as_traced);
    ls__folded_free(&p->folded);
    free(p->gained.at);
    free(p->inputs);
}

ls_status ls__piece_make_inputs(ls__piece *p)
{
    p->inputs = calloc((size_t)p->recorded->n_inputs + 1, sizeof *p->inputs);
    return p->inputs ? LS_OK : ls__fail_memory("a traced step", sizeof *p->inputs);
}

ls__node *ls__meet_node(const ls__graph *g, int k)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op->flags & LS__OP_SYNC && k-- == 0)
            return g->nodes[i];
    return NULL;
}
