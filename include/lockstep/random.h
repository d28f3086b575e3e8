/*
 * random.h: random numbers that belong to the program.
 *
 * How to use it
 *
 * A draw is a pure function of (seed, replica, step, ordinal of the draw in
 * the step), never of a stream that threads share. So the same program draws
 * the same numbers anywhere, and a step that is done again draws them again.
 *
 *     ls_random_seed(1);
 *     for (int64_t step = 0; step < n; step++) {
 *         ls_random_step(step);           // ordinals start again at 0
 *         ... ls_dropout(x, 0.1) ...
 *     }
 *
 * Seed, step and ordinal belong to the calling thread. Strategies set the
 * replica and the step by themselves.
 */
#ifndef LOCKSTEP_RANDOM_H
#define LOCKSTEP_RANDOM_H

#include <stdint.h>

#include <lockstep/export.h>

LS_BEGIN_DECLS

LS_API void ls_random_seed(uint64_t seed);
LS_API void ls_random_step(int64_t step);

LS_END_DECLS

#endif
