/*
 * Makes the optimizer of a case from its attributes, which are named as the library's options;
 * tools/golden_ops/optimizers.py makes Keras' of the same.
 */
#include "support/case_optimizer.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const test_case *c, const char *name)
{
    for (int i = 0; i < c->n_attrs; i++)
        if (!strcmp(c->attrs[i].name, name))
            return c->attrs[i].text;
    return NULL;
}

double case_setting(const test_case *c, const char *name)
{
    const char *text = text_of(c, name);
    return text ? strtod(text, NULL) : 0;
}

enum { MOST = 8 };

typedef struct rates {
    ls_schedule schedule;
    int64_t boundaries[MOST];
    double values[MOST + 1];
} rates;

/* "1,2.5,3": how many. */
static int list_of(const char *text, double *out)
{
    int n = 0;
    for (char *end; text && n <= MOST; text = end + 1) {
        out[n++] = strtod(text, &end);
        if (*end != ',')
            break;
    }
    return n;
}

/* NULL without one. */
static const ls_schedule *schedule_of(const test_case *c, rates *r)
{
    const char *kind = text_of(c, "schedule");
    if (!kind)
        return NULL;
    double boundaries[MOST + 1];
    int n = list_of(text_of(c, "boundaries"), boundaries);
    for (int i = 0; i < n && i < MOST; i++)
        r->boundaries[i] = (int64_t)boundaries[i];
    list_of(text_of(c, "values"), r->values);
    r->schedule =
        (ls_schedule){ .size = sizeof(ls_schedule),
                       .kind = strcmp(kind, "step") ? LS_SCHEDULE_COSINE : LS_SCHEDULE_STEP,
                       .count = n,
                       .boundaries = r->boundaries,
                       .values = r->values,
                       .steps = (int64_t)case_setting(c, "steps"),
                       .alpha = case_setting(c, "alpha"),
                       .warmup_steps = (int64_t)case_setting(c, "warmup_steps"),
                       .warmup_from = case_setting(c, "warmup_from") };
    return &r->schedule;
}

ls_optimizer *case_optimizer(const test_case *c)
{
    rates r;
    ls_optimizer *o = NULL;
    const ls_schedule *schedule = schedule_of(c, &r);
#define COMMON                                                                                     \
    .rate = case_setting(c, "rate"), .schedule = schedule,                                         \
    .weight_decay = case_setting(c, "weight_decay"), .clip_value = case_setting(c, "clip_value"),  \
    .clip_norm = case_setting(c, "clip_norm"),                                                     \
    .clip_global_norm = case_setting(c, "clip_global_norm")
    if (!strcmp(c->op, "sgd"))
        o = ls_sgd(LS_SGD(COMMON, .momentum = case_setting(c, "momentum"),
                          .nesterov = case_setting(c, "nesterov") != 0));
    if (!strncmp(c->op, "adam", 4)) {
        const ls_adam_options *options =
            LS_ADAM(COMMON, .beta1 = case_setting(c, "beta1"), .beta2 = case_setting(c, "beta2"),
                    .epsilon = case_setting(c, "epsilon"));
        o = strcmp(c->op, "adamw") ? ls_adam(options) : ls_adamw(options);
    }
#undef COMMON
    const char *exclude = text_of(c, "exclude");
    if (o && exclude)
        ls_exclude_from_weight_decay(o, 0, NULL, 1, &exclude);
    return o;
}
