/*
 * Training adds up by schedules and by nothing else: one altered hop of the schedule, and
 * the verifier refuses it and training fails or gives other weights. This is built from its own
 * copy of src/strategy with LS__DEFECTS, which lets it change schedules (src/strategy/defect.h).
 *
 * Hops that move a complete sum to those who do not keep it have nothing to change in shared memory,
 * where the sum is there once: those are for the verifier alone.
 */
#include <lockstep/optimizer.h>
#include <stdio.h>
#include <string.h>

#include "collective/placement.h"
#include "collective/schedule.h"
#include "strategy/defect.h"
#include "strategy/strategy_support.h"

int ls__defect = LS__NO_DEFECT;
void (*ls__alter_schedule)(struct ls__schedule *schedule);

enum { WIDE = 40, SIZE = WIDE * 7, STEPS = 2 };

/* ---- the hop to alter ------------------------------------------------------------------------- */

typedef enum change { WRONG_NODE, WRONG_CHUNK, DROPPED, CHANGES } change;

static struct {
    int rank, hop;
    change change;
    bool verified; /* the verifier took it */
    bool done;     /* there is such a hop */
    bool spreads;  /* it only hands the complete sum on */
} alter;

static bool is_root(const ls__schedule *s, const ls__hop *h)
{
    return h->node == ls__tree_root(s->spec.replicas);
}

/* Both ends, so that it is another transfer, not none. */
static ls__hop *other_end(ls__schedule *s, int rank, const ls__hop *h)
{
    for (int i = 0; i < s->n_hops[h->peer]; i++) {
        ls__hop *o = &s->hops[h->peer][i];
        if (o->act != LS__ACT_ADD && o->act != h->act && o->peer == rank && o->round == h->round &&
            o->chunk == h->chunk && o->node == h->node)
            return o;
    }
    return NULL;
}

static void drop(ls__schedule *s, int rank, const ls__hop *h)
{
    int at = (int)(h - s->hops[rank]);
    memmove(s->hops[rank] + at, h + 1, sizeof *h * (size_t)(s->n_hops[rank] - at - 1));
    s->n_hops[rank]--;
}

static void alter_now(ls__schedule *s)
{
    if (alter.rank >= s->spec.ranks || alter.hop >= s->n_hops[alter.rank])
        return;
    alter.done = true;
    ls__hop *h = &s->hops[alter.rank][alter.hop];
    ls__hop *o = h->act == LS__ACT_ADD ? NULL : other_end(s, alter.rank, h);
    alter.spreads = h->act != LS__ACT_ADD && is_root(s, h);
    switch (alter.change) {
    case WRONG_NODE: { /* another replica's, or another sum */
        uint32_t node = ls__tree_node_at(0, 0);
        if (h->node == node)
            node = ls__tree_node_at(0, 1);
        h->node = node;
        if (o)
            o->node = node;
        break;
    }
    case WRONG_CHUNK:
        if (s->chunks == 1 || h->chunk == LS__EVERY_CHUNK) {
            alter.done = false;
            break;
        }
        h->chunk = (h->chunk + 1) % (uint32_t)s->chunks;
        if (o)
            o->chunk = h->chunk;
        break;
    case DROPPED:
        if (o)
            drop(s, h->peer, o);
        drop(s, alter.rank, h);
        break;
    case CHANGES:
        break;
    }
    alter.verified = ls__schedule_verify(s) == LS_OK;
    ls_error();
}

/* ---- training --------------------------------------------------------------------------------- */

typedef struct net {
    ls_variable *w;
    ls_optimizer *sgd;
} net;

/* Gradients of wildly different sizes, so that any other order of the sum shows. */
static ls_value *step(ls_value *arguments, void *user)
{
    net *n = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *loss = ls_sum(ls_mul(ls_read(n->w), ls_item(arguments, 0)), LS_ALL_AXES, false);
    ls_minimize(n->sgd, tape, loss, 1, &n->w);
    return ls_list(0, NULL);
}

static ls_value *batch_for(int replica, int replicas, void *user)
{
    (void)user;
    float x[SIZE];
    for (int i = 0; i < SIZE; i++) {
        float scale = 1;
        for (int k = 0; k < (replica * 7 + i * 3) % (2 * replicas + 1); k++)
            scale *= -13.7f;
        x[i] = scale * (1 + 0.37f * (float)((i * 29 + replica * 17) % 97));
    }
    ls_tensor *t = ls_from(LS_F32, LS_DIMS(SIZE), x);
    return ls_tensors(1, &t);
}

