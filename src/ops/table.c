/*
 * All built-in operators. A family is a file of this folder that ends with the
 * array of its rows; adding a family is one line here.
 */
#include <stddef.h>

#include "dispatch/registry.h"

#define FAMILIES(X)                                                                                \
    X(binary)                                                                                      \
    X(compare)                                                                                     \
    X(where)                                                                                       \
    X(unary)                                                                                       \
    X(gelu)                                                                                        \
    X(clip)                                                                                        \
    X(cast)                                                                                        \
    X(require_finite)                                                                              \
    X(fused_chain)                                                                                 \
    X(reduce)                                                                                      \
    X(replicas)                                                                                    \
    X(scan)                                                                                        \
    X(top_k)                                                                                       \
    X(matmul)                                                                                      \
    X(fused_matmul)                                                                                \
    X(packed_matmul)                                                                               \
    X(attention)                                                                                   \
    X(fused_attention)                                                                             \
    X(conv)                                                                                        \
    X(fused_conv_pool)                                                                             \
    X(fused_conv)                                                                                  \
    X(fused_winograd)                                                                              \
    X(layout_conv)                                                                                 \
    X(pool)                                                                                        \
    X(layout_pool)                                                                                 \
    X(batch_norm)                                                                                  \
    X(moments)                                                                                     \
    X(layer_norm)                                                                                  \
    X(softmax)                                                                                     \
    X(loss)                                                                                        \
    X(fused_loss)                                                                                  \
    X(gather)                                                                                      \
    X(embedding)                                                                                   \
    X(one_hot)                                                                                     \
    X(reshape)                                                                                     \
    X(transpose)                                                                                   \
    X(concat)                                                                                      \
    X(slice)                                                                                       \
    X(pad)                                                                                         \
    X(tile)                                                                                        \
    X(picture)                                                                                     \
    X(resize)                                                                                      \
    X(random)                                                                                      \
    X(dropout)                                                                                     \
    X(variable)                                                                                    \
    X(scatter)                                                                                     \
    X(lower)                                                                                       \
    X(meet)                                                                                        \
    X(rate)                                                                                        \
    X(clip_scales)                                                                                 \
    X(accumulate)                                                                                  \
    X(update)                                                                                      \
    X(update_lazy)                                                                                 \
    X(update_reduced)                                                                              \
    X(update_products)                                                                             \
    X(fused_update)

#define DECLARE(family) extern const ls_op *const ls__rows_##family[];
FAMILIES(DECLARE)

#define ENTRY(family) ls__rows_##family,
static const ls_op *const *const families[] = { FAMILIES(ENTRY) NULL };

__attribute__((constructor)) static void hand_over(void)
{
    ls__registry_builtin(families);
}
