/*
 * Update rows: what an optimizer does to a variable, in place. Their cells are
 * the variable and its slots; gradient, rate and iteration are inputs, so that a
 * recorded step can be replayed with others. They have no outputs and no
 * gradient. Here: the table of kinds, what the forms share, and the form for one variable;
 * the others are in update_lazy.c, fused_update.c and update_reduced.c.
 */
#include "ops/update.h"

#include <math.h>

#include "collective/team.h"

/* ---- the kinds ---------------------------------------------------------------------- */

#define COMMON_ATTRS                                                                               \
    LS_ATTR_FLOAT(ls__update_attrs, weight_decay), LS_ATTR_FLOAT(ls__update_attrs, clip_value)

const ls_attr ls__sgd_attr_list[] = { COMMON_ATTRS, LS_ATTR_END };
const ls_attr ls__momentum_attr_list[] = { LS_ATTR_FLOAT(ls__update_attrs, momentum),
                                           LS_ATTR_INT(ls__update_attrs, nesterov), COMMON_ATTRS,
                                           LS_ATTR_END };
const ls_attr ls__adam_attr_list[] = { LS_ATTR_FLOAT(ls__update_attrs, beta1),
                                       LS_ATTR_FLOAT(ls__update_attrs, beta2),
                                       LS_ATTR_FLOAT(ls__update_attrs, epsilon), COMMON_ATTRS,
                                       LS_ATTR_END };

static const ls_op rows[LS__UPDATES];

#define FORMS(id)                                                                                  \
    &rows[id], &ls__update_lazy_rows[id], &ls__update_many_rows[id],                               \
        &ls__update_reduced_rows[id], &ls__update_products_rows[id]

const ls__update_kind ls__update_kinds[LS__UPDATES] = {
    { LS__UPDATE_SGD, 1, 1, { NULL }, FORMS(LS__UPDATE_SGD) },
    { LS__UPDATE_MOMENTUM, 2, 1, { "m" }, FORMS(LS__UPDATE_MOMENTUM) },
    { LS__UPDATE_ADAM, 3, 2, { "m", "v" }, FORMS(LS__UPDATE_ADAM) },
};

const ls__update_kind *ls__update_kind_of(const ls_op *op)
{
    for (int i = 0; i < LS__UPDATES; i++) {
        const ls__update_kind *kind = &ls__update_kinds[i];
        if (op == kind->one || op == kind->lazy || op == kind->many || op == kind->reduced ||
            op == kind->products)
            return kind;
    }
    return NULL;
}

/* ---- what the forms share ------------------------------------------------------------- */

ls_status ls__update_check(const ls_call *c, const ls__update_kind *kind, const ls__spec *gradient,
                           ls__cell *const *cells)
{
    const ls__spec *variable = ls__cell_spec(cells[0]);
    if (variable->dtype != LS_F32 && variable->dtype != LS_F64)
        return ls_call_fail(c, LS_SHAPE, "updates variables of f32 and f64, not %s",
                            ls__spec_text(variable));
    if (!ls__spec_equal(variable, gradient))
        return ls_call_fail(c, LS_SHAPE, "the gradient of a variable of %s is %s",
                            ls__spec_text(variable), ls__spec_text(gradient));
    for (int i = 1; i < kind->cells; i++)
        if (!ls__spec_equal(variable, ls__cell_spec(cells[i])))
            return ls_call_fail(c, LS_SHAPE, "slot %d of a variable of %s is %s", i - 1,
                                ls__spec_text(variable), ls__spec_text(ls__cell_spec(cells[i])));
    return LS_OK;
}

ls_status ls__update_check_count(const ls_call *c, int cells)
{
    if (c->n_cells != cells)
        return ls_call_fail(c, LS_INVALID, "%d cells, wants %d", c->n_cells, cells);
    return LS_OK;
}

ls_status ls__update_check_numbers(const ls_call *c, const ls__update_kind *kind, int first)
{
    const ls__spec *rate = c->in[first], *iteration = kind->numbers > 1 ? c->in[first + 1] : NULL;
    if (rate->dtype != LS_F64 || rate->rank != 0)
        return ls_call_fail(c, LS_SHAPE, "the rate wants f64[]");
    if (iteration && (iteration->dtype != LS_I64 || iteration->rank != 0))
        return ls_call_fail(c, LS_SHAPE, "the iteration wants i64[]");
    return LS_OK;
}

ls_status ls__update_check_scale(const ls_call *c, int input)
{
    if (c->in[input]->dtype != LS_F64 || c->in[input]->rank != 0)
        return ls_call_fail(c, LS_SHAPE, "a scale wants f64[]");
    return LS_OK;
}

/* By squaring: a fixed list of products, where libm's pow is its maker's choice. */
double ls__power(double x, int64_t n)
{
    double y = 1;
    for (; n > 0; n >>= 1, x *= x)
        if (n & 1)
            y *= x;
    return y;
}

