/* For tests of updates by products (ops/update_products.h). */
#ifndef LS__TRAIN_PRODUCTS_TEST_SUPPORT_H
#define LS__TRAIN_PRODUCTS_TEST_SUPPORT_H

#include <stdbool.h>

#include "kernels/gemm.h"

/* Whether this build and processor have them. Who multiplies else is the reference, which takes
 * its time. */
static inline bool ls__products_are_here(void)
{
#ifdef LS_HAVE_DNNL
    return LS__PICK(ls__gemm_table)->plain != NULL;
#else
    return false;
#endif
}

#endif
