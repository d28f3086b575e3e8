/*
 * What the choices of a random program do. Each kind takes tensors from the pool, of the
 * latest more often than of the others, and puts what it makes there. Sizes stay
 * small, and so do numbers: what could grow is squashed or scaled, so that sums
 * in another order stay comparable after sixty operators and their gradients.
 */
#include <math.h>
#include <string.h>

#include "support/random_graph.h"

enum { MOST_ELEMENTS = 4096, MOST_RANK = 5 };

/* ---- the pool ----------------------------------------------------------------------- */

static uint32_t draw(rg_world *w, uint32_t n)
{
    return rg_draw(&w->random, n);
}

static bool fits(const ls_tensor *t)
{
    return t && ls_count(t) <= MOST_ELEMENTS && ls_rank(t) <= MOST_RANK;
}

static void push(rg_world *w, ls_tensor *t)
{
    if (fits(t) && w->n_pool < RG_POOL)
        w->pool[w->n_pool++] = t;
}

static ls_tensor *pick(rg_world *w)
{
    uint32_t n = (uint32_t)w->n_pool, late = n < 4 ? n : 4;
    return w->pool[draw(w, 3) ? n - 1 - draw(w, late) : draw(w, n)];
}

/* The latest tensor of this rank at least whose last axis is `size`; else a slice of x. */
static ls_tensor *with_last(rg_world *w, int rank, int64_t size)
{
    for (int i = w->n_pool; i-- > 0;) {
        const ls_tensor *t = w->pool[i];
        if (ls_rank(t) >= rank && ls_shape(t)[ls_rank(t) - 1] == size && draw(w, 3))
            return w->pool[i];
    }
    ls_tensor *x = ls_item(w->arguments, RG_X);
    return size == 6 ? x : ls_slice(x, 2, (int64_t[]){ 0, 0 }, (int64_t[]){ -1, size });
}

/* An image of this many channels that a 3x3 filter fits into; else the argument. */
static ls_tensor *image(rg_world *w, int64_t channels, int argument)
{
    for (int i = w->n_pool; i-- > 0;) {
        const int64_t *d = ls_shape(w->pool[i]);
        if (ls_rank(w->pool[i]) == 4 && d[3] == channels && d[1] >= 3 && d[2] >= 3 && draw(w, 3))
            return w->pool[i];
    }
    return ls_item(w->arguments, argument);
}

static ls_tensor *as_program(const rg_world *w, ls_tensor *t)
{
    return ls_dtype_of(t) == w->p->dtype ? t : ls_cast(t, w->p->dtype);
}

static ls_tensor *variable(rg_world *w, int i)
{
    return as_program(w, ls_read(w->variables[i]));
}

/* Any tensor as one small number. */
static ls_tensor *number(ls_tensor *t)
{
    return ls_tanh(ls_scale(ls_sum(t, LS_ALL_AXES, false), 1 / (1.0 + (double)ls_count(t))));
}

/* ---- element by element ---------------------------------------------------------------- */

static void unary(rg_world *w)
{
    static ls_tensor *(*const rows[])(ls_tensor *) = {
        ls_relu, ls_tanh, ls_sigmoid, ls_softplus, ls_sin,  ls_cos, ls_erf,
        ls_abs,  ls_neg,  ls_relu,    ls_relu,     ls_identity,
    };
    uint32_t n = sizeof rows / sizeof *rows, k = draw(w, n + 8);
    ls_tensor *x = pick(w);
    switch (k < n ? 0 : k - n + 1) {
    case 0: push(w, rows[k](x)); break;
    case 1: push(w, ls_gelu(x, draw(w, 2))); break;
    case 2: push(w, ls_square(ls_tanh(x))); break;
    case 3: push(w, ls_exp(ls_tanh(x))); break;
    case 4: push(w, ls_log1p(ls_square(x))); break;
    case 5: push(w, ls_sqrt(ls_shift(ls_square(x), 0.1))); break;
    case 6: push(w, ls_rsqrt(ls_shift(ls_abs(x), 0.5))); break;
    case 7: push(w, ls_clip(x, -0.5, 0.7)); break;
    default: push(w, ls_scale(ls_shift(x, 0.25), 0.5)); break;
    }
}

