/*
 * Running a kernel on f32 copies. Invariant: the row's kernel sees no bf16 spec,
 * and the outputs of the call are rounded exactly once.
 */
#include "dispatch/widen.h"

#include "base/bf16.h"

bool ls__wants_widening(const ls_call *c)
{
    for (int i = 0; i < c->n_inputs; i++)
        if (c->in[i]->dtype == LS_BF16)
            return true;
    for (int i = 0; i < c->n_outputs; i++)
        if (c->out[i].dtype == LS_BF16)
            return true;
    return false;
}

static void to_f32(const uint16_t *from, float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = ls__bf16_to_f32(from[i]);
}

static void to_bf16(const float *from, uint16_t *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = ls__bf16_from_f32(from[i]);
}

/* Memory of the frame for n things, at least one. */
#define FRAME_ARRAY(type, n) ((type *)ls__frame_alloc(sizeof(type) * (size_t)((n) ? (n) : 1)))

static ls_status widen_inputs(const ls_call *c, ls_call *wide)
{
    ls__spec *specs = FRAME_ARRAY(ls__spec, c->n_inputs);
    const ls__spec **in = FRAME_ARRAY(const ls__spec *, c->n_inputs);
    const void **data = FRAME_ARRAY(const void *, c->n_inputs);
    if (!specs || !in || !data)
        return LS_NO_MEMORY;
    for (int i = 0; i < c->n_inputs; i++) {
        specs[i] = *c->in[i];
        in[i] = &specs[i];
        data[i] = c->in_data[i];
        if (specs[i].dtype != LS_BF16)
            continue;
        specs[i].dtype = LS_F32;
        ls_tensor *copy = ls__tensor_new(c->op->name, &specs[i]);
        if (!copy)
            return LS_NO_MEMORY;
        to_f32(c->in_data[i], ls__data(copy), ls__spec_count(&specs[i]));
        data[i] = ls__data(copy);
    }
    wide->in = in;
    wide->in_data = data;
    return LS_OK;
}

static ls_status widen_outputs(const ls_call *c, ls_call *wide)
{
    ls__spec *specs = FRAME_ARRAY(ls__spec, c->n_outputs);
    void **data = FRAME_ARRAY(void *, c->n_outputs);
    if (!specs || !data)
        return LS_NO_MEMORY;
    for (int i = 0; i < c->n_outputs; i++) {
        specs[i] = c->out[i];
        data[i] = c->out_data[i];
        if (specs[i].dtype != LS_BF16)
            continue;
        specs[i].dtype = LS_F32;
        ls_tensor *copy = ls__tensor_new(c->op->name, &specs[i]);
        if (!copy)
            return LS_NO_MEMORY;
        data[i] = ls__data(copy);
    }
    wide->out = specs;
    wide->out_data = data;
    return LS_OK;
}

static ls_status run_in_frame(ls_call *c)
{
    ls_call wide = *c;
    ls_status st = widen_inputs(c, &wide);
    if (!st)
        st = widen_outputs(c, &wide);
    if (!st)
        st = ls__run_kernel(&wide);
    for (int i = 0; i < c->n_outputs && !st; i++)
        if (c->out[i].dtype == LS_BF16)
            to_bf16(wide.out_data[i], c->out_data[i], ls__spec_count(&c->out[i]));
    return st;
}

ls_status ls__run_widened(ls_call *c)
{
    ls_status st = LS_NO_MEMORY;
    LS_FRAME st = run_in_frame(c); /* the copies go with it */
    return st;
}
