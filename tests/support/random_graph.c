/*
 * Random programs: their properties, variables, arguments and the step itself. What a
 * choice does is in random_graph_ops.c. Invariant: all that is drawn here depends on
 * the program's seed alone, and what a choice does on the shapes before it, so
 * that running and tracing a program are the same calls.
 */
#include "support/random_graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RANK = 5 };

/* splitmix64 */
uint32_t rg_draw(uint64_t *state, uint32_t n)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return n ? (uint32_t)((z ^ z >> 31) >> 32) % n : 0;
}

void rg_make(rg_program *p, uint64_t seed)
{
    static const ls_dtype dtypes[] = { LS_F32, LS_F32, LS_F32, LS_F32, LS_F64, LS_BF16 };
    static const int64_t batches[] = { 4, 4, 3, 5, 1, 0 };
    uint64_t s = seed;
    *p = (rg_program){ .seed = seed };
    p->dtype = dtypes[rg_draw(&s, 6)];
    p->batch = batches[rg_draw(&s, 6)];
    p->odd = rg_draw(&s, 8) == 0;
    p->jumps = p->odd || p->dtype == LS_BF16 || rg_draw(&s, 3) == 0;
    p->writes = rg_draw(&s, 3) > 0;
    p->trains = rg_draw(&s, 4) > 0;
    p->adam = rg_draw(&s, 2);
    p->count = 5 + (int)rg_draw(&s, 56);
    for (int i = 0; i < p->count; i++)
        p->choices[i] = (uint64_t)rg_draw(&s, 0x7fffffff) << 20 ^ rg_draw(&s, 0x7fffffff);
    if (rg_draw(&s, 3) == 0) {
        p->fault = RG_BAD_LABEL + (rg_fault)rg_draw(&s, 4);
        p->fault_at = rg_draw(&s, 2) ? p->count - 1 : (int)rg_draw(&s, (uint32_t)p->count);
        p->batch = p->batch ? p->batch : 3;
    }
}

ls_dtype rg_variable_dtype(const rg_program *p)
{
    return p->dtype == LS_F64 ? LS_F64 : LS_F32;
}

/* ---- numbers ------------------------------------------------------------------------ */

static ls_tensor *numbers(ls_dtype dtype, int rank, const int64_t *dims, double low, double high,
                          uint64_t seed)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    double *data = malloc(sizeof *data * (size_t)(n + 1));
    for (int64_t i = 0; data && i < n; i++)
        data[i] = low + (high - low) * rg_draw(&seed, 1u << 30) / (double)(1u << 30);
    ls_tensor *t = data ? ls_cast(ls_from(LS_F64, rank, dims, data), dtype) : NULL;
    free(data);
    return t;
}

/* With an odd number here and there. */
static ls_tensor *with_odd(ls_tensor *t, uint64_t seed)
{
    static const double odd[] = { NAN, INFINITY, -INFINITY, -0.0, 1e-40, -1e-310 };
    ls_tensor *draw = numbers(LS_F64, ls_rank(t), ls_shape(t), 0, 1, seed);
    for (int i = 0; i < 6; i++) {
        ls_tensor *here = ls_less(draw, ls_scalar(LS_F64, 0.01 * (i + 1)));
        here = ls_logical_and(here, ls_greater(draw, ls_scalar(LS_F64, 0.01 * i)));
        t = ls_where(here, ls_scalar(ls_dtype_of(t), odd[i]), t);
    }
    return t;
}

ls_value *rg_arguments(const rg_world *w, int k, bool bad)
{
    const rg_program *p = w->p;
    ls_tensor *all[RG_ARGUMENTS];
    int64_t n = p->batch;
    uint64_t s = p->seed * 31 + (uint64_t)k;
    rg_fault f = bad ? p->fault : RG_NO_FAULT;
    all[RG_X] = numbers(p->dtype, LS_DIMS(n, 6), -1, 1, s + 1000);
    all[RG_IMAGE] = numbers(p->dtype, LS_DIMS(2, 6, 6, 2), -1, 1, s + 2000);
    all[RG_LABELS] = numbers(LS_I32, LS_DIMS(n), 0, 2.999, s + 3000);
    all[RG_IDS] = numbers(LS_I64, LS_DIMS(n, 2), 0, 6.999, s + 4000);
    all[RG_COLUMN] = numbers(p->dtype, LS_DIMS(n, 1), -1, 1, s + 5000);
    all[RG_DEEP] = numbers(p->dtype, LS_DIMS(2, 8, 8, 16), -1, 1, s + 6000);
    all[RG_WIDE] = numbers(p->dtype, LS_DIMS(4, 64), -1, 1, s + 7000);
    all[RG_DIVISOR] = numbers(LS_I32, LS_DIMS(n), 1, 6.999, s + 8000);
    all[RG_SPARSE] = ls_sparse(numbers(LS_I64, LS_DIMS(3), 0, 6.999, s + 9000),
                               numbers(rg_variable_dtype(p), LS_DIMS(3, 6), -1, 1, s + 10000), 7);
    /* Of one that is not trained: eagerly a gradient knows this read for one of the step's. */
    all[RG_VIEW] = ls_read(w->variables[RG_STATE]);
    for (int i = RG_X; p->odd && i <= RG_WIDE; i++)
        if (ls_dtype_is_float(ls_dtype_of(all[i])))
            all[i] = with_odd(all[i], s + 11000);
    /* One bad row among good ones. */
    double far = s % 2 ? 100 : -100;
    ls_tensor *last = f ? ls_one_hot(ls_scalar_int(LS_I32, n - 1), n, LS_I32) : NULL;
    if (f == RG_BAD_LABEL)
        all[RG_LABELS] = ls_add(all[RG_LABELS], ls_scale(last, far));
    if (f == RG_BAD_ID || f == RG_BAD_ROW)
        all[RG_IDS] = ls_add(all[RG_IDS], ls_scale(ls_cast(ls_expand_dims(last, 1), LS_I64), far));
    if (f == RG_BAD_DIVISOR)
        all[RG_DIVISOR] = ls_mul(all[RG_DIVISOR], ls_sub(ls_scalar_int(LS_I32, 1), last));
    return ls_tensors(RG_ARGUMENTS, all);
}