static bool broadcasts(const ls_tensor *a, const ls_tensor *b)
{
    int64_t count = 1;
    for (int i = 1; i <= ls_rank(a) || i <= ls_rank(b); i++) {
        int64_t x = i <= ls_rank(a) ? ls_shape(a)[ls_rank(a) - i] : 1;
        int64_t y = i <= ls_rank(b) ? ls_shape(b)[ls_rank(b) - i] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        count *= x == 1 ? y : x;
    }
    return count <= MOST_ELEMENTS;
}

static void binary(rg_world *w)
{
    ls_tensor *a = pick(w), *b = pick(w), *c = NULL;
    for (int i = 0; i < 4 && !broadcasts(a, b); i++)
        b = pick(w);
    if (!broadcasts(a, b))
        b = draw(w, 2) ? number(b) : variable(w, RG_NUMBER);
    switch (draw(w, 9)) {
    case 0: c = ls_add(a, b); break;
    case 1: c = ls_sub(b, a); break;
    case 2: c = ls_scale(ls_add(a, b), 0.5); break;
    case 3: c = ls_mul(a, ls_tanh(b)); break;
    case 4: c = ls_div(a, ls_shift(ls_square(b), 1)); break;
    case 5: c = ls_maximum(a, b); break;
    case 6: c = ls_minimum(a, b); break;
    case 7: c = ls_where(ls_greater(a, b), a, b); break;
    default: c = ls_pow(ls_sigmoid(a), ls_sigmoid(b)); break;
    }
    push(w, c);
}

/* Results that jump: only where every bit must be the same. */
static void jump(rg_world *w)
{
    ls_tensor *x = pick(w);
    switch (draw(w, 8)) {
    case 0: push(w, ls_round(x)); break;
    case 1: push(w, ls_sign(x)); break;
    case 2: push(w, as_program(w, ls_cast(ls_scale(x, 3), LS_I32))); break;
    case 3: push(w, as_program(w, ls_cast(x, LS_BF16))); break;
    case 4: push(w, as_program(w, ls_less(x, variable(w, RG_NUMBER)))); break;
    case 5: push(w, ls_mod(x, ls_shift(ls_abs(x), 0.3))); break;
    case 6:
        x = with_last(w, 2, 6);
        push(w, ls_one_hot(ls_argmax(x, -1), 6, w->p->dtype));
        push(w, ls_item(ls_top_k(x, 3), 0));
        break;
    default:
        if (ls_rank(x) == 2 && ls_shape(x)[1] > 0)
            push(w, as_program(w, ls_categorical(x, 2)));
    }
}

/* ---- products ------------------------------------------------------------------------------ */

static ls_tensor *activate(rg_world *w, ls_tensor *t)
{
    switch (draw(w, 6)) {
    case 0: return t;
    case 1: return ls_tanh(t);
    case 2: return ls_gelu(t, draw(w, 2));
    case 3: return ls_sigmoid(t);
    default: return ls_relu(t);
    }
}

static void dense(rg_world *w)
{
    static const struct {
        int64_t in;
        int weight, bias;
    } layers[] = { { 6, RG_W65, RG_B5 }, { 5, RG_W53, RG_B3 }, { 3, RG_W36, RG_B6 } };
    int first = (int)draw(w, 3), n = 1 + (int)draw(w, 3);
    ls_tensor *t = with_last(w, 2, layers[first].in);
    for (int i = first; n-- > 0; i = (i + 1) % 3) {
        t = ls_dense(t, variable(w, layers[i].weight), variable(w, layers[i].bias));
        push(w, t = activate(w, t));
    }
}

static void product(rg_world *w)
{
    ls_tensor *a = pick(w);
    if (draw(w, 4) == 0) { /* with a weight that may be packed */
        a = ls_matmul_t(ls_item(w->arguments, RG_WIDE), false, variable(w, RG_WIDE_W), true);
        push(w, ls_relu(ls_scale(a, 0.3)));
        return;
    }
    if (ls_rank(a) < 2)
        a = with_last(w, 2, 6);
    const int64_t *d = ls_shape(a) + ls_rank(a) - 2;
    bool ta = draw(w, 2);
    if (d[ta] * ls_count(a) > MOST_ELEMENTS)
        return;
    push(w, ls_scale(ls_matmul_t(a, ta, a, !ta), 1 / sqrt(1.0 + (double)d[!ta])));
}

