/*
 * Traced functions: a small cache of programs, most recently used first. Invariant:
 * one call at a time; the second, from another thread or from inside the step's own
 * kernels, is refused.
 */
#include "trace/function.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "dispatch/context.h"
#include "dispatch/sink.h"
#include "dispatch/tape.h"
#include "trace/signature.h"

enum { DEFAULT_CACHE = 16, MOST_CACHE = 4096 };

/* ---- making --------------------------------------------------------------------------- */

void ls_trace_init(ls_trace_options *options)
{
    if (options)
        *options = (ls_trace_options){ .size = sizeof *options };
}

static ls_status check_options(const ls_trace_options *o, ls__pass_set *off)
{
    if (o->size != sizeof *o)
        return ls__hint(
            ls__fail(LS_INVALID, "ls_trace: options of %zu bytes, wants %zu", o->size, sizeof *o),
            "fill options with LS_TRACE(...), or with ls_trace_init first");
    if (o->cache < 0 || o->cache > MOST_CACHE)
        return ls__hint(ls__fail(LS_INVALID, "ls_trace: a cache of %d programs", o->cache),
                        "1 to %d; 0 stands for %d", MOST_CACHE, DEFAULT_CACHE);
    return ls__pass_set_parse("ls_trace", o->off, off);
}

ls_function *ls_trace_with(const ls_trace_options *options, ls_step step, void *user)
{
    static const ls_trace_options defaults = { .size = sizeof defaults };
    const ls_trace_options *o = options ? options : &defaults;
    ls__pass_set off;
    if (check_options(o, &off))
        return NULL;
    if (!step) {
        ls__fail(LS_INVALID, "ls_trace: the function is NULL");
        return NULL;
    }
    ls_function *f = calloc(1, sizeof *f);
    char *name = strdup(o->name && o->name[0] ? o->name : "step");
    if (!f || !name) {
        ls__fail_memory("ls_trace", sizeof *f);
        free(f);
        free(name);
        return NULL;
    }
    *f = (ls_function){ .name = name,
                        .step = step,
                        .user = user,
                        .off = off,
                        .room = o->cache ? o->cache : DEFAULT_CACHE,
                        .warn_at = o->cache ? o->cache : DEFAULT_CACHE };
    return f;
}

ls_function *ls_trace(ls_step step, void *user)
{
    return ls_trace_with(NULL, step, user);
}

void ls_function_free(ls_function *f)
{
    if (!f)
        return;
    if (atomic_load_explicit(&f->busy, memory_order_acquire)) {
        f->doomed = true; /* by its own step: the call frees it when it is done */
        return;
    }
    while (f->programs) {
        ls__program *next = f->programs->next;
        ls__program_free(f->programs);
        f->programs = next;
    }
    if (f->free_steps)
        f->free_steps(f->steps);
    free(f->name);
    free(f);
}

/* ---- the cache --------------------------------------------------------------------------- */

/* Found programs move to the front. */
static ls__program *find(ls_function *f, const ls__signature *s)
{
    for (ls__program **link = &f->programs; *link; link = &(*link)->next) {
        ls__program *p = *link;
        if (p->signature_size != s->size || memcmp(p->signature, s->bytes, s->size) != 0)
            continue;
        *link = p->next;
        p->next = f->programs;
        f->programs = p;
        return p;
    }
    return NULL;
}

/* Throws the last away when there are too many; see ls__function_thrown. */
static void make_room(ls_function *f, const ls_value *arguments)
{
    int n = 1;
    ls__program **link = &f->programs;
    for (; *link && n < f->room; n++)
        link = &(*link)->next;
    if (!*link)
        return;
    ls__program_free(*link); /* the list is never longer than its room */
    *link = NULL;
    ls__function_thrown(f, arguments);
}

/* Says so when as many have gone as are kept, and whenever the number has doubled. */
void ls__function_thrown(ls_function *f, const ls_value *arguments)
{
    f->last_recorded = NULL;
    f->last_plan = NULL;
    if (++f->thrown < f->warn_at)
        return;
    f->warn_at *= 2;
    ls__log(
        LS_LOG_WARNING,
        "traced function '%s': traced %lld times, at most %d programs are kept, and so some are "
        "traced again and again; now for %s. Give arguments of fewer different shapes (and "
        "strategies), or raise .cache",
        f->name, (long long)f->traces, f->room, ls__signature_text(arguments));
}

static ls__program *trace(ls_function *f, const ls__signature *s, const ls_value *arguments)
{
    unsigned char *own = malloc(s->size);
    if (!own) {
        ls__fail_memory("ls_function_call", s->size);
        return NULL;
    }
    memcpy(own, s->bytes, s->size);
    ls__program *p = ls__program_trace(f->name, f->step, f->user, arguments, f->off);
    if (!p) {
        free(own);
        return NULL;
    }
    p->signature = own;
    p->signature_size = s->size;
    f->traces++;
    make_room(f, arguments);
    p->next = f->programs;
    f->programs = p;
    return p;
}

/* ---- calling --------------------------------------------------------------------------------- */

ls_status ls__function_takes(const ls_function *f, int i, const ls_tensor *t)
{
    char argument[128];
    snprintf(argument, sizeof argument, "%s: argument", f->name);
    ls_status st = ls__check_symbol(argument, i, t);
    if (st || t->spec.dtype != LS_BYTES)
        return st;
    return ls__hint(ls__fail(LS_SHAPE, "%s %d is %s", argument, i, ls_describe(t)),
                    "strings stay outside of traced functions");
}

