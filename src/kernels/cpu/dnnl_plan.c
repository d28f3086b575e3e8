/*
 * A plan: one oneDNN primitive, memory objects for its arguments in both
 * layouts and the reorders between them, all made up front. Invariant: running
 * and packing allocate nothing of ours and only change data handles, which is
 * why one plan serves one thread at a time.
 */
#include "kernels/cpu/dnnl_engine.h"
#include "kernels/threads.h"

#include <stdlib.h>

static ls_status make_step(dnnl_primitive_desc_t pd, ls__dnnl_step *step)
{
    const dnnl_memory_desc_t *scratch =
        dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    step->scratch_bytes = dnnl_memory_desc_get_size(scratch);
    dnnl_status_t st =
        dnnl_memory_create(&step->scratch, scratch, ls__dnnl_engine(), DNNL_MEMORY_NONE);
    if (!st)
        st = dnnl_primitive_create(&step->primitive, pd);
    return ls__dnnl_status(st, "primitive");
}

static void free_step(ls__dnnl_step *step)
{
    dnnl_memory_destroy(step->scratch);
    dnnl_primitive_destroy(step->primitive);
}

/* `exec` has room for one more than its n arguments: the scratchpad. */
static ls_status run_step(const ls__dnnl_step *step, int threads, dnnl_exec_arg_t *exec, int n)
{
    dnnl_stream_t stream;
    ls_status st = ls__dnnl_enter(threads, &stream);
    if (st)
        return st;
    if (step->scratch_bytes > 0) {
        void *scratch = ls__dnnl_buffer(LS__DNNL_SCRATCH, step->scratch_bytes);
        if (!scratch)
            return LS_NO_MEMORY;
        dnnl_memory_set_data_handle(step->scratch, scratch);
        exec[n++] = (dnnl_exec_arg_t){ DNNL_ARG_SCRATCHPAD, step->scratch };
    }
    return ls__dnnl_status(dnnl_primitive_execute(step->primitive, stream, n, exec), "execute");
}

static ls_status make_reorder(const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                              ls__dnnl_step *out)
{
    dnnl_engine_t engine = ls__dnnl_engine();
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd = NULL;
    ls_status st = ls__dnnl_attr(&attr);
    if (st)
        return st;
    st = ls__dnnl_status(dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, attr),
                         "reorder");
    if (!st)
        st = make_step(pd, out);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    return st;
}

static ls_status make_arg(ls__dnnl_plan *plan, int i, dnnl_primitive_desc_t pd,
                          const ls__dnnl_arg *arg)
{
    const dnnl_memory_desc_t *wanted = dnnl_primitive_desc_query_md(pd, arg->query, 0);
    dnnl_engine_t engine = ls__dnnl_engine();
    plan->arg[i].id = arg->id;
    plan->arg[i].plain = dnnl_memory_desc_equal(wanted, &arg->plain);
    plan->arg[i].bytes = dnnl_memory_desc_get_size(wanted);
    dnnl_status_t st = dnnl_memory_create(&plan->arg[i].wanted, wanted, engine, DNNL_MEMORY_NONE);
    if (st || plan->arg[i].plain)
        return ls__dnnl_status(st, "memory");
    st = dnnl_memory_create(&plan->arg[i].ours, &arg->plain, engine, DNNL_MEMORY_NONE);
    if (st)
        return ls__dnnl_status(st, "memory");
    ls_status made = make_reorder(&arg->plain, wanted, &plan->arg[i].pack);
    return made ? made : make_reorder(wanted, &arg->plain, &plan->arg[i].unpack);
}

/* A forward descriptor's second weights are its bias; empty when it has none. */
static ls_status make_bias(ls__dnnl_plan *plan, dnnl_primitive_desc_t pd)
{
    const dnnl_memory_desc_t *bias = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 1);
    if (!bias || bias->ndims == 0)
        return LS_OK;
    return ls__dnnl_status(
        dnnl_memory_create(&plan->bias, bias, ls__dnnl_engine(), DNNL_MEMORY_NONE), "bias");
}