ls__update ls__update_step(const ls_call *c, const ls__update_kind *kind, const ls__update_attrs *a,
                           int first)
{
    double rate = *(const double *)c->in_data[first];
    ls__update u = { .rate = rate,
                     .scale = 1,
                     .clip = a->clip_value != 0 ? a->clip_value : (double)INFINITY,
                     .decay = a->weight_decay != 0 ? rate * a->weight_decay : 0 };
    if (kind->id == LS__UPDATE_MOMENTUM) {
        u.momentum = a->momentum;
        u.nesterov = a->nesterov != 0;
    }
    if (kind->id == LS__UPDATE_ADAM) {
        int64_t t = *(const int64_t *)c->in_data[first + 1];
        u.rate = rate * sqrt(1 - ls__power(a->beta2, t)) / (1 - ls__power(a->beta1, t));
        u.one_minus_beta1 = 1 - a->beta1;
        u.one_minus_beta2 = 1 - a->beta2;
        u.epsilon = a->epsilon;
    }
    return u;
}

ls_status ls__update_unshare(const ls_call *c)
{
    ls_status st = LS_OK;
    for (int i = 0; i < c->n_cells && !st; i++)
        st = ls__cell_unshare(c->cells[i]);
    return st;
}

ls__team *ls__update_team(int count, const ls__spec *const *specs, int *ranks)
{
    const size_t least = (size_t)256 << 10; /* some 20 us of work: waking a thread costs a few */
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += ls__spec_bytes(specs[i]);
    ls__team *team = bytes >= least ? ls__team_get() : NULL;
    *ranks = team ? team->ranks : 1;
    return team;
}

ls_status ls__update_run(const ls__update_kind *kind, ls__cell *const *cells, const ls__spec *spec,
                         const void *gradient, const ls__update *step)
{
    void *at[1 + LS__MOST_SLOTS];
    for (int i = 0; i < kind->cells; i++) {
        at[i] = ls__cell_write(cells[i]);
        if (!at[i])
            return LS_NO_MEMORY;
    }
    LS__PICK(ls__update_table)
        ->update[kind->id][spec->dtype == LS_F64](at, gradient, step, ls__spec_count(spec));
    return LS_OK;
}

/* ---- one variable ------------------------------------------------------------------------- */

enum { GRADIENT, NUMBERS };

ls_status ls__update_check_one(const ls_call *c, int numbers)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    int scale = numbers + kind->numbers;
    if (c->n_inputs != scale && c->n_inputs != scale + 1)
        return ls_call_fail(c, LS_INVALID, "%d inputs, wants %d, or %d with a scale", c->n_inputs,
                            scale, scale + 1);
    ls_status st = ls__update_check_count(c, kind->cells);
    if (!st)
        st = ls__update_check(c, kind, c->in[GRADIENT], c->cells);
    if (!st)
        st = ls__update_check_numbers(c, kind, numbers);
    return st || c->n_inputs == scale ? st : ls__update_check_scale(c, scale);
}

static ls_status shape(ls_call *c)
{
    return ls__update_check_one(c, NUMBERS);
}

static ls_status kernel(ls_call *c)
{
    const ls__update_kind *kind = ls__update_kind_of(c->op);
    ls__update step = ls__update_step(c, kind, c->attrs, NUMBERS);
    int scale = NUMBERS + kind->numbers;
    if (c->n_inputs > scale)
        step.scale = *(const double *)c->in_data[scale];
    ls_status st = ls__update_unshare(c);
    return st ? st : ls__update_run(kind, c->cells, c->in[GRADIENT], c->in_data[GRADIENT], &step);
}

#define ROW(id, list)                                                                              \
    {                                                                                              \
        .size = sizeof(ls_op), .name = id "_update", .inputs = LS_ANY_NUMBER,                      \
        .flags = LS_OP_WRITES | LS_OP_TOTAL, .attr_size = sizeof(ls__update_attrs), .attrs = list, \
        .shape = shape, .kernel = kernel                                                           \
    }

static const ls_op rows[LS__UPDATES] = { ROW("sgd", ls__sgd_attr_list),
                                         ROW("momentum", ls__momentum_attr_list),
                                         ROW("adam", ls__adam_attr_list) };

const ls_op *const ls__rows_update[] = { &rows[0], &rows[1], &rows[2], NULL };

ls_status ls__update_one(const ls__update_numbers *u, ls__cell *const *cells, ls_tensor *gradient,
                         ls_tensor *touched, ls_tensor *scale)
{
    ls_tensor *in[5];
    int n = 0;
    in[n++] = gradient;
    if (touched)
        in[n++] = touched;
    in[n++] = u->rate;
    if (u->kind->numbers > 1)
        in[n++] = u->iteration;
    if (scale)
        in[n++] = scale;
    return ls__call(touched ? u->kind->lazy : u->kind->one, u->attrs, n, in, u->kind->cells, cells,
                    NULL);
}
