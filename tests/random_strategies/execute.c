/*
 * A program as Lockstep runs it, on some number of devices, eager or traced; and the log of all
 * that can be seen of it from outside: results, variables, steps, errors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_strategies/program.h"

/* ---- values as text ------------------------------------------------------------------------- */

static void print_tensor(rs_log *log, ls_tensor *t)
{
    double elements[RS_ROOM];
    int64_t n = ls_count(t);
    rs_type type = { ls_dtype_of(t), ls_rank(t), { 0, 0 } };
    if (!t || type.rank > 2 || n > RS_ROOM) {
        rs_print(log, "%s %s", ls_describe(t), ls_error_report());
        return;
    }
    for (int i = 0; i < type.rank; i++)
        type.dims[i] = ls_shape(t)[i];
    const void *data = n ? ls_data(t) : NULL;
    for (int64_t i = 0; i < n && data; i++)
        switch (type.dtype) {
        case LS_F32:
            elements[i] = (double)((const float *)data)[i];
            break;
        case LS_F64:
            elements[i] = ((const double *)data)[i];
            break;
        case LS_I32:
            elements[i] = (double)((const int32_t *)data)[i];
            break;
        default:
            elements[i] = (double)((const int64_t *)data)[i];
            break;
        }
    rs_print_tensor(log, &type, elements);
}

static void print_leaf(rs_log *log, ls_value *leaf)
{
    static const char *const spreads[] = { "?", "plain", "per-replica", "mirrored", "mixed" };
    ls_variable *v = ls_leaf_variable(leaf);
    ls_error();
    if (v) {
        rs_print(log, "variable %s", ls_variable_name(v));
        return;
    }
    ls_spread spread = ls_spread_of(leaf);
    if (ls_components(leaf) == 1) /* mirrored on one replica is the same thing */
        spread = LS_SPREAD_PLAIN, leaf = ls_select(leaf, 0);
    rs_print(log, "%s", spreads[spread]);
    for (int i = 0; i < (spread == LS_SPREAD_PLAIN ? 1 : ls_components(leaf)); i++) {
        rs_print(log, " ");
        print_tensor(log, ls_leaf_tensor(spread == LS_SPREAD_PLAIN ? leaf : ls_select(leaf, i)));
    }
}

static void print_value(rs_log *log, const char *path, ls_value *v)
{
    char inner[128];
    if (ls_kind_of(v) == LS_LEAF) {
        rs_print(log, "  %s: ", path);
        print_leaf(log, v);
        rs_print(log, "\n");
        return;
    }
    rs_print(log, "  %s: %s of %d\n", path, ls_kind_of(v) == LS_LIST ? "list" : "dict",
             ls_length(v));
    for (int i = 0; i < ls_length(v); i++) {
        if (ls_kind_of(v) == LS_LIST)
            snprintf(inner, sizeof inner, "%.100s/%d", path, i);
        else
            snprintf(inner, sizeof inner, "%.100s/%s", path, ls_key(v, i));
        print_value(log, inner, ls_child(v, i));
    }
}

/* The text with what differs between two processes, or between eager and traced, left out. */
static void print_text(rs_log *log, const char *name, const char *text)
{
    rs_print(log, "%s: ", name);
    for (const char *s = text; *s; s++) {
        int skip = 0;
        if (s[0] == '0' && s[1] == 'x') {
            rs_print(log, "0x");
            s += 2 + strspn(s + 2, "0123456789abcdef");
        }
        sscanf(s, "tracing, at operator %*d: %n", &skip);
        if (!skip)
            sscanf(s, "operator %*d of %*d: %n", &skip);
        s += skip;
        if (!strncmp(s, ": step: ", 8)) /* the name of the traced function */
            s += 6;
        if (!strncmp(s, "ls_run_eager", 12)) {
            rs_print(log, "ls_run");
            s += 12;
        }
        if (!*s)
            break;
        rs_print(log, "%c", *s == '\n' ? ' ' : *s);
    }
    rs_print(log, "\n");
}

