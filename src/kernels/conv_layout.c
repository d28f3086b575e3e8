/*
 * Comparing the layouts of plans. Invariant: the answers depend on the layouts
 * alone, so two plans of different shapes or passes may share an activation.
 */
#include "kernels/conv_layout.h"

#ifdef LS_HAVE_DNNL
#include "kernels/cpu/dnnl_engine.h"

/* How oneDNN describes an argument as wanted; NULL for a plan that is not its. */
static const dnnl_memory_desc_t *wanted(const ls__conv_plan *plan, int arg)
{
    const dnnl_memory_desc_t *desc;
    if (!plan->dnnl || dnnl_memory_get_memory_desc(plan->dnnl->arg[arg].wanted, &desc))
        return NULL;
    return desc;
}
#endif

bool ls__conv_plan_same_layout(const ls__conv_plan *a, int arg_a, const ls__conv_plan *b, int arg_b)
{
    if (a->arg[arg_a].plain != b->arg[arg_b].plain || a->arg[arg_a].bytes != b->arg[arg_b].bytes)
        return false;
    if (a->arg[arg_a].plain)
        return true;
#ifdef LS_HAVE_DNNL
    const dnnl_memory_desc_t *x = wanted(a, arg_a), *y = wanted(b, arg_b);
    return x && y && dnnl_memory_desc_equal(x, y);
#else
    return false;
#endif
}

bool ls__conv_layout_is_elementwise_safe(const ls__conv_plan *plan, int arg)
{
    if (plan->arg[arg].plain)
        return true;
#ifdef LS_HAVE_DNNL
    /* A blocked layout of no more bytes than the elements take has no padding. Winograd's
     * weights are no permutation of the plain ones, and not blocked. */
    const dnnl_memory_desc_t *desc = wanted(plan, arg);
    return desc && desc->format_kind == dnnl_blocked &&
           plan->arg[arg].bytes == (size_t)ls__conv_count(&plan->shape, arg) * sizeof(float);
#else
    return false;
#endif
}

#ifdef LS_HAVE_DNNL
/* oneDNN's sizes are in the order n, c, h, w. */
static int64_t block_of(const dnnl_memory_desc_t *d)
{
    const dnnl_blocking_desc_t *in = &d->format_desc.blocking;
    if (d->ndims != 4 || in->inner_nblks != 1 || in->inner_idxs[0] != 1)
        return 0;
    const int64_t b = in->inner_blks[0], c = d->dims[1], h = d->dims[2], w = d->dims[3];
    const bool dense = in->strides[3] == b && in->strides[2] == w * b &&
                       in->strides[1] == h * w * b && in->strides[0] == c * h * w;
    return dense && c % b == 0 ? b : 0;
}
#endif

int64_t ls__conv_layout_block(const ls__conv_plan *plan, int arg)
{
    if (arg == LS__CONV_W || plan->arg[arg].plain ||
        !ls__conv_layout_is_elementwise_safe(plan, arg))
        return 0;
#ifdef LS_HAVE_DNNL
    return block_of(wanted(plan, arg));
#else
    return 0;
#endif
}
