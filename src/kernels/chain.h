/*
 * A chain: several element-wise loops over one result shape, run block by block
 * so that what lies between them stays in the nearest cache and is never stored.
 *
 * Each step is a loop of kernels/elementwise.h. Its operands are values: the
 * inputs are numbered first, then the steps. An element goes through the very
 * loops it would go through alone, so it has the same bits.
 *
 *     out = relu(x + bias):  inputs 0: x, 1: bias;  step 2: add(0, 1);  step 3: relu(2)
 */
#ifndef LS__KERNELS_CHAIN_H
#define LS__KERNELS_CHAIN_H

#include "kernels/broadcast.h"

#define LS__CHAIN_INPUTS 8
#define LS__CHAIN_STEPS 16
#define LS__CHAIN_OUTPUTS 4
#define LS__CHAIN_VALUES (LS__CHAIN_INPUTS + LS__CHAIN_STEPS)

/* Dense; broadcasts to the result's shape. */
typedef struct ls__chain_input {
    const void *data;
    size_t size; /* bytes of an element: 1, 2, 4 or 8 */
    int rank;
    const int64_t *dims;
} ls__chain_input;

typedef struct ls__chain_step {
    ls__loop *loop;
    int operands;
    int operand[LS__BROADCAST_OPERANDS]; /* values made before */
    size_t size;                         /* bytes of an element of the result */
    void *out;                           /* where it goes, or NULL: needed inside only */
} ls__chain_step;

typedef struct ls__chain {
    int n_inputs, n_steps;
    int rank; /* of every step's result */
    const int64_t *dims;
    ls__chain_input input[LS__CHAIN_INPUTS];
    ls__chain_step step[LS__CHAIN_STEPS];
} ls__chain;

/* Bytes of scratch memory for a chain of so many elements. */
size_t ls__chain_scratch(int64_t count, int n_inputs, int n_steps);

/* An output may lie over an input that has its count of elements and their size,
 * exactly; they overlap in no other way. */
void ls__chain_run(const ls__chain *c, void *scratch);

#endif
