/*
 * What the choices of a random program do. Each kind takes tensors from the pool, of the
 * latest more often than of the others, and puts what it makes there. Sizes stay
 * small, and so do numbers: what could grow is squashed or scaled, so that sums
 * in another order stay comparable after sixty operators and their gradients.
 */
#include <math.h>

#include "support/random_graph.h"

/* ---- element by element ---------------------------------------------------------------- */

static void unary(rg_world *w)
{
    static ls_tensor *(*const rows[])(ls_tensor *) = {
        ls_relu, ls_tanh, ls_sigmoid, ls_softplus, ls_sin,  ls_cos,
        ls_erf,  ls_abs,  ls_neg,     ls_relu,     ls_relu, ls_identity,
    };
    uint32_t n = sizeof rows / sizeof *rows, k = rg_number(w, n + 8);
    ls_tensor *x = rg_pick(w);
    switch (k < n ? 0 : k - n + 1) {
    case 0:
        rg_push(w, rows[k](x));
        break;
    case 1:
        rg_push(w, ls_gelu(x, rg_number(w, 2)));
        break;
    case 2:
        rg_push(w, ls_square(ls_tanh(x)));
        break;
    case 3:
        rg_push(w, ls_exp(ls_tanh(x)));
        break;
    case 4:
        rg_push(w, ls_log1p(ls_square(x)));
        break;
    case 5:
        rg_push(w, ls_sqrt(ls_shift(ls_square(x), 0.1)));
        break;
    case 6:
        rg_push(w, ls_rsqrt(ls_shift(ls_abs(x), 0.5)));
        break;
    case 7:
        rg_push(w, ls_clip(x, -0.5, 0.7));
        break;
    default:
        rg_push(w, ls_scale(ls_shift(x, 0.25), 0.5));
        break;
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
    return count <= RG_ELEMENTS;
}

static void binary(rg_world *w)
{
    ls_tensor *a = rg_pick(w), *b = rg_pick(w), *c = NULL;
    for (int i = 0; i < 4 && !broadcasts(a, b); i++)
        b = rg_pick(w);
    if (!broadcasts(a, b))
        b = rg_number(w, 2) ? rg_mean(b) : rg_variable(w, RG_NUMBER);
    switch (rg_number(w, 9)) {
    case 0:
        c = ls_add(a, b);
        break;
    case 1:
        c = ls_sub(b, a);
        break;
    case 2:
        c = ls_scale(ls_add(a, b), 0.5);
        break;
    case 3:
        c = ls_mul(a, ls_tanh(b));
        break;
    case 4:
        c = ls_div(a, ls_shift(ls_square(b), 1));
        break;
    case 5:
        c = ls_maximum(a, b);
        break;
    case 6:
        c = ls_minimum(a, b);
        break;
    case 7:
        c = ls_where(ls_greater(a, b), a, b);
        break;
    default:
        c = ls_pow(ls_sigmoid(a), ls_sigmoid(b));
        break;
    }
    rg_push(w, c);
}

/* Results that jump: only where every bit must be the same. */
static void jump(rg_world *w)
{
    ls_tensor *x = rg_pick(w);
    switch (rg_number(w, 8)) {
    case 0:
        rg_push(w, ls_round(x));
        break;
    case 1:
        rg_push(w, ls_sign(x));
        break;
    case 2:
        rg_push(w, rg_as_program(w, ls_cast(ls_scale(x, 3), LS_I32)));
        break;
    case 3:
        rg_push(w, rg_as_program(w, ls_cast(x, LS_BF16)));
        break;
    case 4:
        rg_push(w, rg_as_program(w, ls_less(x, rg_variable(w, RG_NUMBER))));
        break;
    case 5:
        rg_push(w, ls_mod(x, ls_shift(ls_abs(x), 0.3)));
        break;
    case 6:
        x = rg_with_last(w, 2, 6);
        rg_push(w, ls_one_hot(ls_argmax(x, -1), 6, w->p->dtype));
        rg_push(w, ls_item(ls_top_k(x, 3), 0));
        break;
    default:
        if (ls_rank(x) == 2 && ls_shape(x)[1] > 0 && !w->p->odd) /* it refuses NaN */
            rg_push(w, rg_as_program(w, ls_categorical(x, 2)));
    }
}

/* ---- products ------------------------------------------------------------------------------ */

static ls_tensor *activate(rg_world *w, ls_tensor *t)
{
    switch (rg_number(w, 6)) {
    case 0:
        return t;
    case 1:
        return ls_tanh(t);
    case 2:
        return ls_gelu(t, rg_number(w, 2));
    case 3:
        return ls_sigmoid(t);
    default:
        return ls_relu(t);
    }
}

static void dense(rg_world *w)
{
    static const struct {
        int64_t in;
        int weight, bias;
    } layers[] = { { 6, RG_W65, RG_B5 }, { 5, RG_W53, RG_B3 }, { 3, RG_W36, RG_B6 } };
    int first = (int)rg_number(w, 3), n = 1 + (int)rg_number(w, 3);
    ls_tensor *t = rg_with_last(w, 2, layers[first].in);
    for (int i = first; n-- > 0; i = (i + 1) % 3) {
        t = ls_dense(t, rg_variable(w, layers[i].weight), rg_variable(w, layers[i].bias));
        rg_push(w, t = activate(w, t));
    }
}

static void product(rg_world *w)
{
    ls_tensor *a = rg_pick(w);
    if (rg_number(w, 4) == 0) { /* with a weight that may be packed */
        a = ls_matmul_t(ls_item(w->arguments, RG_WIDE), false, rg_variable(w, RG_WIDE_W), true);
        rg_push(w, ls_relu(ls_scale(a, 0.3)));
        return;
    }
    if (ls_rank(a) < 2)
        a = rg_with_last(w, 2, 6);
    const int64_t *d = ls_shape(a) + ls_rank(a) - 2;
    bool ta = rg_number(w, 2);
    if (d[ta] * ls_count(a) > RG_ELEMENTS)
        return;
    double scale = 1 / sqrt(1.0 + (double)d[!ta]);
    LS_FRAME
        a = ls_hand_up(ls_scale(ls_matmul_t(a, ta, a, !ta), scale));
    rg_push(w, a);
}

/* Queries, keys and values of two heads out of one product, taken apart. */
static ls_tensor *one_part(ls_value *parts, int i)
{
    ls_tensor *part = ls_item(parts, i);
    return ls_transpose(ls_reshape(part, LS_DIMS(ls_dim(part, 0), ls_dim(part, 1), 2, 1)),
                        LS_DIMS(0, 2, 1, 3));
}

static void heads(rg_world *w)
{
    ls_tensor *x = ls_reshape(ls_item(w->arguments, RG_IMAGE), LS_DIMS(4, 6, 6));
    x = ls_matmul(ls_matmul(x, rg_variable(w, RG_W65)), rg_variable(w, RG_W53));
    x = ls_dense(x, rg_variable(w, RG_W36), rg_variable(w, RG_B6));
    ls_value *parts = ls_split(x, 3, -1);
    if (!parts)
        return;
    ls_tensor *y = ls_attention(one_part(parts, 0), one_part(parts, 1), one_part(parts, 2),
                                rg_number(w, 2), 0);
    y = ls_transpose(y, LS_DIMS(0, 2, 1, 3));
    rg_push(w, ls_reshape(y, LS_DIMS(ls_dim(x, 0), ls_dim(x, 1), 2)));
    if (rg_number(w, 4) == 0)
        rg_push(w, ls_item(parts, 1)); /* somebody else looks at it */
}

/* Attention written by hand, and as one operator. */
static void attention(rg_world *w)
{
    if (rg_number(w, 4) == 0) {
        heads(w);
        return;
    }
    ls_tensor *x = rg_with_last(w, 3, 6);
    if (rg_number(w, 2))
        x = ls_reshape(ls_item(w->arguments, RG_IMAGE), LS_DIMS(4, 6, 6));
    if (ls_shape(x)[ls_rank(x) - 2] * ls_count(x) > RG_ELEMENTS)
        return;
    ls_tensor *q = ls_dense(x, rg_variable(w, RG_W65), rg_variable(w, RG_B5));
    ls_tensor *k = ls_matmul(x, rg_variable(w, RG_W65)), *v = rg_number(w, 2) ? x : k;
    if (rg_number(w, 3) == 0) {
        rg_push(w, ls_attention(q, k, v, rg_number(w, 2), 0));
        return;
    }
    ls_tensor *p = ls_matmul_t(q, false, k, true);
    p = ls_softmax(rg_number(w, 2) ? ls_scale(p, 0.4) : p, -1);
    rg_push(w, ls_matmul(p, v));
    if (rg_number(w, 4) == 0)
        rg_push(w, p); /* somebody else looks at it */
}

/* What networks on grey images begin with. Now and then somebody looks at what is before the pool. */
static void first_layer(rg_world *w)
{
    ls_tensor *x = ls_reshape(ls_item(w->arguments, RG_IMAGE), LS_DIMS(4, 6, 6, 1));
    ls_padding padding = rg_number(w, 2) ? LS_SAME : LS_VALID;
    ls_tensor *t = ls_conv2d(x, rg_variable(w, RG_KGREY), LS_CONV(.padding = padding));
    t = ls_relu(ls_add(t, rg_variable(w, RG_BGREY)));
    if (rg_number(w, 4) == 0)
        rg_push(w, t);
    rg_push(w, ls_max_pool2d(t, 2, 2, LS_VALID));
}

static void convolution(rg_world *w)
{
    if (rg_number(w, 4) == 0) {
        first_layer(w);
        return;
    }
    bool deep = rg_number(w, 3) == 0, second = !deep && rg_number(w, 2);
    ls_tensor *x = rg_image(w, deep ? 16 : 2, deep ? RG_DEEP : RG_IMAGE);
    ls_tensor *bias = rg_variable(w, deep ? RG_BDEEP : RG_B4);
    int64_t stride = 1 + rg_number(w, 2);
    ls_padding padding = rg_number(w, 2) ? LS_SAME : LS_VALID;
    ls_tensor *t = ls_conv2d(x, rg_variable(w, deep ? RG_KDEEP : RG_K24),
                             LS_CONV(.stride = { stride, stride }, .padding = padding));
    rg_push(w, t = activate(w, ls_add(t, bias)));
    if (second)
        rg_push(w, t = ls_relu(ls_add(
                       ls_conv2d(t, rg_variable(w, RG_K44), LS_CONV(.padding = LS_SAME)), bias)));
    switch (rg_number(w, 4)) {
    case 0:
        break;
    case 1:
        rg_push(w, ls_avg_pool2d(t, 2, 2, LS_SAME));
        break;
    case 2:
        rg_push(w, ls_global_avg_pool2d(t));
        break;
    default:
        rg_push(w, ls_max_pool2d(t, 2, 1 + rg_number(w, 2), LS_SAME));
        break;
    }
}

/* ---- over axes --------------------------------------------------------------------------------- */

static ls_tensor *running_sum(rg_world *w, ls_tensor *x)
{
    int axis = (int)rg_number(w, (uint32_t)ls_rank(x));
    bool exclusive = rg_number(w, 2), reverse = rg_number(w, 2);
    return ls_cumsum(x, axis, exclusive, reverse);
}

static void reduction(rg_world *w)
{
    ls_tensor *x = rg_pick(w);
    int rank = ls_rank(x), n = 0;
    int64_t axes[LS_MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (rg_number(w, 2))
            axes[n++] = i - (rg_number(w, 2) ? rank : 0);
    bool keep = rg_number(w, 2);
    double scale = 1 / (1 + sqrt((double)ls_count(x)));
    switch (ls_count(x) > 0 ? rg_number(w, 5) : 0) { /* nothing has a sum, but no mean */
    case 0:
        rg_push(w, ls_scale(ls_sum(x, n, axes, keep), scale));
        break;
    case 1:
        rg_push(w, ls_mean(x, n, axes, keep));
        break;
    case 2:
        rg_push(w, ls_max(x, n, axes, keep));
        break;
    case 3:
        rg_push(w, ls_min(x, n, axes, keep));
        break;
    default:
        rg_push(w, rank > 0 ? ls_scale(running_sum(w, x), scale) : NULL);
    }
}

static void normalise(rg_world *w)
{
    ls_tensor *x = rg_with_last(w, 2, 6);
    ls_tensor *scale = rg_variable(w, RG_SCALE), *offset = rg_variable(w, RG_OFFSET);
    switch (rg_number(w, 4)) {
    case 0:
        rg_push(w, ls_layer_norm(x, scale, offset, 0.1));
        break;
    case 1:
        rg_push(w, ls_softmax(x, -(int)rg_number(w, 2) - 1));
        break;
    case 2:
        rg_push(w, ls_log_softmax(x, -1));
        break;
    default: {
        ls_value *all = ls_batch_norm(x, scale, offset, 0.1);
        rg_push(w, all ? ls_item(all, 1) : NULL);
        rg_push(w, all ? ls_item(all, 0) : NULL);
    }
    }
}

/* Now and then the loss goes straight into what is minimised: a gradient that does not
 * depend on it is what training steps have. */
static void loss(rg_world *w)
{
    static const int64_t classes[] = { 6, 5, 3 };
    ls_tensor *labels = ls_item(w->arguments, RG_LABELS), *t;
    ls_tensor *logits = rg_with_last(w, 2, classes[rg_number(w, 3)]);
    if (rg_number(w, 3) == 0)
        t = ls_softmax_xent(logits, ls_stop_gradient(ls_softmax(logits, -1)));
    else if (rg_number(w, 4) == 0)
        t = ls_sigmoid_xent(logits, ls_sigmoid(logits));
    else if (ls_rank(logits) == 2 && ls_shape(logits)[0] == w->p->batch)
        t = ls_sparse_softmax_xent(logits, labels);
    else
        t = ls_mse(logits, ls_neg(logits));
    if (!t || rg_number(w, 2)) {
        rg_push(w, t);
        return;
    }
    t = ls_scale(ls_sum(t, LS_ALL_AXES, false), 1 / (1.0 + (double)ls_count(t)));
    w->losses = w->losses ? ls_add(w->losses, t) : t;
}

static void look_up(rg_world *w)
{
    ls_tensor *ids = ls_item(w->arguments, RG_IDS), *table = rg_variable(w, RG_TABLE);
    switch (rg_number(w, 4)) {
    case 0:
        rg_push(w, ls_gather(table, ids, 0));
        break;
    case 1:
        rg_push(w, ls_add(table, rg_as_program(w, ls_densify(ls_item(w->arguments, RG_SPARSE)))));
        break;
    default:
        rg_push(w, ls_embedding(table, ids));
        break;
    }
}

/* ---- shapes ------------------------------------------------------------------------------------ */

static void slice(rg_world *w, ls_tensor *x)
{
    int64_t begin[LS_MAX_RANK], size[LS_MAX_RANK];
    for (int i = 0; i < ls_rank(x); i++) {
        int64_t d = ls_shape(x)[i];
        begin[i] = rg_number(w, (uint32_t)d);
        size[i] = rg_number(w, 12) ? d - begin[i] : 0; /* now and then nothing */
    }
    rg_push(w, ls_slice(x, ls_rank(x), begin, size));
}

static void move(rg_world *w)
{
    ls_tensor *x = rg_pick(w);
    int rank = ls_rank(x), axis = rank ? (int)rg_number(w, (uint32_t)rank) : 0;
    int64_t numbers[LS_MAX_RANK], zeros[LS_MAX_RANK] = { 0 };
    uint32_t kind = rank ? rg_number(w, 10) : 9;
    for (int i = 0; i < rank; i++)
        numbers[i] = kind == 0 ? (i + 1 + axis) % rank : 1 + (i == axis);
    switch (kind) {
    case 0:
        rg_push(w, ls_transpose(x, rank, numbers));
        break;
    case 1:
        rg_push(w, ls_reshape(x, LS_DIMS(ls_count(x))));
        break;
    case 2:
        rg_push(w, ls_flatten_rows(x));
        break;
    case 3:
        slice(w, x);
        break;
    case 4:
        rg_push(w, ls_concat(2, (ls_tensor *[]){ x, ls_tanh(x) }, axis));
        break;
    case 5:
        rg_push(w, ls_stack(2, (ls_tensor *[]){ x, x }, axis));
        break;
    case 6:
        rg_push(w, ls_pad(x, rank, numbers, zeros, 0.5));
        break;
    case 7:
        if (ls_count(x) * 2 <= RG_ELEMENTS)
            rg_push(w, ls_tile(x, rank, numbers));
        break;
    case 8: {
        int64_t d = ls_shape(x)[axis], sizes[2] = { d / 2, d - d / 2 };
        ls_value *parts = ls_split_sizes(x, 2, sizes, axis);
        rg_push(w, parts ? ls_item(parts, 0) : NULL);
        rg_push(w, parts ? ls_item(parts, 1) : NULL);
        break;
    }
    default:
        rg_push(w, ls_squeeze(ls_expand_dims(x, axis), LS_ALL_AXES));
        rg_push(w, ls_broadcast_to(rg_mean(x), LS_DIMS(3, 1)));
    }
}

/* ---- all of them ----------------------------------------------------------------------------------- */

void rg_choose(rg_world *w, uint64_t choice)
{
    const struct {
        void (*choose)(rg_world *);
        uint32_t weight;
    } kinds[] = {
        { unary, 4 },
        { binary, 4 },
        { dense, 2 },
        { product, 1 },
        { attention, 1 },
        { convolution, 2 },
        { reduction, 2 },
        { normalise, 2 },
        { loss, 2 },
        { look_up, 1 },
        { move, 3 },
        { rg_random_numbers, 1 },
        { rg_read_variable, 1 },
        { rg_write_variable, 2 },
        { rg_update, 1 },
        { w->p->jumps ? jump : unary, 1 },
    };
    uint32_t total = 0, k = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        total += kinds[i].weight;
    w->random = choice;
    for (uint32_t at = rg_number(w, total); at >= kinds[k].weight; k++)
        at -= kinds[k].weight;
    kinds[k].choose(w);
}
