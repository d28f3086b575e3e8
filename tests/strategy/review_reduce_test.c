/*
 * What a review of adding up over replicas found: gradients that are folded as replicas finish, and
 * sums that devices share, have the bits that one device has without either.
 */
#include <lockstep.h>
#include <malloc.h>
#include <string.h>

#include "strategy/strategy_support.h"

/* ---- one memory, brought under two names ---------------------------------------------------- */

enum { FOUR = 4 };

static ls_value *fours(int replica, int replicas, void *user)
{
    (void)replicas, (void)user;
    return ls_leaf(ls_full(LS_F32, LS_DIMS(FOUR), replica + 2));
}

/* The first thing is only added up; of the second the meeting wants what each replica brought. */
static ls_value *sum_and_all(ls_strategy *s, ls_value *arguments, void *user)
{
    (void)user;
    int n = ls_num_replicas(s);
    ls_tensor *all[MOST_REPLICAS];
    for (int r = 0; r < n; r++)
        all[r] = ls_reshape(ls_leaf_tensor(ls_select(ls_child(arguments, 1), r)), LS_DIMS(1, FOUR));
    return pair(ls_leaf(ls_reduce(s, LS_SUM, ls_child(arguments, 0), LS_NO_AXIS)),
                ls_leaf(ls_concat(n, all, 0)));
}

typedef enum names { RESHAPED, COMPUTED_TWICE, WITHOUT_GRADIENT, ITSELF, NAMES } names;

static ls_value *bring_twice(ls_value *arguments, void *user)
{
    ls_tensor *x = ls_leaf_tensor(arguments), *g = ls_mul(x, x), *again = g;
    names how = *(names *)user;
    if (how == RESHAPED)
        again = ls_reshape(g, LS_DIMS(2, 2));
    else if (how == COMPUTED_TWICE)
        again = ls_mul(x, x);
    else if (how == WITHOUT_GRADIENT)
        again = ls_stop_gradient(g);
    return ls_merge_call(ls_get_replica_context(), sum_and_all, NULL,
                         pair(ls_leaf(g), ls_leaf(again)));
}

static void check_names(ls_strategy *s, int n, bool traced)
{
    for (names how = 0; how < NAMES; how++) {
        ls_value *v = run_step(s, traced, bring_twice, &how, ls_distribute_values(s, fours, NULL));
        GAVE(v);
        float all[MOST_REPLICAS * FOUR], sum = 0;
        OK(ls_copy_out(part(ls_child(v, 1), 0), all, sizeof *all * (size_t)(n * FOUR)));
        for (int r = 0; r < n; r++) {
            float want = (float)((r + 2) * (r + 2));
            sum += want;
            if (all[r * FOUR] != want)
                fail_msg("%d, %d replicas: replica %d brought %g, the meeting saw %g", how, n, r,
                         want, all[r * FOUR]);
        }
        HOLDS(part(ls_child(v, 0), 0), sum, sum, sum, sum);
    }
}

EVERYWHERE(what_is_folded_is_not_read_under_another_name, check_names)

/* ---- denormals -------------------------------------------------------------------------------- */

/* More than one thread adds up, or updates, alone. */
enum { MANY = 80000 };

typedef struct tiny {
    ls_variable *w[2];
    ls_optimizer *adam;
    float sum[MANY], slot[MANY];
} tiny;

/* Sums of neighbours are denormal; so are the squares that Adam keeps. Kernels flush those. */
static ls_value *tiny_numbers(int replica, int replicas, void *user)
{
    (void)replicas;
    float *x = user, *y = x + MANY;
    for (int i = 0; i < MANY; i++) {
        x[i] = (replica % 2 ? -1.18e-38f : 1.5e-38f) * (1 + 0.01f * (float)(i % 7));
        y[i] = 1e-20f * (1 + (float)replica + 0.01f * (float)(i % 5));
    }
    return pair(ls_leaf(ls_from(LS_F32, LS_DIMS(MANY), x)),
                ls_leaf(ls_from(LS_F32, LS_DIMS(MANY), y)));
}

