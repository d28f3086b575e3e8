/*
 * For tests and benchmarks of models: one that is built, samples of whatever it takes, and its mean
 * loss over them.
 */
#ifndef LS__TRAIN_MODELS_SAMPLES_H
#define LS__TRAIN_MODELS_SAMPLES_H

#include <lockstep/ops.h>

#include "train/model.h"

/* A model of Lockstep's own with its variables; NULL: failed. */
static inline ls_model *ls__built(const char *name)
{
    ls_model *m = ls_model_named(name);
    if (!m || !ls_model_build(m))
        return m;
    ls_model_free(m);
    return NULL;
}

/* n samples: x in 0 .. 1, or bytes below `classes`, and labels below it. A model whose samples may be
 * shorter gets them `length` long (0: as long as they are). */
static inline ls_value *ls__draw_samples(const ls_model *m, int64_t n, int64_t length, int classes)
{
    int64_t in[LS_MAX_RANK] = { n }, out[LS_MAX_RANK] = { n };
    for (int i = 0; i < m->input.rank; i++)
        in[1 + i] = m->input.dims[i];
    for (int i = 0; i < m->label.rank; i++)
        out[1 + i] = m->label.dims[i];
    if (m->shorter && length > 0)
        in[1] = out[1] = length;
    double high = m->input.dtype == LS_F32 ? 1 : classes;
    ls_tensor *x = ls_random_uniform(m->input.dtype, 1 + m->input.rank, in, 0, high);
    ls_tensor *y = ls_random_uniform(m->label.dtype, 1 + m->label.rank, out, 0, classes);
    return ls_tensors(2, (ls_tensor *[]){ x, y });
}

/* Of a batch (x, y): a scalar. */
static inline ls_tensor *ls__mean_loss(ls_model *m, ls_value *batch, bool training)
{
    ls_tensor *y = ls_model_forward(m, ls_item(batch, 0), training);
    return ls_mean(ls_model_loss(m)(y, ls_item(batch, 1)), LS_ALL_AXES, false);
}

#endif
