/*
 * A whole program, by the rules, and the log that Lockstep should write of it.
 */
#include <stdio.h>
#include <string.h>

#include "random_strategies/oracle.h"

/* ---- the log ---------------------------------------------------------------------------------- */

static void print_tensor(rs_log *log, const or_tensor *t)
{
    if (t->unknown)
        rs_print(log, "?");
    else
        rs_print_tensor(log, &t->type, t->at);
}

static void print_leaf(rs_log *log, const oracle *o, const or_leaf *leaf)
{
    static const char *const spreads[] = { "?", "plain", "per-replica", "mirrored" };
    rs_print(log, "%s", spreads[o->v == 1 ? LS_SPREAD_PLAIN : leaf->spread]);
    for (int r = 0; r < (leaf->spread == LS_SPREAD_PLAIN ? 1 : o->v); r++) {
        rs_print(log, " ");
        print_tensor(log, leaf->parts[r]);
    }
}

/* Entries of a dict in the order of their keys. */
static void order(const rs_nest *nest, int *at)
{
    for (int i = 0; i < nest->count; i++)
        at[i] = i;
    for (int i = 0; nest->kind == LS_DICT && i < nest->count; i++)
        for (int k = i + 1; k < nest->count; k++)
            if (strcmp(rs_keys[at[k]], rs_keys[at[i]]) < 0) {
                int swap = at[i];
                at[i] = at[k];
                at[k] = swap;
            }
}

static void print_nest(rs_log *log, const oracle *o, const char *path, const rs_nest *nest,
                       const or_leaf *leaves)
{
    char inner[RS_CHILDREN][128];
    int at[RS_CHILDREN], first[RS_CHILDREN], regs[OR_LEAVES], n = 0;
    if (nest->kind == LS_LEAF) {
        rs_print(log, "  %s: ", path);
        if (nest->reg < 0)
            rs_print(log, "variable %s", o->p->variables[-1 - nest->reg].name);
        else
            print_leaf(log, o, leaves);
        rs_print(log, "\n");
        return;
    }
    rs_print(log, "  %s: %s of %d\n", path, nest->kind == LS_LIST ? "list" : "dict", nest->count);
    for (int i = 0; i < nest->count; i++) {
        first[i] = n;
        n += rs_leaves(nest->child[i], regs);
        if (nest->kind == LS_LIST)
            snprintf(inner[i], sizeof inner[i], "%.100s/%d", path, i);
        else
            snprintf(inner[i], sizeof inner[i], "%.100s/%s", path, rs_keys[i]);
    }
    order(nest, at);
    for (int i = 0; i < nest->count; i++)
        print_nest(log, o, inner[at[i]], nest->child[at[i]], leaves + first[at[i]]);
}

static void print_uses(rs_log *log, oracle *o, const rs_nest *nest, const or_leaf *leaves)
{
    int regs[OR_LEAVES], n = rs_leaves(nest, regs);
    for (int i = 0; i < n && i < 2; i++) {
        /* A register that is there twice is looked at twice. */
        if (regs[i] < 0 || leaves[i].spread != LS_SPREAD_PER_REPLICA)
            continue;
        const or_tensor *const *parts = leaves[i].parts;
        rs_type type = parts[0]->type;
        rs_print(log, "  sum ");
        print_tensor(log, or_reduce(o, LS_SUM, o->v, parts));
        rs_print(log, " mean ");
        print_tensor(log, or_reduce(o, LS_MEAN, o->v, parts));
        if (type.rank > 0 && rs_count(&type) * o->v <= RS_ROOM) {
            int64_t count = rs_count(&type);
            type.dims[0] *= o->v;
            or_tensor *all = or_new(o, &type);
            for (int r = 0; r < o->v; r++) {
                memcpy(all->at + r * count, parts[r]->at, sizeof *all->at * (size_t)count);
                all->unknown |= parts[r]->unknown;
            }
            rs_print(log, " gathered ");
            print_tensor(log, all);
        }
        rs_print(log, " local %d\n", o->v);
    }
}

static void print_outcome(rs_log *log, oracle *o, const rs_nest *nest, const or_outcome *out)
{
    if (!out->status) {
        print_nest(log, o, "result", nest, out->leaves);
        return;
    }
    rs_print(log, "  failed %s ",
             out->status == OR_ANY ? "?" : ls_status_name((ls_status)out->status));
    if (out->who >= 0)
        rs_print(log, "%d\n", out->who);
    else
        rs_print(log, "%s\n", out->who == OR_ANY ? "?" : "-");
}

