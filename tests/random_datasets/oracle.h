/*
 * The oracle from inside: an iterator a node, pulled one element at a time, by the plainest loop that
 * does what the header says.
 */
#ifndef LS__TESTS_RANDOM_DATASETS_ORACLE_H
#define LS__TESTS_RANDOM_DATASETS_ORACLE_H

#include "random_datasets/program.h"

enum { RD_MOST_STEPS = 20000, RD_MOST_CYCLE = 8 };

/* Elements that are kept: of a cache, of a shuffle's input. */
typedef struct rd_list {
    int n, room;
    rd_element **at;
    bool whole;
} rd_list;

/* One dataset as it was built: the program's, or one that a body made of an element. */
typedef struct rd_scope {
    const rd_element *given;
    rd_list cache[RD_NODES];
} rd_scope;

struct rd_memory {
    rd_pool pool; /* elements, too: all of it goes together */
    rd_scope *scope;
};

typedef struct rd_oracle {
    rd_pool *pool;
    rd_orders *orders; /* NULL: shuffles do nothing */
    int epoch;
    int openings[RD_NODES];
    int64_t steps;
    const char *why; /* it gave up */
} rd_oracle;

typedef struct rd_it {
    rd_oracle *o;
    const rd_node *node;
    rd_scope *scope;
    struct rd_it *in[RD_INPUTS];
    struct rd_it *inner[RD_MOST_CYCLE];
    int64_t at, turn, given;
    bool begun, ended, some;
    rd_list list;
    const rd_order *order;
    const rd_file *file;
    const rd_element *element;
} rd_it;

rd_it *rd_it_open(rd_oracle *o, const rd_node *node, rd_scope *scope);
ls_status rd_it_next(rd_it *it, rd_element **out); /* LS_END; what a failure is */
void rd_list_add(rd_oracle *o, rd_list *list, rd_element *e);

/* oracle_stages.c: those of one input; false: not one of them. */
bool rd_it_next_stage(rd_it *it, rd_element **out, ls_status *st);

#endif
