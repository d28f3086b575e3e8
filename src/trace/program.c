/*
 * Tracing a step into a program, and replaying it. A sparse tensor crosses as two:
 * its values, then its rows. Invariant: the inputs and outputs of the graph are the
 * leaves of arguments and results, in order.
 */
#include "trace/program.h"

#include <stdlib.h>
#include <string.h>

#include "dispatch/context.h"
#include "trace/outputs.h"
#include "trace/record.h"

/* ---- tracing ------------------------------------------------------------------------ */

/* Leaves as an array of the frame's; NULL: the error. */
static ls_tensor **leaves_of(const ls_value *v, int *n)
{
    *n = ls_leaf_count(v);
    ls_tensor **leaves = ls__frame_alloc(sizeof *leaves * (size_t)(*n + 1));
    return !leaves || ls_flatten(v, leaves) ? NULL : leaves;
}

static ls_tensor *symbol_for(ls__recorder *r, const ls_tensor *t)
{
    if (!t->sparse_rows)
        return ls__recorder_argument(r, &t->spec, t->device);
    ls__spec values = t->spec;
    values.dims[0] = t->sparse_rows->spec.dims[0];
    ls_tensor *v = ls__recorder_argument(r, &values, t->device);
    ls_tensor *rows = ls__recorder_argument(r, &t->sparse_rows->spec, t->device);
    return v && rows ? ls_sparse(rows, v, t->spec.dims[0]) : NULL;
}

static ls_value *symbols_for(ls__recorder *r, const ls_value *arguments)
{
    int n;
    ls_tensor **leaves = leaves_of(arguments, &n);
    for (int i = 0; leaves && i < n; i++) {
        leaves[i] = symbol_for(r, leaves[i]);
        if (!leaves[i])
            return NULL;
    }
    return leaves ? ls_pack(arguments, n, leaves) : NULL;
}

static ls_status add_output(ls__recorder *r, const ls_tensor *t)
{
    int wire = ls__recorder_wire(r, t);
    return wire < 0 ? ls_error_pending() : ls__graph_output(ls__recorder_graph(r), wire);
}

static ls_status take_results(ls__recorder *r, const ls_value *results)
{
    int n;
    ls_tensor **leaves = leaves_of(results, &n);
    ls_status st = leaves ? LS_OK : ls_error_pending();
    for (int i = 0; i < n && !st; i++) {
        st = ls__check_tensor("a traced function", "a result", leaves[i]);
        if (!st && leaves[i]->spec.dtype == LS_BYTES)
            st = ls__fail(LS_SHAPE, "a traced function returns %s; strings stay outside",
                          ls_describe(leaves[i]));
        if (!st && leaves[i]->sparse_rows) {
            st = add_output(r, ls_sparse_values(leaves[i]));
            if (!st)
                st = add_output(r, leaves[i]->sparse_rows);
        } else if (!st) {
            st = add_output(r, leaves[i]);
        }
    }
    return st;
}

static ls_status run_step(ls__recorder *r, ls_step step, void *user, const ls_value *arguments,
                          ls__program *p)
{
    ls_value *symbols = symbols_for(r, arguments);
    ls_value *results = symbols ? step(symbols, user) : NULL;
    if (ls_error_pending())
        return ls_error_pending();
    if (!results)
        return ls__hint(ls__fail(LS_INVALID, "the function returned NULL"),
                        "return ls_list(0, NULL) when there is nothing to return");
    ls_status st = take_results(r, results);
    if (!st)
        p->results = ls_value_keep(results);
    return st || p->results ? st : ls_error_pending();
}

static ls_status record_step(const char *name, ls_step step, void *user, const ls_value *arguments,
                             ls__program *p)
{
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = LS_NO_MEMORY;
    int at = 1;
    ls__recorder *r = ls__recorder_open(name);
    if (r) {
        LS_FRAME
            st = run_step(r, step, user, arguments, p);
        at = ls__recorder_at(r);
        p->recorded = ls__recorder_close(r, !st);
    }
    return ls__error_scope_close(&scope, st, "tracing, at operator %d", at);
}