/* ---- the pool ----------------------------------------------------------------------- */

uint32_t rg_number(rg_world *w, uint32_t n)
{
    return rg_draw(&w->random, n);
}

static bool fits(const ls_tensor *t)
{
    return t && ls_count(t) <= RG_ELEMENTS && ls_rank(t) <= MOST_RANK;
}

void rg_push(rg_world *w, ls_tensor *t)
{
    if (fits(t) && w->n_pool < RG_POOL)
        w->pool[w->n_pool++] = t;
}

ls_tensor *rg_pick(rg_world *w)
{
    uint32_t n = (uint32_t)w->n_pool, late = n < 4 ? n : 4;
    return w->pool[rg_number(w, 3) ? n - 1 - rg_number(w, late) : rg_number(w, n)];
}

/* The latest tensor of this rank at least whose last axis is `size`; else a slice of x. */
ls_tensor *rg_with_last(rg_world *w, int rank, int64_t size)
{
    for (int i = w->n_pool; i-- > 0;) {
        const ls_tensor *t = w->pool[i];
        if (ls_rank(t) >= rank && ls_shape(t)[ls_rank(t) - 1] == size && rg_number(w, 3))
            return w->pool[i];
    }
    ls_tensor *x = ls_item(w->arguments, RG_X);
    return size == 6 ? x : ls_slice(x, 2, (int64_t[]){ 0, 0 }, (int64_t[]){ -1, size });
}

/* An image of this many channels that a 3x3 filter fits into; else the argument. */
ls_tensor *rg_image(rg_world *w, int64_t channels, int argument)
{
    for (int i = w->n_pool; i-- > 0;) {
        const int64_t *d = ls_shape(w->pool[i]);
        if (ls_rank(w->pool[i]) == 4 && d[3] == channels && d[1] >= 3 && d[2] >= 3 &&
            rg_number(w, 3))
            return w->pool[i];
    }
    return ls_item(w->arguments, argument);
}

ls_tensor *rg_as_program(const rg_world *w, ls_tensor *t)
{
    return ls_dtype_of(t) == w->p->dtype ? t : ls_cast(t, w->p->dtype);
}

ls_tensor *rg_variable(rg_world *w, int i)
{
    return rg_as_program(w, ls_read(w->variables[i]));
}

/* Any tensor as one small number. */
ls_tensor *rg_mean(ls_tensor *t)
{
    return ls_tanh(ls_scale(ls_sum(t, LS_ALL_AXES, false), 1 / (1.0 + (double)ls_count(t))));
}

/* ---- variables ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int rank;
    int64_t dims[4];
} shapes[RG_VARIABLES] = {
    [RG_W65] = { "w65", 2, { 6, 5 } },
    [RG_B5] = { "b5", 1, { 5 } },
    [RG_W53] = { "w53", 2, { 5, 3 } },
    [RG_B3] = { "b3", 1, { 3 } },
    [RG_W36] = { "w36", 2, { 3, 6 } },
    [RG_B6] = { "b6", 1, { 6 } },
    [RG_K24] = { "k24", 4, { 3, 3, 2, 4 } },
    [RG_K44] = { "k44", 4, { 3, 3, 4, 4 } },
    [RG_B4] = { "b4", 1, { 4 } },
    [RG_TABLE] = { "table", 2, { 7, 6 } },
    [RG_SCALE] = { "scale", 1, { 6 } },
    [RG_OFFSET] = { "offset", 1, { 6 } },
    [RG_NUMBER] = { "number", 0, { 0 } },
    [RG_KDEEP] = { "kdeep", 4, { 3, 3, 16, 16 } },
    [RG_BDEEP] = { "bdeep", 1, { 16 } },
    [RG_KGREY] = { "kgrey", 4, { 3, 3, 1, 8 } },
    [RG_BGREY] = { "bgrey", 1, { 8 } },
    [RG_STATE] = { "state", 2, { 3, 1 } },
    [RG_WIDE_W] = { "wide", 2, { 64, 64 } },
    [RG_EMPTY] = { "empty", 2, { 0, 6 } },
};

/* Where a gradient is all rounding Adam would make it as large as any other; an
 * epsilon like this keeps it small. */