ls_status ls__dnnl_plan_make(const ls__dnnl_key *key, dnnl_primitive_desc_t pd,
                             const ls__dnnl_arg args[LS__DNNL_ARGS], ls__dnnl_plan **out)
{
    ls__dnnl_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return ls__fail_memory("a oneDNN plan", sizeof *plan);
    atomic_init(&plan->refs, 1);
    plan->threads = ls__kernel_threads_get();
    ls_status st = make_step(pd, &plan->main);
    for (int i = 0; i < LS__DNNL_ARGS && !st; i++)
        st = make_arg(plan, i, pd, &args[i]);
    if (!st)
        st = make_bias(plan, pd);
    if (st) {
        ls__dnnl_plan_release(plan);
        return st;
    }
    ls__dnnl_cache(key, plan);
    *out = plan;
    return LS_OK;
}

void ls__dnnl_plan_release(ls__dnnl_plan *plan)
{
    /* acq_rel: the last one out sees what the others did with the plan. */
    if (!plan || atomic_fetch_sub_explicit(&plan->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (int i = 0; i < LS__DNNL_ARGS; i++) {
        dnnl_memory_destroy(plan->arg[i].wanted);
        dnnl_memory_destroy(plan->arg[i].ours);
        free_step(&plan->arg[i].pack);
        free_step(&plan->arg[i].unpack);
    }
    dnnl_memory_destroy(plan->bias);
    free_step(&plan->main);
    free(plan);
}

/* Telling oneDNN about a pointer costs 50 ns and writes zeros into the padding
 * of blocked layouts, so it is told only what changed. */
static void point_wanted(ls__dnnl_plan *plan, int i, const void *data)
{
    if (plan->arg[i].wanted_data == data)
        return;
    dnnl_memory_set_data_handle(plan->arg[i].wanted, (void *)data);
    plan->arg[i].wanted_data = (void *)data;
}

void ls__dnnl_plan_bias(ls__dnnl_plan *plan, const void *bias)
{
    if (plan->bias_data == bias)
        return;
    dnnl_memory_set_data_handle(plan->bias, (void *)bias);
    plan->bias_data = bias;
}

ls_status ls__dnnl_plan_run(ls__dnnl_plan *plan, void *const arg[LS__DNNL_ARGS])
{
    int n = LS__DNNL_ARGS;
    dnnl_exec_arg_t exec[LS__DNNL_ARGS + 2];
    for (int i = 0; i < LS__DNNL_ARGS; i++) {
        point_wanted(plan, i, arg[i]);
        exec[i] = (dnnl_exec_arg_t){ plan->arg[i].id, plan->arg[i].wanted };
    }
    if (plan->bias)
        exec[n++] = (dnnl_exec_arg_t){ DNNL_ARG_BIAS, plan->bias };
    return run_step(&plan->main, plan->threads, exec, n);
}

ls_status ls__dnnl_plan_pack(ls__dnnl_plan *plan, int i, const void *ours, void *wanted)
{
    point_wanted(plan, i, wanted);
    dnnl_memory_set_data_handle(plan->arg[i].ours, (void *)ours);
    dnnl_exec_arg_t exec[3] = { { DNNL_ARG_FROM, plan->arg[i].ours },
                                { DNNL_ARG_TO, plan->arg[i].wanted } };
    return run_step(&plan->arg[i].pack, plan->threads, exec, 2);
}

ls_status ls__dnnl_plan_unpack(ls__dnnl_plan *plan, int i, const void *wanted, void *ours)
{
    point_wanted(plan, i, wanted);
    dnnl_memory_set_data_handle(plan->arg[i].ours, ours);
    dnnl_exec_arg_t exec[3] = { { DNNL_ARG_FROM, plan->arg[i].wanted },
                                { DNNL_ARG_TO, plan->arg[i].ours } };
    return run_step(&plan->arg[i].unpack, plan->threads, exec, 2);
}

ls_status ls__dnnl_plan_run_plain(ls__dnnl_plan *plan, void *const arg[LS__DNNL_ARGS], int written)
{
    void *used[LS__DNNL_ARGS];
    for (int i = 0; i < LS__DNNL_ARGS; i++) {
        used[i] = plan->arg[i].plain ? arg[i] : ls__dnnl_buffer(i, plan->arg[i].bytes);
        if (!used[i])
            return LS_NO_MEMORY;
        ls_status st = plan->arg[i].plain || i == written
                           ? LS_OK
                           : ls__dnnl_plan_pack(plan, i, arg[i], used[i]);
        if (st)
            return st;
    }
    ls_status st = ls__dnnl_plan_run(plan, used);
    if (st || plan->arg[written].plain)
        return st;
    return ls__dnnl_plan_unpack(plan, written, used[written], arg[written]);
}
