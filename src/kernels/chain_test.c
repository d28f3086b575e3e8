/*
 * Chains against their loops one after the other over whole tensors: sizes around
 * those of a block, every way an input can lie, outputs over inputs, and memory
 * that is used again inside.
 */
#include "kernels/chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/elementwise.h"

#define MOST (5 * 1024)
#define GUARD 0x5a

static uint64_t seed = 3;

static int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static void fill(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)below(2000) / 250 - 4;
}

/* Adds and multiplies whole tensors, with the input stretched by hand. */
static void stretched(const ls__chain *c, int input, float *to)
{
    const ls__chain_input *in = &c->input[input];
    int64_t count = 1;
    for (int i = 0; i < c->rank; i++)
        count *= c->dims[i];
    for (int64_t e = 0; e < count; e++) {
        int64_t rest = e, offset = 0, stride = 1;
        for (int axis = c->rank - 1, own = in->rank - 1; own >= 0; axis--, own--) {
            int64_t index = rest % c->dims[axis];
            rest /= c->dims[axis];
            offset += (in->dims[own] == 1 ? 0 : index) * stride;
            stride *= in->dims[own];
        }
        to[e] = ((const float *)in->data)[offset];
    }
}

static void by_hand(const ls__chain *c, int64_t count, float (*value)[MOST])
{
    const int64_t step[4] = { 1, 1, 1, 1 };
    for (int i = 0; i < c->n_inputs; i++)
        stretched(c, i, value[i]);
    for (int k = 0; k < c->n_steps; k++) {
        const void *in[4] = { NULL };
        for (int j = 0; j < c->step[k].operands; j++)
            in[j] = value[c->step[k].operand[j]];
        c->step[k].loop(in, step, value[c->n_inputs + k], count);
    }
}

/* Random steps over what there is; the last is an output, others may be. */
static void random_steps(ls__chain *c)
{
    static const ls__fn two[] = { LS__FN_add, LS__FN_mul, LS__FN_sub, LS__FN_maximum };
    c->n_steps = 1 + below(LS__CHAIN_STEPS);
    for (int k = 0; k < c->n_steps; k++) {
        ls__chain_step *s = &c->step[k];
        bool one = below(3) == 0;
        *s = (ls__chain_step){ .operands = one ? 1 : 2, .size = sizeof(float) };
        s->loop = ls__elementwise_loop(one ? LS__FN_tanh : two[below(4)], LS_F32);
        for (int j = 0; j < s->operands; j++)
            s->operand[j] =
                j == 0 && k > 0 && below(2) ? c->n_inputs + k - 1 : below(c->n_inputs + k);
    }
}

static float value[LS__CHAIN_VALUES][MOST];

static void check(int rank, const int64_t *dims)
{
    static float data[LS__CHAIN_INPUTS][MOST], out[LS__CHAIN_STEPS][MOST];
    int64_t own[LS__CHAIN_INPUTS][LS__BROADCAST_RANK], count = 1;
    for (int i = 0; i < rank; i++)
        count *= dims[i];
    assert_true(count <= MOST);
    ls__chain c = { .n_inputs = 1 + below(LS__CHAIN_INPUTS), .rank = rank, .dims = dims };
    for (int i = 0; i < c.n_inputs; i++) {
        int skip = below(3) ? 0 : below(rank + 1), full = below(2);
        for (int axis = 0; axis < rank; axis++)
            own[i][axis] = full || below(2) ? dims[axis] : 1;
        c.input[i] = (ls__chain_input){ data[i], sizeof(float), rank - skip, own[i] + skip };
        fill(data[i], MOST);
    }
    random_steps(&c);
    by_hand(&c, count, value);
    bool over[LS__CHAIN_INPUTS] = { false };
    for (int k = 0; k < c.n_steps; k++) {
        int i = below(c.n_inputs);
        int64_t size = 1;
        for (int axis = 0; axis < c.input[i].rank; axis++)
            size *= c.input[i].dims[axis];
        if (k < c.n_steps - 1 && below(4))
            continue;
        c.step[k].out = out[k];
        if (size == count && !over[i] && below(2)) { /* in the place of an input */
            c.step[k].out = data[i];
            over[i] = true;
        }
    }
    size_t bytes = ls__chain_scratch(count, c.n_inputs, c.n_steps);
    char *scratch = aligned_alloc(64, bytes + 64);
    assert_non_null(scratch);
    memset(scratch, GUARD, bytes + 64);
    ls__chain_run(&c, scratch);
    for (int k = 0; k < c.n_steps; k++)
        if (c.step[k].out)
            assert_memory_equal(c.step[k].out, value[c.n_inputs + k],
                                (size_t)count * sizeof(float));
    for (size_t i = bytes; i < bytes + 64; i++)
        assert_int_equal(scratch[i], GUARD);
    free(scratch);
}

static void test_chains(void **state)
{
    (void)state;
    static const struct {
        int rank;
        int64_t dims[4];
    } shapes[] = { { 0, { 0 } },       { 1, { 1 } },          { 1, { 1023 } },
                   { 1, { 1024 } },    { 1, { 1025 } },       { 1, { 5000 } },
                   { 2, { 400, 10 } }, { 2, { 10, 500 } },    { 2, { 3, 1500 } },
                   { 2, { 2, 2048 } }, { 3, { 4, 7, 150 } },  { 3, { 3, 1, 1100 } },
                   { 2, { 0, 3 } },    { 4, { 2, 3, 20, 5 } } };
    for (int turn = 0; turn < 150; turn++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            check(shapes[i].rank, shapes[i].dims);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_chains) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