/* The weights after some steps; false when training failed. */
static bool train(ls_cross_device how, int replicas, int devices, bool traced, float *out)
{
    char list[128] = "";
    for (int d = 0; d < devices; d++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s/cpu:%d", d ? "," : "", d);
    ls_strategy *s =
        ls_mirrored(LS_MIRRORED(.devices = list, .replicas = replicas, .cross_device = how));
    GAVE(s);
    net n = { .sgd = ls_sgd(LS_SGD(.rate = 0.125)) };
    LS_SCOPE (s)
        n.w = ls_variable_new("w", ls_zeros(LS_F32, LS_DIMS(SIZE)), true);
    ls_function *f = ls_trace(step, &n);
    bool went = true;
    for (int i = 0; i < STEPS && went; i++)
        LS_FRAME {
            ls_value *batch = ls_distribute_values(s, batch_for, NULL);
            went = traced ? ls_run(s, f, batch) != NULL : ls_run_eager(s, step, &n, batch) != NULL;
        }
    ls_error();
    LS_FRAME
        ls_copy_out(ls_read(n.w), out, sizeof(float) * SIZE);
    ls_function_free(f);
    ls_variable_free(n.w);
    ls_optimizer_free(n.sgd);
    free_strategy(s);
    return went;
}

/* One change of one hop: refused by the verifier, noticed by training. */
static void alter_one(ls_cross_device how, int replicas, int devices, bool traced,
                      const float *want)
{
    float got[SIZE];
    ls__alter_schedule = alter_now;
    bool went = train(how, replicas, devices, traced, got);
    ls__alter_schedule = NULL;
    if (!alter.done)
        return;
    if (alter.verified)
        fail_msg("rank %d, hop %d, change %d: the verifier takes it", alter.rank, alter.hop,
                 alter.change);
    if (!alter.spreads && went && memcmp(got, want, sizeof got) == 0)
        fail_msg("cross-device %d, %d replicas on %d devices: rank %d, hop %d, change %d: training "
                 "does not notice",
                 how, replicas, devices, alter.rank, alter.hop, alter.change);
}

static void alter_all(ls_cross_device how, ls__algorithm algorithm, int replicas, int devices,
                      bool traced, const float *want)
{
    ls__schedule *s = NULL;
    const ls__schedule_spec spec = { .algorithm = algorithm,
                                     .ranks = devices,
                                     .replicas = replicas };
    assert_int_equal(ls__schedule_make(&spec, &s), LS_OK);
    int hops = 0;
    for (int rank = 0; rank < devices; rank++)
        for (int hop = 0; hop < s->n_hops[rank]; hop++, hops++)
            for (change c = WRONG_NODE; c < CHANGES; c++) {
                memset(&alter, 0, sizeof alter);
                alter.rank = rank, alter.hop = hop, alter.change = c;
                alter_one(how, replicas, devices, traced, want);
            }
    assert_true(hops >= replicas - 1);
    ls__schedule_free(s);
}

static void every_hop_counts(void **state)
{
    (void)state;
    static const ls_cross_device how[] = { LS_CROSS_DEVICE_DIRECT, LS_CROSS_DEVICE_HIERARCHICAL,
                                           LS_CROSS_DEVICE_TO_ONE };
    static const ls__algorithm algorithms[] = { LS__ALGORITHM_DIRECT, LS__ALGORITHM_HIERARCHICAL,
                                                LS__ALGORITHM_TO_ONE };
    static const struct {
        int replicas, devices;
    } sizes[] = { { 5, 1 }, { 5, 2 }, { 3, 3 }, { 5, 3 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        float want[SIZE], got[SIZE];
        int r = sizes[i].replicas, d = sizes[i].devices;
        assert_true(train(LS_CROSS_DEVICE_AUTO, r, 1, true, want));
        for (size_t k = 0; k < 3; k++)
            for (int traced = 0; traced < 2; traced++) {
                assert_true(train(how[k], r, d, traced, got));
                assert_memory_equal(got, want, sizeof want);
                alter_all(how[k], algorithms[k], r, d, traced, want);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_hop_counts, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