/* Who failed, as the text names it: the first replica in it. */
static void print_failure(rs_log *log)
{
    ls_status status = ls_error();
    const char *text = ls_error_text(), *who = strstr(text, "replica ");
    while (who && (who[8] < '0' || who[8] > '9'))
        who = strstr(who + 1, "replica ");
    if (who)
        rs_print(log, "  failed %s %d\n", ls_status_name(status), atoi(who + 8));
    else
        rs_print(log, "  failed %s -\n", ls_status_name(status));
    print_text(log, "text", text);
    print_text(log, "hint", ls_error_hint());
}

/* ---- a program --------------------------------------------------------------------------------- */

static void open_world(rs_world *w, const rs_program *p, rs_setting setting)
{
    static const char all[] = "/cpu:0,/cpu:1,/cpu:2,/cpu:3,/cpu:4,/cpu:5,/cpu:6,/cpu:7";
    char devices[sizeof all];
    snprintf(devices, sizeof devices, "%.*s", 7 * setting.devices - 1, all);
    *w = (rs_world){ .p = p };
    w->tasks = calloc((size_t)(p->n_bodies * RS_REPLICAS), sizeof *w->tasks);
    w->strategy = ls_mirrored(
        LS_MIRRORED(.devices = devices, .replicas = p->replicas, .sequential = setting.sequential));
    LS_SCOPE (w->strategy)
        for (int i = 0; i < p->n_variables; i++) {
            const rs_variable *v = &p->variables[i];
            double initial[RS_ROOM];
            for (int64_t k = 0; k < rs_count(&v->type); k++)
                initial[k] = rs_initial(p, i, (int)k);
            w->variables[i] = ls_variable_with(LS_VARIABLE(.synchronization = v->synchronization,
                                                           .aggregation = v->aggregation,
                                                           .local_writes = v->local_writes),
                                               v->name, rs_tensor(&v->type, initial));
        }
}

static void set_tasks(rs_world *w, const rs_body *body)
{
    for (int i = 0; i < RS_REPLICAS; i++)
        *rs_task_of(w, body, i) = (rs_task){ w, body, i };
    for (int i = 0; i < body->n_ops; i++)
        if (body->ops[i].body)
            set_tasks(w, body->ops[i].body);
}

static ls_value *arguments(const rs_world *w, int run)
{
    const rs_body *body = w->p->functions[w->p->runs[run].function];
    ls_value *regs[RS_REGISTERS] = { NULL };
    int leaves[8], n = rs_leaves(body->arguments, leaves);
    for (int i = 0; i < n; i++) {
        const rs_register *r = &body->registers[leaves[i]];
        ls_value *parts[RS_REPLICAS];
        double elements[RS_ROOM];
        for (int replica = 0; replica < w->p->replicas; replica++) {
            for (int64_t k = 0; k < rs_count(&r->type); k++)
                elements[k] = rs_argument(w->p, run, leaves[i], replica, (int)k);
            parts[replica] = ls_leaf(rs_tensor(&r->type, elements));
        }
        regs[leaves[i]] =
            r->spread == LS_SPREAD_PLAIN ? parts[0] : ls_per_replica(w->strategy, parts);
    }
    return rs_pack(w, body->arguments, regs);
}

/* The component of one replica is the variable itself, and an ON_READ variable without an
 * aggregation cannot be read here; but it can be saved. */
static ls_tensor *read_component(ls_variable *v, int replica)
{
    if (ls_variable_components(v) > 1 || ls_variable_synchronization(v) != LS_SYNC_ON_READ ||
        ls_variable_aggregation(v) != LS_AGGREGATE_NONE)
        return ls_read(ls_variable_component(v, replica));
    ls_value *saved = ls_variables_save(1, &v);
    return saved ? ls_item(saved, 0) : NULL;
}

static void print_variables(rs_log *log, const rs_world *w)
{
    LS_SCOPE (w->strategy)
        for (int i = 0; i < w->p->n_variables; i++) {
            ls_variable *v = w->variables[i];
            rs_print(log, "  %s =", ls_variable_name(v));
            for (int k = 0; k < ls_variable_components(v); k++) {
                rs_print(log, " ");
                print_tensor(log, read_component(v, k));
            }
            ls_tensor *combined = ls_read(v);
            rs_print(log, " combined ");
            if (combined)
                print_tensor(log, combined);
            else
                rs_print(log, "%s", ls_status_name(ls_error()));
            rs_print(log, "\n");
        }
    rs_print(log, "  steps %lld\n", (long long)ls_steps(w->strategy));
}

