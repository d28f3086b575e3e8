/* Clipping by norm; see clip_scales.c. */
#ifndef LS__OPS_CLIP_SCALES_H
#define LS__OPS_CLIP_SCALES_H

#include <lockstep/tensor.h>

/* By what each of `count` gradients is multiplied, f64[], so that none is longer than `clip`, or
 * (global) all together are not: clip / max(norm, clip), NaN if the norm is not finite. */
ls_status ls__clip_scales(double clip, bool global, int count, ls_tensor *const *gradients,
                          ls_tensor **scales);

#endif