/* Attention written by hand, and as one operator. */
static void attention(rg_world *w)
{
    ls_tensor *x = with_last(w, 3, 6);
    if (draw(w, 2))
        x = ls_reshape(ls_item(w->arguments, RG_IMAGE), LS_DIMS(4, 6, 6));
    if (ls_shape(x)[ls_rank(x) - 2] * ls_count(x) > MOST_ELEMENTS)
        return;
    ls_tensor *q = ls_dense(x, variable(w, RG_W65), variable(w, RG_B5));
    ls_tensor *k = ls_matmul(x, variable(w, RG_W65)), *v = draw(w, 2) ? x : k;
    if (draw(w, 3) == 0) {
        push(w, ls_attention(q, k, v, draw(w, 2), 0));
        return;
    }
    ls_tensor *p = ls_matmul_t(q, false, k, true);
    p = ls_softmax(draw(w, 2) ? ls_scale(p, 0.4) : p, -1);
    push(w, ls_matmul(p, v));
    if (draw(w, 4) == 0)
        push(w, p); /* somebody else looks at it */
}

static void convolution(rg_world *w)
{
    bool deep = draw(w, 3) == 0, second = !deep && draw(w, 2);
    ls_tensor *x = image(w, deep ? 16 : 2, deep ? RG_DEEP : RG_IMAGE);
    ls_tensor *bias = variable(w, deep ? RG_BDEEP : RG_B4);
    int64_t stride = 1 + draw(w, 2);
    ls_padding padding = draw(w, 2) ? LS_SAME : LS_VALID;
    ls_tensor *t = ls_conv2d(x, variable(w, deep ? RG_KDEEP : RG_K24),
                             LS_CONV(.stride = { stride, stride }, .padding = padding));
    push(w, t = activate(w, ls_add(t, bias)));
    if (second)
        push(w, t = ls_relu(ls_add(ls_conv2d(t, variable(w, RG_K44), LS_CONV(.padding = LS_SAME)),
                                   bias)));
    switch (draw(w, 4)) {
    case 0: break;
    case 1: push(w, ls_avg_pool2d(t, 2, 2, LS_SAME)); break;
    case 2: push(w, ls_global_avg_pool2d(t)); break;
    default: push(w, ls_max_pool2d(t, 2, 1 + draw(w, 2), LS_SAME)); break;
    }
}

/* ---- over axes --------------------------------------------------------------------------------- */

