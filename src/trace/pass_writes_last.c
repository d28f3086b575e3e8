/*
 * Writes move towards the end: past every node that does not read a cell they write.
 * So updates come after all that can fail (rule E: nothing has to be saved), values
 * read before are used before they are overwritten (nothing has to be copied), and
 * the updates of a step stand together. Writes keep their order among themselves;
 * none crosses a meeting of replicas.
 */
#include <stdlib.h>

#include "trace/pass.h"

typedef struct mover {
    ls__node **list; /* the new order */
    int n;
    ls__node **held; /* writes that wait, in order */
    int n_held;
} mover;

static void release(mover *m, int count)
{
    for (int i = 0; i < count; i++)
        m->list[m->n++] = m->held[i];
    for (int i = count; i < m->n_held; i++)
        m->held[i - count] = m->held[i];
    m->n_held -= count;
}

/* How many of the writes must happen before `node`: up to the last one that writes a
 * cell of its, or makes one of its inputs. */
static int needed(const mover *m, const ls__graph *g, const ls__node *node)
{
    for (int i = m->n_held; i-- > 0;) {
        const ls__node *write = m->held[i];
        for (int a = 0; a < write->n_cells; a++)
            for (int b = 0; b < node->n_cells; b++)
                if (write->cells[a] == node->cells[b])
                    return i + 1;
        for (int k = 0; k < node->n_inputs; k++)
            if (g->wires[node->inputs[k]].kind == LS__WIRE_RESULT &&
                g->wires[node->inputs[k]].node == write)
                return i + 1;
    }
    return 0;
}

ls_status ls__pass_writes_last(ls__graph *g)
{
    size_t room = (size_t)g->n_nodes + 1;
    mover m = { .list = malloc(room * sizeof *m.list), .held = malloc(room * sizeof *m.held) };
    if (!m.list || !m.held) {
        free(m.list);
        free(m.held);
        return ls__fail_memory("a pass", room * sizeof *m.list);
    }
    for (int i = 0; i < g->n_nodes; i++) {
        ls__node *node = g->nodes[i];
        if (node->op->flags & LS__OP_SYNC)
            release(&m, m.n_held);
        else if (node->op->flags & LS_OP_WRITES) {
            m.held[m.n_held++] = node;
            continue;
        }
        release(&m, needed(&m, g, node));
        m.list[m.n++] = node;
    }
    release(&m, m.n_held);
    for (int i = 0; i < m.n; i++)
        g->nodes[i] = m.list[i];
    ls__graph_number(g);
    free(m.list);
    free(m.held);
    return LS_OK;
}