static void print_variables(rs_log *log, oracle *o, int steps)
{
    for (int i = 0; i < o->p->n_variables; i++) {
        const or_tensor *combined = or_combined(o, i);
        rs_print(log, "  %s =", o->p->variables[i].name);
        for (int r = 0; r < o->v; r++) {
            rs_print(log, " ");
            print_tensor(log, o->cells[i][r]);
        }
        rs_print(log, " combined ");
        if (combined)
            print_tensor(log, combined);
        else
            rs_print(log, "LS_INVALID");
        rs_print(log, "\n");
    }
    rs_print(log, "  steps %d\n", steps);
}

static void print_saved(rs_log *log, oracle *o)
{
    int n = 0;
    for (int i = 0; i < o->p->n_variables; i++) {
        const rs_variable *v = &o->p->variables[i];
        bool apart = v->synchronization == LS_SYNC_ON_READ || v->local_writes;
        n += (apart ? o->v : 0) + (!apart || v->aggregation != LS_AGGREGATE_NONE);
    }
    rs_print(log, "saved\n  saved: dict of %d\n", n);
    for (int i = 0; i < o->p->n_variables; i++) {
        const rs_variable *v = &o->p->variables[i];
        bool apart = v->synchronization == LS_SYNC_ON_READ || v->local_writes;
        if (!apart || v->aggregation != LS_AGGREGATE_NONE) {
            rs_print(log, "  saved/%s: plain ", v->name);
            print_tensor(log, or_combined(o, i));
            rs_print(log, "\n");
        }
        for (int r = 0; apart && r < o->v; r++) {
            rs_print(log, "  saved/%s/replica_%d: plain ", v->name, r);
            print_tensor(log, o->cells[i][r]);
            rs_print(log, "\n");
        }
    }
}

/* ---- a program --------------------------------------------------------------------------------- */

static void load(oracle *o)
{
    for (int i = 0; i < o->p->n_variables; i++) {
        or_tensor *t = or_new(o, &o->p->variables[i].type);
        for (int64_t k = 0; k < rs_count(&t->type); k++)
            t->at[k] = rs_initial(o->p, i, (int)k);
        for (int r = 0; r < o->v; r++)
            o->cells[i][r] = t;
    }
}

static void make_arguments(oracle *o, int run, or_leaf *leaves)
{
    const rs_body *body = o->p->functions[o->p->runs[run].function];
    int regs[OR_LEAVES], n = rs_leaves(body->arguments, regs);
    for (int i = 0; i < n; i++) {
        const rs_register *reg = &body->registers[regs[i]];
        const or_tensor *parts[RS_REPLICAS];
        for (int r = 0; r < o->v; r++) {
            or_tensor *t = or_new(o, &reg->type);
            for (int64_t k = 0; k < rs_count(&t->type); k++)
                t->at[k] = or_rounded(t, rs_argument(o->p, run, regs[i], r, (int)k));
            parts[r] = reg->spread == LS_SPREAD_PLAIN && r ? parts[0] : t;
        }
        leaves[i] = or_grouped(o, parts);
    }
}

void rs_predict(const rs_program *p, rs_log *log)
{
    oracle o = { .p = p, .v = p->replicas };
    int steps = 0;
    load(&o);
    for (int i = 0; i < p->n_runs; i++) {
        const rs_run *r = &p->runs[i];
        or_leaf arguments[OR_LEAVES];
        if (r->between) {
            rs_print(log, "between\n");
            or_outcome out = or_merge(&o, p->between, NULL, 0);
            print_outcome(log, &o, p->between->results, &out);
        }
        rs_print(log, "run %d of function %d\n", i, r->function);
        make_arguments(&o, i, arguments);
        or_outcome out = or_run(&o, p->functions[r->function], arguments);
        print_outcome(log, &o, p->functions[r->function]->results, &out);
        if (!out.status)
            print_uses(log, &o, p->functions[r->function]->results, out.leaves);
        steps += !out.status;
        print_variables(log, &o, steps);
    }
    print_saved(log, &o);
    print_variables(log, &o, steps);
    or_free_all(&o);
}
