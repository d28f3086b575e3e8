/*
 * Running a traced function on many replicas: a cache of steps in the function, most recently
 * used first. The key is all a trace depends on: strategy, numeric check, kernel threads,
 * and the structure, kinds, dtypes and shapes of the arguments; not the placement.
 */
#include "strategy/step.h"

#include <stdlib.h>
#include <string.h>

#include "dispatch/tape.h"
#include "kernels/threads.h"
#include "strategy/replay.h"
#include "strategy/tracer.h"
#include "tensor/tensor.h"
#include "tensor/value.h"
#include "trace/signature.h"

static ls_status signature_of(const ls_strategy *s, const ls_value *arguments, ls__signature *out)
{
    ls__signature_begin(out);
    ls_status st = ls__signature_number(out, (int64_t)s->serial);
    if (!st)
        st = ls__signature_number(out, ls__numerics());
    if (!st)
        st = ls__signature_number(out, ls__kernel_threads_get());
    return st ? st : ls__signature_value(out, arguments, false);
}

static void free_steps(void *steps)
{
    for (ls__traced_step *step = steps; step;) {
        ls__traced_step *next = step->next;
        ls__step_free(step);
        step = next;
    }
}

/* Found steps move to the front. */
static ls__traced_step *find(ls_function *f, const ls__signature *key)
{
    ls__traced_step *first = f->steps;
    for (ls__traced_step *step = first, *before = NULL; step; before = step, step = step->next) {
        if (step->signature_size != key->size ||
            memcmp(step->signature, key->bytes, key->size) != 0)
            continue;
        if (before) {
            before->next = step->next;
            step->next = first;
            f->steps = step;
        }
        return step;
    }
    return NULL;
}

/* Puts a new one in front; the last goes when there are too many. */
static void add(ls_function *f, ls__traced_step *step, const ls_value *arguments)
{
    step->next = f->steps;
    f->steps = step;
    f->free_steps = free_steps;
    f->traces++;
    int n = 1;
    ls__traced_step *last = step;
    for (; last->next && n < f->room; n++)
        last = last->next;
    if (!last->next)
        return;
    ls__step_free(last->next); /* the list is never longer than its room */
    last->next = NULL;
    ls__function_thrown(f, arguments);
}

/* ---- tracing -------------------------------------------------------------------------------------- */

static ls__traced_step *record(ls_strategy *s, ls__run *outer, ls_function *f, ls_value *arguments)
{
    ls__tracer *t = ls__tracer_new(s, f->name, arguments);
    if (!t)
        return NULL;
    ls__run run = { .s = s,
                    .outer = outer,
                    .step = f->step,
                    .user = f->user,
                    .arguments = arguments,
                    .one_by_one = true,
                    .tracer = t };
    ls_value *results = NULL;
    LS_FRAME
        results = ls__run_all(&run);
    return ls__tracer_end(t, results != NULL);
}

static ls__traced_step *trace(ls_strategy *s, ls__run *outer, ls_function *f,
                              const ls__signature *key, ls_value *arguments)
{
    ls__traced_step *step = record(s, outer, f, arguments);
    if (!step)
        return NULL;
    step->signature = malloc(key->size);
    if (step->signature)
        memcpy(step->signature, key->bytes, key->size);
    else
        ls__fail_memory("a traced step", key->size);
    step->signature_size = key->size;
    if (!step->signature || ls__step_compile(step, f->off)) {
        ls__step_free(step);
        return NULL;
    }
    add(f, step, arguments);
    return step;
}

/* ---- running --------------------------------------------------------------------------------------- */

/* The function itself: a nested run that draws goes on with the draws of the replicas, which
 * their threads count. */
static ls_value *run_itself(ls_strategy *s, ls__run *outer, ls_function *f, ls_value *arguments)
{
    ls__run run = { .s = s,
                    .outer = outer,
                    .step = f->step,
                    .user = f->user,
                    .arguments = arguments,
                    .one_by_one = true };
    return ls__run_all(&run);
}

static ls_status check_arguments(const ls_function *f, const ls_value *arguments)
{
    int n = ls_leaf_count(arguments);
    const ls_value **leaves = ls__frame_alloc(sizeof *leaves * (size_t)(n + 1));
    ls_status st = leaves ? LS_OK : LS_NO_MEMORY;
    if (leaves)
        ls__leaves(arguments, leaves);
    for (int i = 0; i < n && !st; i++)
        for (int k = 0; k < ls_components(leaves[i]) && !st; k++) {
            const ls_tensor *t = ls__leaf_component(leaves[i], k);
            st = t ? ls__function_takes(f, i, t) : LS_OK;
        }
    return st;
}

static ls_value *run(ls_strategy *s, ls__run *outer, ls_function *f, ls_value *arguments)
{
    ls__signature key;
    if (check_arguments(f, arguments) || signature_of(s, arguments, &key))
        return NULL;
    ls__traced_step *step = find(f, &key);
    if (!step)
        step = trace(s, outer, f, &key, arguments);
    if (!step)
        return NULL;
    f->last_recorded = ls__piece_traced(&step->programs[0]);
    f->last_plan = step->programs[0].plan;
    step->timed = f->timed;
    if (outer && step->draws)
        return run_itself(s, outer, f, arguments);
    return ls__replay_step(s, step, arguments);
}

ls_value *ls__step_run(ls_strategy *s, ls__run *outer, ls_function *f, ls_value *arguments)
{
    if (ls__function_enter("ls_run", f))
        return NULL;
    int tape = ls__tape_pause();
    ls_value *results = run(s, outer, f, arguments);
    ls__tape_resume(tape);
    ls__function_leave(f);
    return results;
}
