/*
 * How much an instruction has to do, whoever does it: for who says how near to the machine's limits a
 * kernel comes.
 */
#ifndef LS__TRACE_WORK_H
#define LS__TRACE_WORK_H

#include "trace/graph.h"

typedef struct ls__work {
    double flops; /* of products; 0: it has none */
    double bytes; /* read and written once, if no cache holds anything */
} ls__work;

ls__work ls__node_work(const ls__graph *g, const ls__node *node);

#endif