static void reduction(rg_world *w)
{
    ls_tensor *x = pick(w);
    int rank = ls_rank(x), n = 0;
    int64_t axes[LS_MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (draw(w, 2))
            axes[n++] = i - (draw(w, 2) ? rank : 0);
    bool keep = draw(w, 2);
    double scale = 1 / (1 + sqrt((double)ls_count(x)));
    switch (ls_count(x) > 0 ? draw(w, 5) : 0) { /* nothing has a sum, but no mean */
    case 0: push(w, ls_scale(ls_sum(x, n, axes, keep), scale)); break;
    case 1: push(w, ls_mean(x, n, axes, keep)); break;
    case 2: push(w, ls_max(x, n, axes, keep)); break;
    case 3: push(w, ls_min(x, n, axes, keep)); break;
    default:
        if (rank > 0)
            push(w, ls_scale(ls_cumsum(x, (int)draw(w, (uint32_t)rank), draw(w, 2), draw(w, 2)),
                             scale));
    }
}

static void normalise(rg_world *w)
{
    ls_tensor *x = with_last(w, 2, 6);
    ls_tensor *scale = variable(w, RG_SCALE), *offset = variable(w, RG_OFFSET);
    switch (draw(w, 4)) {
    case 0: push(w, ls_layer_norm(x, scale, offset, 0.1)); break;
    case 1: push(w, ls_softmax(x, -(int)draw(w, 2) - 1)); break;
    case 2: push(w, ls_log_softmax(x, -1)); break;
    default: {
        ls_value *all = ls_batch_norm(x, scale, offset, 0.1);
        push(w, all ? ls_item(all, 1) : NULL);
        push(w, all ? ls_item(all, 0) : NULL);
    }
    }
}

static void loss(rg_world *w)
{
    static const int64_t classes[] = { 6, 5, 3 };
    ls_tensor *labels = ls_item(w->arguments, RG_LABELS);
    ls_tensor *logits = with_last(w, 2, classes[draw(w, 3)]);
    if (draw(w, 3) == 0)
        push(w, ls_softmax_xent(logits, ls_stop_gradient(ls_softmax(logits, -1))));
    else if (draw(w, 4) == 0)
        push(w, ls_sigmoid_xent(logits, ls_sigmoid(logits)));
    else if (ls_rank(logits) == 2 && ls_shape(logits)[0] == w->p->batch)
        push(w, ls_sparse_softmax_xent(logits, labels));
    else
        push(w, ls_mse(logits, ls_neg(logits)));
}

static void look_up(rg_world *w)
{
    ls_tensor *ids = ls_item(w->arguments, RG_IDS), *table = variable(w, RG_TABLE);
    push(w, draw(w, 3) ? ls_embedding(table, ids) : ls_gather(table, ids, 0));
}

/* ---- shapes ------------------------------------------------------------------------------------ */

static void slice(rg_world *w, ls_tensor *x)
{
    int64_t begin[LS_MAX_RANK], size[LS_MAX_RANK];
    for (int i = 0; i < ls_rank(x); i++) {
        int64_t d = ls_shape(x)[i];
        begin[i] = draw(w, (uint32_t)d);
        size[i] = draw(w, 12) ? d - begin[i] : 0; /* now and then nothing */
    }
    push(w, ls_slice(x, ls_rank(x), begin, size));
}

static void move(rg_world *w)
{
    ls_tensor *x = pick(w);
    int rank = ls_rank(x), axis = rank ? (int)draw(w, (uint32_t)rank) : 0;
    int64_t numbers[LS_MAX_RANK], zeros[LS_MAX_RANK] = { 0 };
    uint32_t kind = rank ? draw(w, 10) : 9;
    for (int i = 0; i < rank; i++)
        numbers[i] = kind == 0 ? (i + 1 + axis) % rank : 1 + (i == axis);
    switch (kind) {
    case 0: push(w, ls_transpose(x, rank, numbers)); break;
    case 1: push(w, ls_reshape(x, LS_DIMS(ls_count(x)))); break;
    case 2: push(w, ls_flatten_rows(x)); break;
    case 3: slice(w, x); break;
    case 4: push(w, ls_concat(2, (ls_tensor *[]){ x, ls_tanh(x) }, axis)); break;
    case 5: push(w, ls_stack(2, (ls_tensor *[]){ x, x }, axis)); break;
    case 6: push(w, ls_pad(x, rank, numbers, zeros, 0.5)); break;
    case 7:
        if (ls_count(x) * 2 <= MOST_ELEMENTS)
            push(w, ls_tile(x, rank, numbers));
        break;
    case 8: {
        int64_t d = ls_shape(x)[axis], sizes[2] = { d / 2, d - d / 2 };
        ls_value *parts = ls_split_sizes(x, 2, sizes, axis);
        push(w, parts ? ls_item(parts, 0) : NULL);
        push(w, parts ? ls_item(parts, 1) : NULL);
        break;
    }
    default:
        push(w, ls_squeeze(ls_expand_dims(x, axis), LS_ALL_AXES));
        push(w, ls_broadcast_to(number(x), LS_DIMS(3, 1)));
    }
}

/* ---- effects ----------------------------------------------------------------------------------- */

static void random_numbers(rg_world *w)
{
    ls_tensor *x = pick(w);
    switch (draw(w, 4)) {
    case 0: push(w, ls_dropout(x, 0.3)); break;
    case 1:
        push(w, ls_add(x, ls_random_normal(w->p->dtype, ls_rank(x), ls_shape(x), 0, 0.3)));
        break;
    case 2: ls_random_uniform(LS_F32, LS_DIMS(3), 0, 1); break; /* nobody looks at it */
    default:
        push(w, ls_mul(x, ls_random_uniform(w->p->dtype, ls_rank(x), ls_shape(x), 0.5, 1.5)));
    }
}

static void read(rg_world *w)
{
    push(w, variable(w, (int)draw(w, RG_VARIABLES)));
}

/* A new value for variable i, made of its old one and of anything. */
static ls_tensor *moved(rg_world *w, int i, double by)
{
    ls_tensor *v = ls_read(w->variables[i]);
    ls_tensor *s = ls_cast(ls_scale(number(pick(w)), by), ls_dtype_of(v));
    return ls_broadcast_to(s, ls_rank(v), ls_shape(v));
}

/* Two variables of one shape change places: each is written with what was read of the
 * other before. */
static void swap(rg_world *w)
{
    ls_tensor *a = ls_read(w->variables[RG_SCALE]), *b = ls_read(w->variables[RG_OFFSET]);
    ls_assign(w->variables[RG_SCALE], b);
    ls_assign(w->variables[RG_OFFSET], a);
    push(w, as_program(w, a));
}

static void write(rg_world *w)
{
    if (!w->p->writes)
        return;
    int i = (int)draw(w, RG_VARIABLES);
    ls_variable *v = w->variables[i];
    ls_tensor *before = ls_read(v), *by = moved(w, i, 0.05);
    switch (draw(w, 5)) {
    case 0: ls_assign(v, ls_scale(ls_add(before, by), 0.9)); break;
    case 1: ls_assign_add(v, by); break;
    case 2: ls_assign_sub(v, by); break;
    case 3: swap(w); break;
    default:
        ls_assign_add(v, by);
        ls_assign(v, ls_scale(ls_read(v), 0.95));
    }
    if (w->n_results < RG_RESULTS - 16 && draw(w, 2))
        w->results[w->n_results++] = before; /* a snapshot: not what was written after */
    push(w, as_program(w, draw(w, 2) ? before : ls_read(v)));
}

/* ---- gradients ----------------------------------------------------------------------------------- */

ls_tensor *rg_loss(rg_world *w)
{
    ls_tensor *sum = ls_square(variable(w, RG_NUMBER)); /* so that it depends on something */
    for (int i = 0; i < 8 && i < w->n_pool; i++) {
        ls_tensor *t = i < 5 ? w->pool[w->n_pool - 1 - i] : w->pool[draw(w, (uint32_t)w->n_pool)];
        ls_tensor *s = ls_sum(ls_square(ls_tanh(t)), LS_ALL_AXES, false);
        sum = ls_add(sum, ls_scale(s, 1 / (1.0 + (double)ls_count(t))));
    }
    return sum;
}

void rg_minimize(rg_world *w)
{
    ls_tensor *t = rg_loss(w);
    ls_minimize(w->optimizer, w->tape, t, RG_VARIABLES, w->variables);
    w->tape = ls_tape_open(); /* for another, of what comes after */
    push(w, t);
}

/* A gradient as a value like others: what is made of it has gradients again. */
static void gradient(rg_world *w)
{
    static const int by[] = { RG_W65, RG_W36, RG_TABLE, RG_SCALE, RG_NUMBER, RG_K24, RG_B5 };
    ls_tensor *y = number(pick(w));
    int k = (int)draw(w, 9);
    ls_tensor *x = k < 7 ? ls_read(w->variables[by[k]]) : ls_item(w->arguments, RG_X);
    ls_tensor *g = ls_gradient(w->tape, y, x);
    if (g && w->n_results < RG_RESULTS - 16 && draw(w, 2))
        w->results[w->n_results++] = g; /* sparse, perhaps */
    push(w, g ? as_program(w, ls_densify(g)) : NULL);
}

static void update(rg_world *w)
{
    if (w->p->trains && draw(w, 3) == 0)
        rg_minimize(w);
    else
        gradient(w);
}

/* ---- all of them ----------------------------------------------------------------------------------- */

void rg_choose(rg_world *w, uint64_t choice)
{
    static void (*const kinds[])(rg_world *) = {
        unary,       unary,     unary,     unary,  binary,  binary,         binary, binary,
        dense,       dense,     product,   loss,   loss,    attention,      move,   move,
        convolution, reduction, normalise, read,   look_up, random_numbers, write,  write,
        convolution, reduction, normalise, update, jump,    move,
    };
    w->random = choice;
    void (*kind)(rg_world *) = kinds[draw(w, sizeof kinds / sizeof *kinds)];
    if (kind != jump || w->p->jumps)
        kind(w);
    else
        unary(w);
}

void rg_choose_fault(rg_world *w)
{
    ls_tensor *t = NULL;
    switch (w->p->fault) {
    case RG_BAD_LABEL:
        t = ls_sparse_softmax_xent(ls_item(w->arguments, RG_X), ls_item(w->arguments, RG_LABELS));
        break;
    case RG_BAD_ID:
        t = ls_gather(variable(w, RG_TABLE), ls_item(w->arguments, RG_IDS), 0);
        break;
    case RG_BAD_ROW:
        t = ls_embedding(variable(w, RG_TABLE), ls_item(w->arguments, RG_IDS));
        break;
    default:
        t = ls_div(ls_full(LS_I32, LS_DIMS(w->p->batch), 60), ls_item(w->arguments, RG_DIVISOR));
        t = as_program(w, t);
        break;
    }
    push(w, t);
    w->results[w->n_results++] = t;
}
