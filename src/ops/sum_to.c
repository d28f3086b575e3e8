/*
 * Undoing a broadcast: the gradient of an input that was stretched is the sum
 * over what it was stretched along.
 */
#include <lockstep/ops.h>

#include "dispatch/call.h"

ls_tensor *ls__sum_to(ls_tensor *t, ls_tensor *like)
{
    if (ls__check_tensor("gradient", "t", t) || ls__check_tensor("gradient", "like", like))
        return NULL;
    const ls__spec *from = &t->spec, *to = &like->spec;
    if (ls__spec_same_shape(from, to))
        return t;
    int64_t axes[LS_MAX_RANK];
    int count = 0, extra = from->rank - to->rank;
    for (int i = 0; i < from->rank; i++)
        if (i < extra || to->dims[i - extra] != from->dims[i])
            axes[count++] = i;
    return ls_reshape(ls_sum(t, count, axes, false), to->rank, to->dims);
}
