/*
 * Variables with a cell per replica. A replica writes its own while others run; so what was
 * read of it before, and may have got to another replica (as an argument, through a meeting, by
 * a shared pointer), must not be a view of the cell any more when they go on.
 */
#include "strategy/strategy.h"
#include "strategy/variable.h"

static void lock(ls_strategy *s)
{
    while (atomic_flag_test_and_set_explicit(&s->own_lock, memory_order_acquire))
        ;
}

static void unlock(ls_strategy *s)
{
    atomic_flag_clear_explicit(&s->own_lock, memory_order_release);
}

static bool is_listed(const ls_variable *v)
{
    return v->strategy && v->n_cells > 1;
}

void ls__own_add(ls_variable *v)
{
    ls_strategy *s = v->strategy;
    if (!is_listed(v))
        return;
    lock(s);
    v->own_next = s->own_first;
    if (v->own_next)
        v->own_next->own_before = v;
    s->own_first = v;
    unlock(s);
}

void ls__own_remove(ls_variable *v)
{
    ls_strategy *s = v->strategy;
    if (!is_listed(v) || (!v->own_before && s->own_first != v))
        return; /* it was never quite made */
    lock(s);
    if (v->own_next)
        v->own_next->own_before = v->own_before;
    if (v->own_before)
        v->own_before->own_next = v->own_next;
    else
        s->own_first = v->own_next;
    unlock(s);
}

ls_status ls__own_settle(ls_strategy *s)
{
    ls_status st = LS_OK;
    lock(s);
    for (ls_variable *v = s->own_first; v && !st; v = v->own_next)
        for (int i = 0; i < v->n_cells && !st; i++)
            st = ls__cell_settle(v->cells[i]);
    unlock(s);
    return st;
}
