/*
 * The optimizers that are tried: each of the five plain, and three times with options, so that
 * each meets every kind of clipping, a schedule, accumulation and .lazy. Accumulation is not
 * for sparse gradients with .lazy, so these two are apart.
 */
#include "same_bits/same_bits.h"

const char *const sb_recipe_names[SB_RECIPES + 1] = {
    "sgd",
    "momentum",
    "nesterov",
    "adam",
    "adamw",
    "sgd-value-cosine",
    "momentum-value-cosine",
    "nesterov-value-cosine",
    "adam-value-cosine",
    "adamw-value-cosine",
    "sgd-norm-parts",
    "momentum-norm-parts",
    "nesterov-norm-parts",
    "adam-norm-parts",
    "adamw-norm-parts",
    "sgd-global-lazy",
    "momentum-global-lazy",
    "nesterov-global-lazy",
    "adam-global-lazy",
    "adamw-global-lazy",
    NULL,
};

enum { PLAIN, VALUE_COSINE, NORM_PARTS, GLOBAL_LAZY };

/* What all optimizers have in common. */
typedef struct common {
    const ls_schedule *schedule;
    double clip_value, clip_norm, clip_global_norm;
    bool lazy, accumulates;
} common;

static common options_of(int way, const ls_schedule *cosine)
{
    switch (way) {
    case VALUE_COSINE:
        return (common){ .schedule = cosine, .clip_value = 0.01 };
    case NORM_PARTS:
        return (common){ .clip_norm = 0.1, .accumulates = true };
    case GLOBAL_LAZY:
        return (common){ .clip_global_norm = 0.2, .lazy = true };
    default:
        return (common){ 0 };
    }
}

bool sb_accumulates(int recipe)
{
    return recipe / SB_OPTIMIZERS == NORM_PARTS;
}

static ls_optimizer *sgd(const common *c, double momentum, bool nesterov)
{
    return ls_sgd(LS_SGD(.rate = 0.05, .schedule = c->schedule, .clip_value = c->clip_value,
                         .clip_norm = c->clip_norm, .clip_global_norm = c->clip_global_norm,
                         .lazy = c->lazy, .accumulates = c->accumulates, .momentum = momentum,
                         .nesterov = nesterov));
}

static ls_optimizer *adam(const common *c, bool decays)
{
    const ls_adam_options *options =
        LS_ADAM(.rate = 0.002, .schedule = c->schedule, .clip_value = c->clip_value,
                .clip_norm = c->clip_norm, .clip_global_norm = c->clip_global_norm, .lazy = c->lazy,
                .accumulates = c->accumulates);
    if (!decays)
        return ls_adam(options);
    ls_optimizer *o = ls_adamw(options);
    const char *const names[] = { "bias", "norm" };
    if (o && ls_exclude_from_weight_decay(o, 0, NULL, 2, names)) {
        ls_optimizer_free(o);
        return NULL;
    }
    return o;
}

ls_optimizer *sb_recipe(int recipe, int steps)
{
    const ls_schedule *cosine = LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, .alpha = 0.1,
                                            .steps = steps - steps / 4, .warmup_steps = steps / 4);
    common c = options_of(recipe / SB_OPTIMIZERS, cosine);
    switch (recipe % SB_OPTIMIZERS) {
    case 0:
        return sgd(&c, 0, false);
    case 1:
        return sgd(&c, 0.9, false);
    case 2:
        return sgd(&c, 0.9, true);
    case 3:
        return adam(&c, false);
    default:
        return adam(&c, true);
    }
}
