/*
 * clip_scales: norms of gradients, and what each is multiplied by to be no longer than asked.
 * Invariant: a norm depends on the values alone (rule C). Squares are summed in double over
 * fixed blocks of a variable, in a fixed order inside a block, then over blocks and then over
 * variables in the order of the tree.
 */
#include "ops/clip_scales.h"

#include <math.h>

#include "collective/team.h"
#include "dispatch/call.h"
#include "kernels/update.h"
#include "ops/update.h"

/* ---- a sum in the order of the tree, one term after another ------------------------------- */

/* Nodes that are whole, the largest first: as the binary digits of `count`. */
typedef struct tree_sum {
    uint64_t count;
    int n;
    double node[64];
} tree_sum;

static void add(tree_sum *t, double x)
{
    for (uint64_t c = t->count++; c & 1; c >>= 1)
        x = t->node[--t->n] + x;
    t->node[t->n++] = x;
}

static double total(const tree_sum *t)
{
    double x = t->n ? t->node[t->n - 1] : 0;
    for (int i = t->n - 1; i-- > 0;)
        x = t->node[i] + x;
    return x;
}

/* ---- squares of blocks, by the ranks of a team if there is one ------------------------------ */

typedef struct norms {
    const ls_call *c;
    int ranks;
    int64_t n_blocks;
    double *blocks; /* of all inputs, input after input */
} norms;

static int64_t blocks_of(const ls__spec *spec)
{
    return (ls__spec_count(spec) + LS__NORM_BLOCK - 1) / LS__NORM_BLOCK;
}

static size_t scratch(ls_call *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->n_inputs; i++)
        n += blocks_of(c->in[i]);
    return (size_t)n * sizeof(double);
}

static void take_blocks(void *arg, int rank)
{
    const norms *u = arg;
    const int64_t begin = u->n_blocks * rank / u->ranks, end = u->n_blocks * (rank + 1) / u->ranks;
    int64_t at = 0; /* the first block of the input */
    for (int i = 0; i < u->c->n_inputs && at < end; at += blocks_of(u->c->in[i++])) {
        const ls__spec *spec = u->c->in[i];
        const int64_t n = ls__spec_count(spec), width = (int64_t)ls_dtype_size(spec->dtype);
        ls__squares_fn *squares = LS__PICK(ls__update_table)->squares[spec->dtype == LS_F64];
        for (int64_t b = begin > at ? begin - at : 0; b < blocks_of(spec) && at + b < end; b++) {
            int64_t first = b * LS__NORM_BLOCK, left = n - first;
            u->blocks[at + b] = squares((const char *)u->c->in_data[i] + first * width,
                                        left < LS__NORM_BLOCK ? left : LS__NORM_BLOCK);
        }
    }
}

/* ---- the row --------------------------------------------------------------------------------- */

typedef struct clip_attrs {
    double clip;
    int64_t global;
} clip_attrs;

static const ls_attr clip_attr_list[] = { LS_ATTR_FLOAT(clip_attrs, clip),
                                          LS_ATTR_INT(clip_attrs, global), LS_ATTR_END };

static int count_outputs(ls_call *c)
{
    return c->n_inputs;
}

static ls_status shape(ls_call *c)
{
    ls_status st = LS_OK;
    for (int i = 0; i < c->n_inputs && !st; i++) {
        st = ls__want_dtype(c, i, LS__BIT(LS_F32) | LS__BIT(LS_F64));
        if (!st)
            st = ls_call_output(c, i, LS_F64, 0, NULL);
    }
    return st;
}

static double scale_of(double clip, double sum_of_squares)
{
    double norm = sqrt(sum_of_squares);
    return isfinite(norm) ? clip / (norm > clip ? norm : clip) : (double)NAN;
}

static ls_status kernel(ls_call *c)
{
    const clip_attrs *a = c->attrs;
    norms u = { .c = c, .blocks = c->scratch };
    for (int i = 0; i < c->n_inputs; i++)
        u.n_blocks += blocks_of(c->in[i]);
    ls__team *team = ls__update_team(c->n_inputs, c->in, &u.ranks);
    ls__team_share(team, u.ranks, take_blocks, &u);
    tree_sum all = { .count = 0 };
    int64_t at = 0;
    for (int i = 0; i < c->n_inputs; i++) {
        tree_sum one = { .count = 0 };
        for (int64_t b = blocks_of(c->in[i]); b > 0; b--)
            add(&one, u.blocks[at++]);
        *(double *)c->out_data[i] = scale_of(a->clip, total(&one));
        add(&all, total(&one));
    }
    for (int i = 0; i < c->n_inputs && a->global; i++)
        *(double *)c->out_data[i] = scale_of(a->clip, total(&all));
    return LS_OK;
}

static const ls_op clip_scales = { .size = sizeof(ls_op),
                                   .name = "clip_scales",
                                   .inputs = LS_ANY_NUMBER,
                                   .outputs = LS_ANY_NUMBER,
                                   .flags = LS_OP_TOTAL,
                                   .attr_size = sizeof(clip_attrs),
                                   .attrs = clip_attr_list,
                                   .count_outputs = count_outputs,
                                   .shape = shape,
                                   .scratch = scratch,
                                   .kernel = kernel };

const ls_op *const ls__rows_clip_scales[] = { &clip_scales, NULL };

ls_status ls__clip_scales(double clip, bool global, int count, ls_tensor *const *gradients,
                          ls_tensor **scales)
{
    const clip_attrs attrs = { clip, global };
    ls__results results;
    ls_status st = ls__call_all(&clip_scales, &attrs, count, gradients, 0, NULL, &results);
    for (int i = 0; i < count && !st; i++)
        scales[i] = results.at[i];
    return st;
}
