/* What Keras does to one element, in plain double: for tests of optimizers. */
#ifndef LS__TRAIN_OPTIMIZER_TEST_MODEL_H
#define LS__TRAIN_OPTIMIZER_TEST_MODEL_H

#include <math.h>
#include <stdint.h>

typedef struct model {
    double w, m, v;
    int64_t t;
} model;

static inline void model_sgd(model *x, double g, double rate)
{
    x->w -= rate * g;
}

static inline void model_adam(model *x, double g, double rate, double b1, double b2, double epsilon)
{
    x->t++;
    double alpha = rate * sqrt(1 - pow(b2, (double)x->t)) / (1 - pow(b1, (double)x->t));
    x->m += (g - x->m) * (1 - b1);
    x->v += (g * g - x->v) * (1 - b2);
    x->w -= alpha * x->m / (sqrt(x->v) + epsilon);
}

/* A gradient for element i of step t: of all sizes and both signs. */
static inline double slope(int64_t t, int i)
{
    return sin(0.7 * (double)t + i) * pow(10, (i % 5) - 3);
}

#endif
