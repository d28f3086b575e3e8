/*
 * A convolution with bias, the pool and relu behind it, and the way back through all three, as the passes
 * fuse-pool and fuse-conv left them in a graph. What passes look for that make one call of it.
 *
 *     u = conv2d_bias_act(x, w, bias)          without relu, nobody else wants u
 *     p, places = max_pool2d_relu(u)           windows of 2 x 2 that do not overlap
 *     ...
 *     m = relu_grad(p, dp)
 *     du = max_pool2d_grad(m, places)
 *     dw = conv2d_grad_filter(x, du)           nobody wants du but these two
 *     dx = conv2d_grad_input(w, du)
 *     dbias = sum(m) over all axes but the last
 */
#ifndef LS__TRACE_CONV_LAYER_H
#define LS__TRACE_CONV_LAYER_H

#include "kernels/conv.h"
#include "trace/graph.h"

/* Its nodes. On the way back `mask` and `back` are there or none is; the others may be NULL. */
typedef struct ls__conv_layer {
    ls__node *conv, *pool;
    ls__node *mask, *back, *filter, *input, *sum;
} ls__conv_layer;

/* What a conv2d or conv2d_bias_act computes; false: not in f32. */
bool ls__conv_node_shape(const ls__graph *g, const ls__node *conv, ls__conv_shape *s);

/* The layer that ends with this node, forward; false: it is none, or somebody else wants what is inside. */
bool ls__conv_layer_find(const ls__graph *g, const ls__uses *uses, ls__node *node,
                         ls__conv_layer *l);

/* The first of the nodes that make gradients: what each of them needs is there before it. */
ls__node *ls__conv_layer_first_back(const ls__conv_layer *l);

/* `to` takes the place of `node`'s only result; the node may be NULL. */
void ls__conv_layer_replace(ls__graph *g, ls__node *node, int to);

#endif