/* What can be made of a result after the run. */
static void print_uses(rs_log *log, const rs_world *w, const rs_nest *nest, ls_value *results)
{
    ls_value *regs[RS_REGISTERS] = { NULL };
    int leaves[8], n = rs_leaves(nest, leaves);
    rs_unpack(nest, results, regs);
    for (int i = 0; i < n && i < 2; i++) {
        ls_value *leaf = leaves[i] >= 0 ? regs[leaves[i]] : NULL;
        if (!leaf || ls_spread_of(leaf) != LS_SPREAD_PER_REPLICA)
            continue;
        rs_print(log, "  sum ");
        print_tensor(log, ls_reduce(w->strategy, LS_SUM, leaf, LS_NO_AXIS));
        rs_print(log, " mean ");
        print_tensor(log, ls_reduce(w->strategy, LS_MEAN, leaf, LS_NO_AXIS));
        ls_tensor *first = ls_leaf_tensor(ls_select(leaf, 0));
        if (ls_rank(first) > 0 && ls_count(first) * w->p->replicas <= RS_ROOM) {
            rs_print(log, " gathered ");
            print_tensor(log, ls_gather_replicas(w->strategy, leaf, 0));
        }
        rs_print(log, " local %d\n", ls_length(ls_local_results(w->strategy, leaf)));
    }
}

static void do_run(rs_log *log, const rs_world *w, int i, ls_function *traced)
{
    const rs_run *r = &w->p->runs[i];
    const rs_body *body = w->p->functions[r->function];
    rs_task *task = rs_task_of(w, body, 0);
    ls_value *got = NULL;
    if (r->between)
        LS_SCOPE (w->strategy) {
            rs_print(log, "between\n");
            got = rs_merge(w->strategy, NULL, rs_task_of(w, w->p->between, 0));
            if (got)
                print_value(log, "result", got);
            else
                print_failure(log);
        }
    rs_print(log, "run %d of function %d\n", i, r->function);
    got = traced ? ls_run(w->strategy, traced, arguments(w, i))
                 : ls_run_eager(w->strategy, rs_step, task, arguments(w, i));
    if (got) {
        print_value(log, "result", got);
        print_uses(log, w, body->results, got);
    } else {
        print_failure(log);
    }
    if (ls_error_pending())
        rs_print(log, "  left over: %s\n", ls_error_report());
    print_variables(log, w);
}

/* Saved, overwritten, restored. */
static void save(rs_log *log, rs_world *w)
{
    LS_SCOPE (w->strategy) {
        rs_print(log, "saved\n");
        ls_value *saved = ls_variables_save(w->p->n_variables, w->variables);
        if (saved)
            print_value(log, "saved", saved);
        for (int i = 0; i < w->p->n_variables; i++)
            ls_assign(w->variables[i], rs_zeros(&w->p->variables[i].type));
        ls_variables_restore(w->p->n_variables, w->variables, saved);
    }
    if (ls_error_pending())
        print_failure(log);
    print_variables(log, w);
}

void rs_execute(const rs_program *p, rs_setting setting, rs_log *log)
{
    rs_world w;
    ls_function *traced[RS_FUNCTIONS] = { NULL };
    ls_random_seed(p->seed);
    LS_FRAME
        open_world(&w, p, setting);
    if (ls_error_pending())
        print_failure(log);
    set_tasks(&w, p->between);
    for (int f = 0; f < p->n_functions; f++) {
        set_tasks(&w, p->functions[f]);
        if (setting.traced)
            traced[f] = ls_trace(rs_step, rs_task_of(&w, p->functions[f], 0));
    }
    for (int i = 0; i < p->n_runs; i++)
        LS_FRAME
            do_run(log, &w, i, traced[p->runs[i].function]);
    LS_FRAME
        save(log, &w);
    for (int f = 0; f < p->n_functions; f++)
        ls_function_free(traced[f]);
    for (int i = 0; i < p->n_variables; i++)
        ls_variable_free(w.variables[i]);
    if (ls_strategy_free(w.strategy))
        print_failure(log);
    free(w.tasks);
}