static ls_status check_arguments(const ls_function *f, const ls_value *arguments)
{
    if (!arguments && ls_error_pending())
        return ls_error_pending();
    if (!f || !arguments)
        return ls__fail(LS_INVALID, "ls_function_call: the %s NULL",
                        f ? "arguments are" : "function is");
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    int n = ls_leaf_count(arguments);
    ls_tensor **leaves = ls__frame_alloc(sizeof *leaves * (size_t)(n + 1));
    ls_status st = leaves ? ls_flatten(arguments, leaves) : LS_NO_MEMORY;
    st = ls__error_scope_close(&scope, st, "ls_function_call: the arguments of '%s'", f->name);
    for (int i = 0; i < n && !st; i++) {
        st = ls__check_tensor(f->name, "an argument", leaves[i]);
        if (!st)
            st = ls__function_takes(f, i, leaves[i]);
    }
    return st;
}

/* The function itself: part of a step that is being traced around it, or noted by a
 * tape. */
static ls_value *run_inline(ls_function *f, ls_value *arguments)
{
    char name[128]; /* the step may free its function */
    snprintf(name, sizeof name, "%s", f->name);
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_value *results = f->step(arguments, f->user);
    ls_status st = results ? LS_OK : ls_error_pending();
    if (!results && !st)
        st = ls__hint(ls__fail(LS_INVALID, "the function returned NULL"),
                      "return ls_list(0, NULL) when there is nothing to return");
    return ls__error_scope_close(&scope, st, "%s", name) ? NULL : results;
}

ls_status ls__function_enter(const char *who, ls_function *f)
{
    if (atomic_exchange_explicit(&f->busy, true, memory_order_acquire))
        return ls__hint(ls__fail(LS_STATE, "%s: '%s' is being called already", who, f->name),
                        "one call of a function at a time; give each thread a function of its own");
    return LS_OK;
}

void ls__function_leave(ls_function *f)
{
    /* Release pairs with the acquire above: the next caller sees what this one did. */
    atomic_store_explicit(&f->busy, false, memory_order_release);
    if (f->doomed)
        ls_function_free(f);
}

static ls_value *replay(ls_function *f, ls_value *arguments)
{
    ls__signature s;
    if (ls__signature_of(arguments, &s))
        return NULL;
    /* What fails in here is this call's error, whatever was pending before. */
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls__program *p = find(f, &s);
    if (!p)
        p = trace(f, &s, arguments);
    if (p) {
        f->last_recorded = p->recorded;
        f->last_plan = p->plan;
    }
    ls_value *results = p ? ls__program_replay(p, arguments) : NULL;
    return ls__error_scope_close(&scope, results ? LS_OK : ls_error_pending(), "%s", f->name)
               ? NULL
               : results;
}

ls_value *ls_function_call(ls_function *f, ls_value *arguments)
{
    if (check_arguments(f, arguments))
        return NULL;
    if (ls__sink_get() || ls__tape_noting() || ls__is_one_of_many())
        return run_inline(f, arguments);
    if (ls__function_enter("ls_function_call", f))
        return NULL;
    ls_value *results = replay(f, arguments);
    ls__function_leave(f);
    return results;
}

/* ---- looking inside ----------------------------------------------------------------------------- */

int64_t ls_function_traces(const ls_function *f)
{
    return f ? f->traces : 0;
}

ls_status ls__function_called(const char *who, const ls_function *f)
{
    if (!f)
        return ls__fail(LS_INVALID, "%s: the function is NULL", who);
    if (!f->last_plan)
        return ls__hint(ls__fail(LS_STATE, "%s: '%s' has no program yet", who, f->name),
                        "the first call makes one, unless a tape is open: then it runs eagerly");
    return LS_OK;
}

ls_status ls_function_look(const ls_function *f, ls_function_figures *out)
{
    ls_status st = ls__function_called("ls_function_look", f);
    if (st)
        return st;
    if (!out)
        return ls__fail(LS_INVALID, "ls_function_look: `out` is NULL");
    if (out->size != sizeof *out)
        return ls__hint(ls__fail(LS_INVALID, "ls_function_look: figures of %zu bytes, wants %zu",
                                 out->size, sizeof *out),
                        "set .size = sizeof(ls_function_figures)");
    const ls__plan *plan = f->last_plan;
    *out = (ls_function_figures){ .size = sizeof *out,
                                  .operators = f->last_recorded->n_nodes,
                                  .instructions = plan->n_instructions,
                                  .arena_bytes = plan->arena_bytes + plan->own_bytes,
                                  .arena_least = plan->arena_least,
                                  .constant_bytes = plan->constant_bytes,
                                  .packed_bytes = plan->kept_bytes };
    return LS_OK;
}

const char *ls_function_dump(const ls_function *f, ls_dump_format format, bool compiled)
{
    if (ls__function_called("ls_function_dump", f))
        return NULL;
    if (format != LS_DUMP_TEXT && format != LS_DUMP_DOT) {
        ls__hint(ls__fail(LS_INVALID, "ls_function_dump: format %d", (int)format),
                 "LS_DUMP_TEXT or LS_DUMP_DOT");
        return NULL;
    }
    const ls__graph *g = compiled ? f->last_plan->graph : f->last_recorded;
    char *text = format == LS_DUMP_TEXT ? ls__graph_text(g) : ls__graph_dot(g);
    char *own = text ? ls__frame_string(text) : NULL;
    free(text);
    return own;
}
