/*
 * The table of cross-device operations, and what is asked of it. AUTO is its first row: on
 * CPUs, which share memory, direct (one pass, every device busy, nothing copied).
 */
#include "strategy/cross_device.h"

#include <string.h>

#include "base/status.h"
#include "strategy/strategy.h"

/* Its place: a plugin that finds GPUs replaces this. */
static ls_status no_gpu(void)
{
    return ls__hint(ls__fail(LS_UNSUPPORTED, "ls_mirrored: NCCL without a GPU"),
                    "on CPUs it is auto, direct, hierarchical-copy or reduction-to-one-device");
}

static const ls__cross_device table[] = {
    { LS_CROSS_DEVICE_AUTO, "auto", NULL, LS__ALGORITHM_DIRECT, true },
    { LS_CROSS_DEVICE_DIRECT, "direct", NULL, LS__ALGORITHM_DIRECT, true },
    { LS_CROSS_DEVICE_TO_ONE, "reduction-to-one-device", NULL, LS__ALGORITHM_TO_ONE, true },
    { LS_CROSS_DEVICE_HIERARCHICAL, "hierarchical-copy", NULL, LS__ALGORITHM_HIERARCHICAL, true },
    { LS_CROSS_DEVICE_NCCL, "nccl", no_gpu, LS__ALGORITHM_DIRECT, false },
};

enum { ROWS = sizeof table / sizeof *table };

const ls__cross_device *ls__cross_device_find(ls_cross_device id)
{
    for (int i = 0; i < ROWS; i++)
        if (table[i].id == id)
            return table[i].check && table[i].check() ? NULL : &table[i];
    ls__hint(ls__fail(LS_INVALID, "ls_mirrored: cross_device %d", (int)id),
             "one of LS_CROSS_DEVICE_AUTO to LS_CROSS_DEVICE_NCCL");
    return NULL;
}

ls_status ls_cross_device_named(const char *name, ls_cross_device *out)
{
    if (!name || !out)
        return ls__fail(LS_INVALID, "ls_cross_device_named: %s is NULL", name ? "out" : "the name");
    for (int i = 0; i < ROWS; i++)
        if (strcmp(table[i].name, name) == 0) {
            *out = table[i].id;
            return LS_OK;
        }
    return ls__hint(ls__fail(LS_INVALID, "ls_cross_device_named: there is no '%s'", name),
                    "auto, direct, hierarchical-copy, reduction-to-one-device or nccl");
}

const char *ls_cross_device_name(ls_cross_device id)
{
    for (int i = 0; i < ROWS; i++)
        if (table[i].id == id)
            return table[i].name;
    return "?";
}

bool ls_same_bits(const ls_strategy *s)
{
    return s && (s->replicas == 1 || s->cross->same_bits);
}
