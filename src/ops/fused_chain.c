/*
 * chain: element-wise calls in one walk over their elements; see fused_chain.h for
 * its program and kernels/chain.h for how it runs.
 *
 * Programs come out of files too, so nothing in them is trusted: the shape rule
 * refuses whatever the kernel could not run, and the kernel reads the program
 * through the same function.
 */
#include "ops/fused_chain.h"

/* ---- functions by code ---------------------------------------------------------------- */

static const uint8_t code_of[LS__FN_COUNT] = {
#define CODE(name, code) [LS__FN_##name] = (code),
    LS__CHAIN_CODES(CODE)
};

/* Plus 1: 0 is a code of no function. */
static const uint8_t fn_of[] = {
#define FN(name, code) [(code)] = LS__FN_##name + 1,
    LS__CHAIN_CODES(FN)
};

static const uint8_t operands_of[LS__FN_COUNT] = {
#define OPERANDS(name, operands) [LS__FN_##name] = (operands),
    LS__FN_LIST(OPERANDS)
};

/* -1 when there is none. */
static int function_of(int64_t code)
{
    return code >= 0 && code < (int64_t)sizeof fn_of ? fn_of[code] - 1 : -1;
}

int64_t ls__chain_code(ls__fn fn)
{
    return code_of[fn];
}

const char *ls__chain_name(int64_t code)
{
    static const char *const names[LS__FN_COUNT] = {
#define NAME(name, operands) [LS__FN_##name] = #name,
        LS__FN_LIST(NAME)
    };
    int fn = function_of(code);
    return code == LS__CHAIN_WHERE  ? "where"
           : code == LS__CHAIN_CAST ? "cast"
           : fn < 0                 ? "?"
                                    : names[fn];
}

int ls__chain_operands(int64_t code)
{
    if (code == LS__CHAIN_WHERE)
        return 3;
    if (code == LS__CHAIN_CAST)
        return 1;
    int fn = function_of(code);
    return fn < 0 ? 0 : operands_of[fn];
}

static bool gives_bool(ls__fn fn)
{
    return (fn >= LS__FN_equal && fn <= LS__FN_logical_not) || fn == LS__FN_isfinite ||
           fn == LS__FN_isnan;
}

static bool is_data(int64_t dtype)
{
    return dtype > 0 && dtype <= LS_BYTES && LS__ANY & LS__BIT(dtype);
}

ls__loop *ls__chain_loop(int64_t code, int64_t operand, int64_t result)
{
    if (!is_data(operand) || !is_data(result))
        return NULL;
    ls_dtype from = (ls_dtype)operand, to = (ls_dtype)result;
    if (code == LS__CHAIN_WHERE)
        return from == to ? ls__where_loop(ls_dtype_size(to)) : NULL;
    if (code == LS__CHAIN_CAST)
        return from != to ? ls__cast_loop(from, to) : NULL;
    int fn = function_of(code);
    if (fn < 0 || to != (gives_bool((ls__fn)fn) ? LS_BOOL : from))
        return NULL;
    if ((fn == LS__FN_div || fn == LS__FN_mod) && ls_dtype_is_integer(from))
        return NULL;
    return ls__elementwise_loop((ls__fn)fn, from);
}

/* ---- reading a program ------------------------------------------------------------------ */

/* Step k into *s, checked against the dtypes of the values before it; its own is
 * added to them. */
static ls_status read_step(const ls_call *c, const ls_ints *a, int k, ls_dtype *dtypes,
                           ls__chain_step *s)
{
    int operands = a->count > 0 ? ls__chain_operands(a->at[0]) : 0;
    if (operands == 0)
        return ls_call_fail(c, LS_INVALID, "step %d has no known function", k);
    if (a->count != 3 + operands)
        return ls_call_fail(c, LS_INVALID, "step %d has %lld numbers, wants %d", k,
                            (long long)a->count, 3 + operands);
    s->loop = ls__chain_loop(a->at[0], a->at[1], a->at[2]);
    if (!s->loop)
        return ls_call_fail(c, LS_INVALID,
                            "step %d: function %lld does not go from dtype %lld "
                            "to %lld",
                            k, (long long)a->at[0], (long long)a->at[1], (long long)a->at[2]);
    s->operands = operands;
    for (int j = 0; j < operands; j++) {
        int64_t v = a->at[3 + j];
        if (v < 0 || v >= c->n_inputs + k)
            return ls_call_fail(c, LS_INVALID, "step %d reads value %lld; there are %d", k,
                                (long long)v, c->n_inputs + k);
        bool condition = a->at[0] == LS__CHAIN_WHERE && j == 0;
        int64_t want = condition ? LS_BOOL : a->at[1];
        if (dtypes[v] != want)
            return ls_call_fail(c, LS_SHAPE, "step %d: operand %d is %s, wants %s", k, j,
                                ls_dtype_name(dtypes[v]), ls_dtype_name((ls_dtype)want));
        s->operand[j] = (int)v;
    }
    dtypes[c->n_inputs + k] = (ls_dtype)a->at[2];
    s->size = ls_dtype_size((ls_dtype)a->at[2]);
    s->out = NULL;
    return LS_OK;
}

