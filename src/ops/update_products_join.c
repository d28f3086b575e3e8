/*
 * Ranks that update a variable by products together, and come one by one. The work has stages, a
 * stage has parts; a rank claims parts of the stage that is due, and when there are none left waits
 * for those that others are at. Who does the last part of a stage begins the next one.
 *
 * Invariant: who waits, waits for a part that somebody is doing. So a rank that comes late, or
 * never, holds up nobody.
 */
#include "base/fpu.h"
#include "kernels/gemm_skip.h"
#include "kernels/threads.h"
#include "ops/update_products.h"
#include "os/event.h"

typedef ls__products_work work;

static void deal(work *w, int stage, int64_t parts)
{
    ls__claims_deal(&w->claims[stage], w->j.ranks, parts);
    atomic_init(&w->left[stage], parts);
}

void ls__products_deal(work *w, int first)
{
    deal(w, LS__PRODUCTS_OPEN, 1);
    deal(w, LS__PRODUCTS_LOOK, w->j.replicas);
    deal(w, LS__PRODUCTS_PACK, w->j.replicas);
    atomic_init(&w->stage, first);
}

ls_status ls__products_open(work *w)
{
    for (int i = 0; i < w->j.cells; i++) {
        w->j.at[i] = ls__cell_write(w->c->cells[i]);
        if (!w->j.at[i])
            return LS_NO_MEMORY;
    }
    return LS_OK;
}

static void look(work *w, int replica)
{
    const ls__products_job *j = &w->j;
    ls__products_operand *of = &w->j.of[replica];
    const ls__matmul_shape shape = {
        .batch = 1, .ta = true, .m = j->m, .n = j->n, .k = of->k, .lda = j->m
    };
    of->has_zeros = ls__skip_list_fits(j->m, of->k) && ls__skip_pays(&shape, of->x) &&
                    LS__PICK(ls__skip_table)->is_finite(of->dy, of->k * j->n);
}

/* Zeros are left out where all replicas have them. */
static const ls__products_way *choose(const ls__products_job *j)
{
    for (int r = 0; r < j->replicas; r++)
        if (!j->of[r].has_zeros)
            return &ls__products_all;
    return &ls__products_skip;
}

/* The parts that this rank gets; how many. */
static int64_t run(work *w, int stage, int rank)
{
    if (stage == LS__PRODUCTS_APPLY)
        return w->way->apply(&w->j, rank);
    int64_t done = 0;
    for (int64_t part; ls__claims_next(&w->claims[stage], rank, &part); done++) {
        if (stage == LS__PRODUCTS_OPEN)
            ls__products_open(
                w); /* which cannot fail: they are unshared, and nothing is journalled */
        else if (stage == LS__PRODUCTS_LOOK)
            look(w, (int)part);
        else
            w->way->pack(&w->j, (int)part);
    }
    return done;
}

/* All parts of the stage are done. */
static void begin_next(work *w, int stage)
{
    if (stage == LS__PRODUCTS_LOOK) {
        w->way = choose(&w->j);
        deal(w, LS__PRODUCTS_APPLY, w->way->parts(&w->j));
    }
    atomic_store_explicit(&w->stage, stage + 1, memory_order_release);
}

static int stage_now(work *w)
{
    return atomic_load_explicit(&w->stage, memory_order_acquire);
}

void ls__update_products_join(work *w, int rank)
{
    const uint64_t fpu = ls__fpu_enter();
    for (int stage = stage_now(w); stage < LS__PRODUCTS_DONE; stage = stage_now(w)) {
        const int64_t done = run(w, stage, rank);
        if (done > 0 &&
            atomic_fetch_sub_explicit(&w->left[stage], done, memory_order_acq_rel) == done)
            begin_next(w, stage);
        for (int turn = 0; stage_now(w) == stage; turn++)
            ls__back_off(turn);
    }
    ls__fpu_leave(fpu);
}