static ls_optimizer *optimizer_of(const rg_program *p)
{
    static const char *const names[] = { "b", "gamma" };
    ls_optimizer *o = NULL;
    switch (p->seed % 4 + (p->adam ? 4 : 0)) {
    case 0:
        return ls_sgd(LS_SGD(.rate = 0.02, .clip_global_norm = 1));
    case 1:
        return ls_sgd(LS_SGD(.rate = 0.02, .momentum = 0.5, .clip_value = 0.5));
    case 2:
        return ls_sgd(LS_SGD(.rate = 0.02, .momentum = 0.5, .nesterov = true, .lazy = true));
    case 3:
        return ls_sgd(LS_SGD(.rate = 0.02));
    case 4:
        return ls_adam(LS_ADAM(.rate = 0.01, .epsilon = 0.01, .clip_norm = 1));
    case 5:
        o = ls_adamw(LS_ADAM(.rate = 0.01, .epsilon = 0.01, .weight_decay = 0.1));
        ls_exclude_from_weight_decay(o, 0, NULL, 2, names);
        return o;
    case 6:
        return ls_adam(LS_ADAM(.epsilon = 0.01, .lazy = true,
                               .schedule = LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, .rate = 0.01,
                                                       .steps = 4, .warmup_steps = 2)));
    default:
        return ls_adam(LS_ADAM(.rate = 0.01, .epsilon = 0.01));
    }
}

rg_world *rg_world_open(const rg_program *p)
{
    rg_world *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->p = p;
    ls_dtype dtype = rg_variable_dtype(p);
    LS_FRAME {
        for (int i = 0; i < RG_VARIABLES; i++) {
            double most = shapes[i].rank > 2 ? 0.2 : 0.7;
            w->variables[i] = ls_variable_new(
                shapes[i].name,
                numbers(dtype, shapes[i].rank, shapes[i].dims, -most, most, p->seed + (uint64_t)i),
                i < RG_FROZEN);
        }
        w->outside = ls_keep(numbers(p->dtype, LS_DIMS(1, 6), -1, 1, p->seed + 77));
        w->optimizer = optimizer_of(p);
    }
    return w;
}

void rg_world_close(rg_world *w)
{
    if (!w)
        return;
    for (int i = 0; i < RG_VARIABLES; i++)
        ls_variable_free(w->variables[i]);
    ls_optimizer_free(w->optimizer);
    ls_drop(w->outside);
    free(w);
}

/* ---- the step ----------------------------------------------------------------------------- */

/* What a step gives: the latest values, some twice, an argument and a constant as they
 * are, and what choices have asked for. */
static ls_value *results_of(rg_world *w)
{
    uint64_t s = w->p->seed + 5;
    for (int i = 0; i < 5; i++)
        w->results[w->n_results++] = w->pool[w->n_pool - 1 - i];
    for (int i = 0; i < 3; i++)
        w->results[w->n_results++] = w->pool[rg_draw(&s, (uint32_t)w->n_pool)];
    w->results[w->n_results] = w->results[w->n_results - 1];
    w->n_results++;
    w->results[w->n_results++] = ls_item(w->arguments, RG_DIVISOR);
    w->results[w->n_results++] = ls_item(w->arguments, RG_VIEW);
    ls_value *parts[2] = { ls_tensors(w->n_results, w->results),
                           ls_leaf(ls_full(LS_F32, LS_DIMS(2), 1.5)) };
    return ls_list(2, parts);
}

ls_value *rg_step(ls_value *arguments, void *user)
{
    static const int first[] = { RG_X, RG_IMAGE, RG_COLUMN, RG_DEEP, RG_WIDE };
    rg_world *w = user;
    w->n_pool = w->n_results = 0;
    w->arguments = arguments;
    w->tape = ls_tape_open();
    w->losses = NULL;
    w->pool[w->n_pool++] = ls_import(w->outside);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        w->pool[w->n_pool++] = ls_item(arguments, first[i]);
    for (int i = 0; i < w->p->count && !ls_error_pending(); i++) {
        rg_choose(w, w->p->choices[i]);
        if (w->p->fault && i == w->p->fault_at && !ls_error_pending())
            rg_choose_fault(w);
    }
    if (w->p->trains && !ls_error_pending())
        rg_minimize(w);
    return ls_error_pending() ? NULL : results_of(w);
}