static ls_status compile(ls__program *p, ls__pass_set off)
{
    ls__graph *copy = ls__graph_copy(p->recorded);
    p->plan = copy ? ls__plan_make(copy, off, ls__numerics() ? LS__PLAN_CHECKED : 0) : NULL;
    return p->plan ? ls__instance_open(p->plan, NULL, &p->instance) : ls_error_pending();
}

ls__program *ls__program_trace(const char *name, ls_step step, void *user,
                               const ls_value *arguments, ls__pass_set off)
{
    ls__program *p = calloc(1, sizeof *p);
    if (!p) {
        ls__fail_memory("a traced step", sizeof *p);
        return NULL;
    }
    ls_status st = record_step(name, step, user, arguments, p);
    if (!st)
        st = compile(p, off);
    if (st) {
        ls__program_free(p);
        return NULL;
    }
    return p;
}

void ls__program_free(ls__program *p)
{
    if (!p)
        return;
    ls__instance_close(p->instance);
    ls__plan_free(p->plan);
    ls__graph_free(p->recorded);
    ls_value_drop(p->results);
    free(p->signature);
    free(p);
}

/* ---- replaying -------------------------------------------------------------------------- */

static ls_status run_all(ls__program *p, const void *const *inputs)
{
    int meeting = -1;
    ls_status st;
    ls__draw draw;
    ls__take_draws(p->plan->graph->draws, &draw);
    ls__instance_begin(p->instance, inputs, &draw);
    while ((st = ls__instance_run(p->instance, &meeting)) == LS_OK && meeting >= 0) {
        ls_call *c = ls__instance_call(p->instance, meeting); /* one replica meets itself */
        st = c->op->kernel(c);
        if (st) {
            st = ls__instance_failed(p->instance, meeting, st);
            break;
        }
    }
    if (st)
        ls__give_back_draws(&draw);
    return ls__instance_end(p->instance, st);
}

/* The results of a replay, made before it runs: what could fail after it would fail
 * after variables have changed. `outs` gets the tensor of each output of the graph. */
static ls_value *make_results(const ls__program *p, ls_tensor *const *inputs, ls_tensor **outs)
{
    int n;
    ls_tensor **leaves = leaves_of(p->results, &n);
    for (int i = 0, k = 0; leaves && i < n; i++) {
        const ls_tensor *like = leaves[i];
        leaves[i] = outs[k] =
            ls__output_make(p->plan, k, inputs, p->plan->graph->n_inputs, like->device);
        k++;
        if (leaves[i] && like->sparse_rows) {
            outs[k] = ls__output_make(p->plan, k, inputs, p->plan->graph->n_inputs, like->device);
            leaves[i] = outs[k] ? ls_sparse(outs[k], leaves[i], like->spec.dims[0]) : NULL;
            k++;
        }
        if (!leaves[i])
            return NULL;
    }
    return leaves ? ls_pack(p->results, n, leaves) : NULL;
}

ls_value *ls__program_replay(ls__program *p, const ls_value *arguments)
{
    const ls__graph *g = p->plan->graph;
    int n, k = 0;
    ls_tensor **leaves = leaves_of(arguments, &n);
    ls_tensor **inputs = ls__frame_alloc(sizeof *inputs * (size_t)(g->n_inputs + 1));
    ls_tensor **outs = ls__frame_alloc(sizeof *outs * (size_t)(g->n_outputs + 1));
    const void **data = ls__frame_alloc(sizeof *data * (size_t)(g->n_inputs + 1));
    if (!leaves || !inputs || !outs || !data)
        return NULL;
    for (int i = 0; i < n; i++) {
        inputs[k++] = leaves[i];
        if (leaves[i]->sparse_rows)
            inputs[k++] = leaves[i]->sparse_rows;
    }
    ls_value *results = make_results(p, inputs, outs);
    if (!results || ls__instance_unshare(p->instance))
        return NULL;
    for (int i = 0; i < g->n_inputs;
         i++) /* not before: what was read of a variable may have moved */
        data[i] = ls__data(inputs[i]);
    if (run_all(p, data))
        return NULL;
    for (int i = 0; i < g->n_outputs; i++)
        ls__output_fill(p->plan, p->instance, i, g->n_inputs, outs[i]);
    return results;
}
