/*
 * A program as text, for who looks for a mistake in it or in Lockstep.
 */
#include "random_strategies/program.h"

static const char *const codes[] = { "arith",    "unary",  "cast",      "const",       "sum_all",
                                     "draw",     "read",   "write",     "bad",         "all_reduce",
                                     "gradient", "loss",   "merge",     "fuse",        "who",
                                     "tag",      "reduce", "reduce_to", "batch",       "mirror",
                                     "gather",   "select", "local",     "write_value", "update",
                                     "run" };

static const char *const wrongs[] = { "",         "fails",      "unread",      "handled",
                                      "null",     "skips",      "other merge", "other shape",
                                      "other op", "other nest", "returns NULL" };

static void print_nest(rs_log *log, const rs_nest *n)
{
    if (n->kind == LS_LEAF && n->reg < 0)
        rs_print(log, "variable %d", -1 - n->reg);
    else if (n->kind == LS_LEAF)
        rs_print(log, "r%d", n->reg);
    for (int i = 0; n->kind != LS_LEAF && i < n->count; i++) {
        rs_print(log, "%s", i ? ", " : n->kind == LS_LIST ? "[" : "{");
        if (n->kind == LS_DICT)
            rs_print(log, "%s: ", rs_keys[i]);
        print_nest(log, n->child[i]);
    }
    if (n->kind != LS_LEAF)
        rs_print(log, n->kind == LS_LIST ? "]" : "}");
}

static void print_fault(rs_log *log, const rs_fault *fault)
{
    if (fault->wrong && fault->who)
        rs_print(log, "  !%s on %#x", wrongs[fault->wrong], fault->who);
}

static void print_register(rs_log *log, const rs_body *body, int reg)
{
    static const char *const spreads[] = { "?", "plain", "per-replica", "mirrored" };
    const rs_register *r = &body->registers[reg];
    rs_print(log, "r%d (%s%s", reg, spreads[r->spread], r->rough ? ", rough " : " ");
    rs_print(log, "%s[", ls_dtype_name(r->type.dtype));
    for (int i = 0; i < r->type.rank; i++)
        rs_print(log, "%s%lld", i ? "," : "", (long long)r->type.dims[i]);
    rs_print(log, "])");
}

static void print_body(rs_log *log, const rs_body *body, int indent)
{
    int regs[8], n = body->arguments ? rs_leaves(body->arguments, regs) : 0;
    rs_print(log, "%*s%s%s", indent, "", body->cross ? "merge of " : "step of ",
             body->stubborn ? "(stubborn) " : "");
    for (int i = 0; i < n; i++)
        print_register(log, body, regs[i]);
    rs_print(log, "\n");
    for (int i = 0; i < body->n_ops; i++) {
        const rs_op *op = &body->ops[i];
        rs_print(log, "%*s", indent + 2, "");
        if (op->dst >= 0) {
            print_register(log, body, op->dst);
            rs_print(log, " = ");
        }
        if (op->out) {
            print_nest(log, op->out);
            rs_print(log, " = ");
        }
        rs_print(log, "%s a r%d b %d which %d k %g variable %d to %d%s ", codes[op->code], op->a,
                 op->b, op->which, op->k, op->variable, op->to, op->handled ? " handled" : "");
        if (op->in)
            print_nest(log, op->in);
        print_fault(log, &op->fault);
        rs_print(log, "\n");
        if (op->body)
            print_body(log, op->body, indent + 4);
    }
    rs_print(log, "%*sreturns ", indent + 2, "");
    print_nest(log, body->results);
    print_fault(log, &body->at_return);
    rs_print(log, "\n");
}

void rs_dump(const rs_program *p, rs_log *log)
{
    rs_print(log, "%d replicas\n", p->replicas);
    for (int i = 0; i < p->n_variables; i++) {
        const rs_variable *v = &p->variables[i];
        rs_print(log, "variable %d %s: %s[", i, v->name, ls_dtype_name(v->type.dtype));
        for (int k = 0; k < v->type.rank; k++)
            rs_print(log, "%s%lld", k ? "," : "", (long long)v->type.dims[k]);
        rs_print(log, "] %s aggregation %d%s%s\n",
                 v->synchronization == LS_SYNC_ON_READ ? "ON_READ" : "ON_WRITE", v->aggregation,
                 v->local_writes ? " local writes" : "", v->rough ? " rough" : "");
    }
    for (int i = 0; i < p->n_functions; i++) {
        rs_print(log, "function %d: ", i);
        print_body(log, p->functions[i], 0);
    }
    rs_print(log, "between: ");
    print_body(log, p->between, 0);
    for (int i = 0; i < p->n_runs; i++)
        rs_print(log, "run %d: function %d%s, fuse %d blown on %#x\n", i, p->runs[i].function,
                 p->runs[i].between ? " after between" : "", p->runs[i].fuse, p->runs[i].blown);
}
