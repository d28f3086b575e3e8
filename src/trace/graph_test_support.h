/* What tests of graphs share: the samples by name, and finding a node in them. */
#ifndef LS__TRACE_GRAPH_TEST_SUPPORT_H
#define LS__TRACE_GRAPH_TEST_SUPPORT_H

#include "tensor/test_support.h"
#include "trace/graph_samples.h"

static inline ls__graph *made(const char *name)
{
    for (int i = 0; i < SAMPLES; i++)
        if (strcmp(samples[i].name, name) == 0) {
            ls__graph *g = sample(i);
            if (!g)
                fail_msg("%s: %s", name, ls_error_report());
            return g;
        }
    fail_msg("no sample %s", name);
    return NULL;
}

static inline ls__node *node_of(ls__graph *g, const char *name)
{
    for (int i = 0; i < g->n_nodes; i++)
        if (ls__node_is(g->nodes[i], name))
            return g->nodes[i];
    fail_msg("no node %s", name);
    return NULL;
}

#endif
