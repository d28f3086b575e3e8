/*
 * Cross-device operations: how a strategy's devices add up, as a table. One that adds by a
 * schedule is a row with its algorithm; one that a library does (NCCL) is a row whose `check`
 * says whether it is there.
 */
#ifndef LS__STRATEGY_CROSS_DEVICE_H
#define LS__STRATEGY_CROSS_DEVICE_H

#include <lockstep/strategy.h>

#include "collective/schedule.h"

typedef struct ls__cross_device {
    ls_cross_device id;
    const char *name;         /* of --cross-device-ops */
    ls_status (*check)(void); /* LS_UNSUPPORTED where it cannot be; NULL: everywhere */
    ls__algorithm algorithm;  /* by which devices add up */
    bool same_bits;           /* it adds in the order of the tree */
} ls__cross_device;

/* The row; NULL and LS_INVALID for a number that is none, LS_UNSUPPORTED where it cannot be. */
const ls__cross_device *ls__cross_device_find(ls_cross_device id);

#endif