/* All steps into *p, the dtypes of all values (inputs first) into `dtypes`. */
static ls_status read_program(const ls_call *c, ls__chain *p, ls_dtype *dtypes)
{
    const ls__chain_attrs *a = c->attrs;
    if (c->n_inputs > LS__CHAIN_INPUTS)
        return ls_call_fail(c, LS_INVALID, "%d inputs, wants at most %d", c->n_inputs,
                            LS__CHAIN_INPUTS);
    p->n_inputs = c->n_inputs;
    p->n_steps = 0;
    for (int i = 0; i < c->n_inputs; i++) {
        ls_status st = ls__want_dtype(c, i, LS__ANY);
        if (st)
            return st;
        dtypes[i] = c->in[i]->dtype;
    }
    while (p->n_steps < LS__CHAIN_STEPS && a->step[p->n_steps].count != 0) {
        int k = p->n_steps++;
        ls_status st = read_step(c, &a->step[k], k, dtypes, &p->step[k]);
        if (st)
            return st;
    }
    for (int k = p->n_steps; k < LS__CHAIN_STEPS; k++)
        if (a->step[k].count != 0)
            return ls_call_fail(c, LS_INVALID, "step %d follows the end", k);
    return LS_OK;
}

/* ---- the row ------------------------------------------------------------------------------ */

static int chain_outputs(ls_call *c)
{
    const ls__chain_attrs *a = c->attrs;
    if (a->outs.count >= 1 && a->outs.count <= LS__CHAIN_OUTPUTS)
        return (int)a->outs.count;
    ls_call_fail(c, LS_INVALID, "%lld outputs, wants 1 to %d", (long long)a->outs.count,
                 LS__CHAIN_OUTPUTS);
    return -1;
}

static ls_status chain_shape(ls_call *c)
{
    const ls__chain_attrs *a = c->attrs;
    ls__chain p;
    ls_dtype dtypes[LS__CHAIN_VALUES];
    ls_status st = read_program(c, &p, dtypes);
    if (st)
        return st;
    ls__spec shape = *c->in[0];
    for (int i = 1; i < c->n_inputs && !st; i++)
        st = ls__want_broadcast(c, &shape, c->in[i], &shape);
    if (!st && a->outs.count != c->n_outputs)
        st = ls_call_fail(c, LS_INVALID, "%lld outputs in a call with %d", (long long)a->outs.count,
                          c->n_outputs);
    for (int i = 0; i < c->n_outputs && !st; i++) {
        int64_t k = a->outs.at[i];
        if (k < 0 || k >= p.n_steps || (i > 0 && k <= a->outs.at[i - 1]))
            return ls_call_fail(c, LS_INVALID, "output %d is step %lld of %d; they must ascend", i,
                                (long long)k, p.n_steps);
        st = ls_call_output(c, i, dtypes[c->n_inputs + k], shape.rank, shape.dims);
    }
    return st;
}

static size_t chain_scratch(ls_call *c)
{
    return ls__chain_scratch(ls__spec_count(&c->out[0]), c->n_inputs, LS__CHAIN_STEPS);
}

static ls_status chain_kernel(ls_call *c)
{
    const ls__chain_attrs *a = c->attrs;
    ls__chain p;
    ls_dtype dtypes[LS__CHAIN_VALUES];
    ls_status st = read_program(c, &p, dtypes);
    if (st)
        return st;
    p.rank = c->out[0].rank;
    p.dims = c->out[0].dims;
    for (int i = 0; i < c->n_inputs; i++)
        p.input[i] = (ls__chain_input){ c->in_data[i], ls_dtype_size(dtypes[i]), c->in[i]->rank,
                                        c->in[i]->dims };
    for (int i = 0; i < c->n_outputs; i++)
        p.step[a->outs.at[i]].out = c->out_data[i];
    ls__chain_run(&p, c->scratch);
    return LS_OK;
}

#define STEP(k)                                                                                    \
    {                                                                                              \
        "step" #k, LS_ATTR_KIND_INTS, offsetof(ls__chain_attrs, step[k])                           \
    }
static const ls_attr chain_attr_list[] = { STEP(0),
                                           STEP(1),
                                           STEP(2),
                                           STEP(3),
                                           STEP(4),
                                           STEP(5),
                                           STEP(6),
                                           STEP(7),
                                           STEP(8),
                                           STEP(9),
                                           STEP(10),
                                           STEP(11),
                                           STEP(12),
                                           STEP(13),
                                           STEP(14),
                                           STEP(15),
                                           LS_ATTR_INTS(ls__chain_attrs, outs),
                                           LS_ATTR_END };

const ls_op ls__chain_row = { .size = sizeof(ls_op),
                              .name = "chain",
                              .inputs = LS_ANY_NUMBER,
                              .outputs = LS_ANY_NUMBER,
                              .flags = LS__OP_FUSED | LS_OP_TOTAL | LS_OP_ELEMENTWISE,
                              .attr_size = sizeof(ls__chain_attrs),
                              .attrs = chain_attr_list,
                              .count_outputs = chain_outputs,
                              .shape = chain_shape,
                              .scratch = chain_scratch,
                              .kernel = chain_kernel };

const ls_op *const ls__rows_fused_chain[] = { &ls__chain_row, NULL };
