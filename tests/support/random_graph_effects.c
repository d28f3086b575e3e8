/*
 * What the choices of a random program do beside computing: draws, reads and writes
 * of variables, gradients, updates, and the operator that refuses a bad step's arguments.
 */
#include "support/random_graph.h"

/* ---- effects ----------------------------------------------------------------------------------- */

void rg_random_numbers(rg_world *w)
{
    ls_tensor *x = rg_pick(w);
    switch (rg_number(w, 4)) {
    case 0:
        rg_push(w, ls_dropout(x, 0.3));
        break;
    case 1:
        rg_push(w, ls_add(x, ls_random_normal(w->p->dtype, ls_rank(x), ls_shape(x), 0, 0.3)));
        break;
    case 2:
        ls_random_uniform(LS_F32, LS_DIMS(3), 0, 1); /* nobody looks at it, but it counts */
        break;
    default:
        rg_push(w, ls_mul(x, ls_random_uniform(w->p->dtype, ls_rank(x), ls_shape(x), 0.5, 1.5)));
    }
}

void rg_read_variable(rg_world *w)
{
    int i = (int)rg_number(w, RG_VARIABLES + 2);
    rg_push(w, i < RG_VARIABLES ? rg_variable(w, i)
                                : rg_as_program(w, ls_item(w->arguments, RG_VIEW)));
}

/* A small change of variable i, made of anything. */
static ls_tensor *moved(rg_world *w, int i, double by)
{
    ls_tensor *v = ls_read(w->variables[i]);
    ls_tensor *s = ls_cast(ls_scale(rg_mean(rg_pick(w)), by), ls_dtype_of(v));
    return ls_broadcast_to(s, ls_rank(v), ls_shape(v));
}

/* Two variables of one shape change places: each is written with what was read of the
 * other before. */
static void swap(rg_world *w)
{
    ls_tensor *a = ls_read(w->variables[RG_SCALE]), *b = ls_read(w->variables[RG_OFFSET]);
    ls_assign(w->variables[RG_SCALE], b);
    ls_assign(w->variables[RG_OFFSET], a);
    rg_push(w, rg_as_program(w, a));
}

void rg_write_variable(rg_world *w)
{
    if (!w->p->writes)
        return;
    int i = (int)rg_number(w, RG_VARIABLES);
    ls_variable *v = w->variables[i];
    ls_tensor *before = ls_read(v), *by = moved(w, i, 0.05);
    switch (rg_number(w, 5)) {
    case 0:
        ls_assign(v, ls_scale(ls_add(before, by), 0.9));
        break;
    case 1:
        ls_assign_add(v, by);
        break;
    case 2:
        ls_assign_sub(v, by);
        break;
    case 3:
        swap(w);
        break;
    default:
        ls_assign_add(v, by);
        ls_assign(v, ls_scale(ls_read(v), 0.95));
    }
    if (w->n_results < RG_RESULTS - 16 && rg_number(w, 2))
        w->results[w->n_results++] = before; /* a snapshot: not what was written after */
    rg_push(w, rg_as_program(w, rg_number(w, 2) ? before : ls_read(v)));
}

/* ---- gradients ----------------------------------------------------------------------------------- */

static ls_tensor *total_loss(rg_world *w)
{
    ls_tensor *sum = ls_square(rg_variable(w, RG_NUMBER)); /* so that it depends on something */
    for (int i = 0; i < 8 && i < w->n_pool; i++) {
        ls_tensor *t =
            i < 5 ? w->pool[w->n_pool - 1 - i] : w->pool[rg_number(w, (uint32_t)w->n_pool)];
        ls_tensor *s = ls_sum(ls_square(ls_tanh(t)), LS_ALL_AXES, false);
        sum = ls_add(sum, ls_scale(s, 1 / (1.0 + (double)ls_count(t))));
    }
    sum = w->losses ? ls_add(sum, w->losses) : sum;
    w->losses = NULL;
    return sum;
}

void rg_minimize(rg_world *w)
{
    ls_tensor *t = total_loss(w);
    ls_minimize(w->optimizer, w->tape, t, RG_VARIABLES, w->variables);
    w->tape = ls_tape_open(); /* for another, of what comes after */
    rg_push(w, t);
}

/* A gradient as a value like others: what is made of it has gradients again. */
static void gradient(rg_world *w)
{
    static const int by[] = { RG_W65, RG_W36, RG_TABLE, RG_SCALE, RG_NUMBER, RG_K24, RG_B5 };
    ls_tensor *y = rg_mean(rg_pick(w));
    int k = (int)rg_number(w, 9);
    ls_tensor *x = k < 7 ? ls_read(w->variables[by[k]]) : ls_item(w->arguments, RG_X);
    ls_tensor *g = ls_gradient(w->tape, y, x);
    if (g && w->n_results < RG_RESULTS - 16 && rg_number(w, 2))
        w->results[w->n_results++] = g; /* sparse, perhaps */
    rg_push(w, g ? rg_as_program(w, ls_densify(g)) : NULL);
}

/* An update with gradients from elsewhere: a sparse one, and one that is what was read of
 * a variable which the same update changes. */
static void apply(rg_world *w)
{
    ls_tensor *gradients[3] = { ls_item(w->arguments, RG_SPARSE), moved(w, RG_SCALE, 0.3),
                                ls_read(w->variables[RG_SCALE]) };
    ls_variable *variables[3] = { w->variables[RG_TABLE], w->variables[RG_SCALE],
                                  w->variables[RG_OFFSET] };
    ls_apply_gradients(w->optimizer, 3, gradients, variables);
    rg_push(w, rg_variable(w, RG_TABLE));
}

void rg_update(rg_world *w)
{
    uint32_t kind = w->p->trains ? rg_number(w, 5) : 4;
    if (kind == 0)
        rg_minimize(w);
    else if (kind == 1)
        apply(w);
    else
        gradient(w);
}

/* ---- what a bad step fails at ------------------------------------------------------ */

void rg_choose_fault(rg_world *w)
{
    ls_tensor *t = NULL;
    if (w->p->seed % 2) /* just before: this write must be undone */
        ls_assign_add(w->variables[RG_STATE], moved(w, RG_STATE, 0.1));
    switch (w->p->fault) {
    case RG_BAD_LABEL:
        t = ls_sparse_softmax_xent(ls_item(w->arguments, RG_X), ls_item(w->arguments, RG_LABELS));
        break;
    case RG_BAD_ID:
        t = ls_gather(rg_variable(w, RG_TABLE), ls_item(w->arguments, RG_IDS), 0);
        break;
    case RG_BAD_ROW:
        t = ls_embedding(rg_variable(w, RG_TABLE), ls_item(w->arguments, RG_IDS));
        break;
    default:
        t = ls_div(ls_full(LS_I32, LS_DIMS(w->p->batch), 60), ls_item(w->arguments, RG_DIVISOR));
        t = rg_as_program(w, t);
        break;
    }
    rg_push(w, t);
    w->results[w->n_results++] = t;
}