static ls_value *add_tiny(ls_value *arguments, void *user)
{
    tiny *t = user;
    ls_tensor *x = ls_neg(ls_item(arguments, 0)), *y = ls_item(arguments, 1);
    ls_tensor *g[] = { ls_neg(y), ls_scale(y, 2) };
    if (ls_apply_gradients(t->adam, 2, g, t->w))
        return NULL;
    return ls_all_reduce(ls_get_replica_context(), LS_SUM, ls_leaf(x));
}

static void sum_tiny(int replicas, int devices, bool traced, double clip, tiny *t)
{
    static float numbers[2 * MANY];
    ls_strategy *s = replicas_on(replicas, devices);
    for (int i = 0; i < 2; i++)
        LS_SCOPE (s)
            t->w[i] = ls_variable_new(i ? "v" : "w", ls_zeros(LS_F32, LS_DIMS(MANY)), true);
    t->adam = ls_adam(LS_ADAM(.clip_global_norm = clip));
    LS_FRAME {
        ls_value *v =
            run_step(s, traced, add_tiny, t, ls_distribute_values(s, tiny_numbers, numbers));
        GAVE(v);
        OK(ls_copy_out(part(v, 0), t->sum, sizeof t->sum));
        OK(ls_copy_out(ls_slot_read(t->adam, t->w[0], 1), t->slot, sizeof t->slot));
    }
    ls_optimizer_free(t->adam);
    ls_variable_free(t->w[0]);
    ls_variable_free(t->w[1]);
    free_strategy(s);
}

static void check_tiny(double clip)
{
    static tiny want, got;
    for (int replicas = 2; replicas <= 4; replicas += 2) {
        sum_tiny(replicas, 1, false, clip, &want);
        for (int way = 1; way < 2 * replicas; way++) {
            sum_tiny(replicas, way / 2 + 1, way % 2, clip, &got);
            if (memcmp(got.sum, want.sum, sizeof got.sum) != 0 ||
                memcmp(got.slot, want.slot, sizeof got.slot) != 0)
                fail_msg("%d replicas on %d devices, %s: other bits than on one", replicas,
                         way / 2 + 1, way % 2 ? "traced" : "eager");
        }
    }
}

static void denormals_are_flushed_on_every_device(void **state)
{
    (void)state;
    check_tiny(0); /* sums and updates in one pass */
}

static void denormals_are_flushed_where_norms_are_clipped(void **state)
{
    (void)state;
    check_tiny(1e9); /* sums, norms, then updates */
}

/* ---- many values at once ----------------------------------------------------------------------- */

enum { VALUES = 1500 };

/* What malloc has given out; 0 where nobody counts it. */
static size_t given_out(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
#else
    return 0;
#endif
}

static void values_reduced_at_once_cost_by_their_number(void **state)
{
    (void)state;
    static ls_value *values[VALUES];
    static ls_destination *to[VALUES];
    ls_strategy *s = replicas_on(2, 1);
    LS_SCOPE (s)
        LS_FRAME {
            for (int i = 0; i < VALUES; i++) {
                values[i] = numbers(s, i, 1);
                to[i] = ls_at_value(values[i]);
            }
            size_t before = given_out();
            ls_value *sums = ls_batch_reduce_to(s, LS_SUM, VALUES, values, to);
            GAVE(sums);
            size_t each = (given_out() - before) / VALUES;
            if (each > 8192)
                fail_msg("%zu bytes for each of %d values", each, VALUES);
            for (int i = 0; i < VALUES; i++)
                HOLDS(part(ls_child(sums, i), 1), 2 * i + 1);
        }
    free_strategy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_folded_is_not_read_under_another_name),
        TEST(denormals_are_flushed_on_every_device),
        TEST(denormals_are_flushed_where_norms_are_clipped),
        TEST(values_reduced_at_once_cost_by_their_number),
    };
    return RUN_TESTS(tests);
}
