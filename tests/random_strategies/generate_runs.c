/*
 * The frame of a program: which functions there are, what goes wrong in them, and which runs
 * are done one after another, bad ones and good ones.
 */
#include <stdlib.h>

#include "random_strategies/program.h"

/* ---- mistakes ------------------------------------------------------------------------------ */

/* Places where a mistake can be made: operations, and returns (op NULL). */
typedef struct site {
    rs_body *body;
    rs_op *op;
} site;

enum { SITES = 256 };

static bool is_meeting(const rs_program *p, const rs_op *op)
{
    const rs_variable *v = &p->variables[op->variable];
    return op->code == RS_ALL_REDUCE || op->code == RS_MERGE ||
           (op->code == RS_WRITE && v->synchronization == LS_SYNC_ON_WRITE && !v->local_writes);
}

static int collect(const rs_program *p, rs_body *body, site *sites, int n)
{
    for (int i = 0; i < body->n_ops && n < SITES - 2; i++) {
        rs_op *op = &body->ops[i];
        if (op->code == RS_BAD || (!body->cross && is_meeting(p, op)))
            sites[n++] = (site){ body, op };
        if (op->body)
            n = collect(p, op->body, sites, n);
    }
    sites[n++] = (site){ body, NULL };
    return n;
}

static unsigned some_replicas(rs_maker *m)
{
    unsigned v = (unsigned)m->p->replicas, one = 1u << rs_draw(m, v);
    unsigned two = rs_draw(m, 2) ? 1u << rs_draw(m, v) : 0;
    return one | two;
}

/* Whether the mistake fits the place. */
static bool place(rs_maker *m, const site *s, rs_wrong wrong)
{
    rs_fault fault = { wrong, some_replicas(m) };
    bool meeting = s->op && s->op->code != RS_BAD, alone = m->p->replicas == 1;
    bool all = fault.who == (1u << m->p->replicas) - 1;
    switch (wrong) {
    case RS_FAILS:
    case RS_UNREAD:
        if (!s->op || s->op->code != RS_BAD)
            return false;
        break;
    case RS_NULL_ARGUMENT:
        if (!meeting)
            return false;
        break;
    case RS_SKIPS:
        if (!meeting || all)
            return false;
        break;
    case RS_OTHER_MERGE:
        if (!meeting || s->op->code != RS_MERGE || all)
            return false;
        break;
    case RS_OTHER_SHAPE:
    case RS_OTHER_REDUCE:
        if (!meeting || s->op->code != RS_ALL_REDUCE || all)
            return false;
        break;
    case RS_OTHER_STRUCTURE:
        if ((s->op && (!meeting || s->op->code == RS_WRITE)) || s->body->cross || all)
            return false;
        break;
    case RS_NULL_RESULT:
        if (s->op)
            return false;
        break;
    default:
        return false;
    }
    if (alone && wrong >= RS_SKIPS && wrong <= RS_OTHER_STRUCTURE)
        return false;
    if (s->op)
        s->op->fault = fault;
    else
        s->body->at_return = fault;
    return true;
}

static bool make_mistake(rs_maker *m, rs_body *function)
{
    site sites[SITES];
    int n = collect(m->p, function, sites, 0);
    for (int tries = 0; tries < 40; tries++) {
        rs_wrong wrong = 1 + (rs_wrong)rs_draw(m, RS_WRONGS - 1);
        const site *s = &sites[rs_draw(m, (uint64_t)n)];
        if (!place(m, s, wrong))
            continue;
        if (wrong == RS_FAILS) /* and again: the earliest segment, then the lowest replica */
            for (int i = 0; i < 4; i++)
                place(m, &sites[rs_draw(m, (uint64_t)n)], RS_FAILS);
        return true;
    }
    return false;
}

/* ---- functions and runs ---------------------------------------------------------------------- */

typedef struct made {
    bool faulty;
    int fuses;
    unsigned handled_fuses, nested_fuses;
} made;

static made make_function(rs_maker *m, int f)
{
    rs_body *body = rs_body_new(m, false, 0);
    int n = 1 + (int)rs_draw(m, 4), regs[4];
    for (int i = 0; i < n; i++) {
        rs_type type = rs_some_type(m);
        bool rough = ls_dtype_is_float(type.dtype) && rs_draw(m, 4) == 0;
        bool plain = rs_draw(m, 3) == 0;
        regs[i] = rs_register_new(body, type, rough, rough ? 33554432 : 9,
                                  plain ? LS_SPREAD_PLAIN : LS_SPREAD_PER_REPLICA);
    }
    body->arguments = rs_with_fuses(m, rs_nest_of(m, n, regs));
    m->faulty = false;
    m->fuses = 0;
    m->handled = 0;
    m->handled_fuses = m->nested_fuses = 0;
    rs_fill_replica(m, body);
    if (!m->faulty && rs_draw(m, 5) < (f ? 3 : 1))
        m->faulty = make_mistake(m, body);
    m->p->functions[f] = body;
    return (made){ m->faulty, m->fuses, m->handled_fuses, m->nested_fuses };
}

static void make_runs(rs_maker *m, const made *functions)
{
    rs_program *p = m->p;
    p->n_runs = 3 + (int)rs_draw(m, RS_RUNS - 2);
    for (int i = 0; i < p->n_runs; i++) {
        rs_run *r = &p->runs[i];
        /* Function 0 comes again and again: eager, its replicas go at once from the second time on. */
        r->function = i == 0 || rs_draw(m, 3) == 0 ? 0 : (int)rs_draw(m, (uint64_t)p->n_functions);
        const made *f = &functions[r->function];
        r->between = i && rs_draw(m, 3) == 0;
        if (f->faulty || !f->fuses || rs_draw(m, 3))
            continue;
        r->fuse = (int)rs_draw(m, (uint64_t)f->fuses);
        r->blown = some_replicas(m);
        if (f->handled_fuses >> r->fuse & 1)
            p->traceable = false;
        if (f->nested_fuses >> r->fuse & 1)
            p->fails_nested = true;
    }
}

rs_program *rs_make(uint64_t seed)
{
    static const int replicas[] = { 1, 1, 2, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 8 };
    rs_program *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    rs_maker m = { .p = p, .state = seed * 0x2545f4914f6cdd1du + 1 };
    made functions[RS_FUNCTIONS];
    p->seed = seed;
    p->traceable = true;
    p->replicas = replicas[rs_draw(&m, sizeof replicas / sizeof *replicas)];
    rs_make_variables(&m);
    p->n_functions = 1 + (int)rs_draw(&m, RS_FUNCTIONS);
    for (int f = 0; f < p->n_functions; f++)
        functions[f] = make_function(&m, f);
    p->between = rs_body_new(&m, true, RS_DEPTH); /* no runs in it */
    rs_fill_cross(&m, p->between);
    make_runs(&m, functions);
    return p;
}
