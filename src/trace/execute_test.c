/*
 * Plans and instances from the inside: places, undo, bf16, buckets, packed weights, and
 * replicas that meet. What a user sees is in function_test.c.
 */
#include "trace/execute.h"

#include <lockstep.h>

#include "base/bf16.h"
#include "ops/update.h"
#include "trace/memory.h"
#include "trace/record.h"
#include "trace/test_run.h"

static const ls__spec vector = { LS_F32, 1, { 3 } };

static ls__cell *new_cell(const char *name, float value)
{
    ls__cell *cell;
    assert_int_equal(ls__cell_new(name, &vector, &cell), LS_OK);
    float *to = ls__cell_write(cell);
    for (int i = 0; i < 3; i++)
        to[i] = value + (float)i;
    return cell;
}

static int add_cell(ls__graph *g, ls__cell *cell)
{
    return ls__graph_cell_add(g, ls__cell_serial(cell), ls__cell_name(cell), &vector, cell);
}

static ls__node *on_cell(ls__graph *g, const char *row, int cell, int n, const int *inputs)
{
    g->calls++;
    ls__node *node = ls__graph_call_cells(g, NULL, ls_op_find(row), NULL, n, inputs, 1, &cell);
    assert_non_null(node);
    return node;
}

static const ls__draw no_draws;

static ls__plan *plan_of(ls__graph *g, const char *off)
{
    ls__pass_set set;
    assert_int_equal(ls__pass_set_parse("test", off, &set), LS_OK);
    ls__plan *plan = ls__plan_make(g, set, 0);
    if (!plan)
        fail_msg("%s", ls_error_report());
    return plan;
}

static ls_status run_once(ls__instance *i, const void *const *inputs)
{
    int meeting;
    ls__instance_begin(i, inputs, &no_draws);
    ls_status st = ls__instance_run(i, &meeting);
    return ls__instance_end(i, st);
}

/* ---- places --------------------------------------------------------------------------- */

/* No two wires that a later instruction needs share bytes, unless they are one memory. */
static void elementwise_results_lie_over_their_operand(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    int x = ls__graph_input(g, &vector);
    int a = add_call(g, "exp", NULL, 1, &x), b = add_call(g, "neg", NULL, 1, &a);
    int c = add_call(g, "add", NULL, 2, (int[]){ a, b }), d = add_call(g, "exp", NULL, 1, &c);
    ls__graph_output(g, d);
    ls__plan *plan = plan_of(g, "fuse-chain");
    assert_int_not_equal(plan->places[a].offset, plan->places[b].offset); /* both are needed */
    assert_int_equal(plan->places[c].offset, plan->places[a].offset);
    assert_int_equal(plan->places[d].offset, plan->places[c].offset);
    assert_int_equal(plan->arena_bytes, 2 * LS__ARENA_ALIGN);
    assert_int_equal(plan->arena_bytes, plan->arena_least);
    assert_int_equal(plan->places[x].base, LS__AT_INPUT);
    ls__plan_free(plan);
}

static void without_the_memory_pass_nothing_is_shared(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    int x = ls__graph_input(g, &vector), w = x;
    for (int i = 0; i < 4; i++)
        w = add_call(g, "exp", NULL, 1, &w);
    ls__graph_output(g, w);
    ls__plan *plan = plan_of(g, "all");
    assert_int_equal(plan->arena_bytes, 4 * LS__ARENA_ALIGN);
    ls__plan_free(plan);
}

/* ---- buckets ------------------------------------------------------------------------------ */

static void buckets_are_filled_in_order(void **state)
{
    (void)state;
    int counts[6];
    assert_int_equal(ls__bucket_counts(0, NULL, 100, counts), 0);
    assert_int_equal(ls__bucket_counts(5, (size_t[]){ 40, 60, 1, 200, 3 }, 100, counts), 4);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 1);
    assert_int_equal(counts[2], 1); /* larger than a bucket: alone */
    assert_int_equal(counts[3], 1);
}

typedef struct pair {
    ls_variable *a, *b;
    ls_optimizer *sgd;
} pair;

static ls_value *train_pair(ls_value *v, void *user)
{
    pair *p = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *h = ls_tanh(ls_mul(ls_read(p->a), ls_item(v, 0)));
    ls_tensor *loss = ls_sum(ls_square(ls_mul(h, ls_read(p->b))), LS_ALL_AXES, false);
    ls_minimize(p->sgd, tape, loss, 2, (ls_variable *[]){ p->a, p->b });
    return ls_leaf(loss);
}

static void gradients_lie_side_by_side(void **state)
{
    (void)state;
    LS_FRAME {
        pair p = { ls_variable_new("a", ls_ones(LS_F32, LS_DIMS(40)), true),
                   ls_variable_new("b", ls_ones(LS_F32, LS_DIMS(40)), true), ls_sgd(NULL) };
        ls__recorder *r = ls__recorder_open("t");
        const ls__spec spec = { LS_F32, 1, { 40 } };
        ls_tensor *x = ls__recorder_argument(r, &spec, ls__device_current());
        assert_non_null(train_pair(ls_tensors(1, &x), &p));
        ls__plan *plan = plan_of(ls__recorder_close(r, true), NULL);
        assert_int_equal(plan->n_buckets, 1);
        const ls__bucket *bucket = &plan->buckets[0];
        assert_int_equal(bucket->count, 2);
        assert_int_equal(bucket->bytes, 2 * ls__arena_round(160));
        size_t first = plan->places[plan->bucket_wires[0]].offset;
        assert_int_equal(plan->places[plan->bucket_wires[1]].offset, first + ls__arena_round(160));
        assert_true(plan->graph->wires[plan->bucket_wires[0]].node->at <
                    plan->graph->wires[plan->bucket_wires[1]].node->at);
        ls__plan_free(plan);
        ls_optimizer_free(p.sgd);
        ls_variable_free(p.a);
        ls_variable_free(p.b);
    }
}

/* ---- undo ------------------------------------------------------------------------------------ */

static void only_what_can_fail_later_is_saved(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        ls__graph *g = ls__graph_new("t");
        ls__cell *cell = new_cell("w", 1);
        int x = ls__graph_input(g, &vector), c = add_cell(g, cell);
        on_cell(g, "assign_add", c, 1, &x);
        int read = on_cell(g, "read", c, 0, NULL)->outputs[0];
        struct {
            ls_ints axes;
            int64_t keep;
        } all = { { 0 }, 0 };
        all.axes.count = -1;
        int y = fails ? add_call(g, "sum", &all, 1, &read) : add_call(g, "neg", NULL, 1, &read);
        ls__graph_output(g, y);
        ls__plan *plan = plan_of(g, NULL);
        assert_int_equal(plan->n_undo, fails); /* sum does not promise to succeed, neg does */
        ls__plan_free(plan);
        ls__cell_unref(cell);
    }
}

/* ---- bf16 -------------------------------------------------------------------------------------- */

static void bf16_is_widened_once(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    const ls__spec narrow = { LS_BF16, 1, { 3 } };
    int x = ls__graph_input(g, &narrow);
    int y = add_call(g, "add", NULL, 2, (int[]){ x, x }), z = add_call(g, "exp", NULL, 1, &x);
    ls__graph_output(g, y);
    ls__graph_output(g, z);
    ls__plan *plan = plan_of(g, NULL);
    assert_int_equal(count_rows(plan->graph, "cast"), 3); /* x to f32 once, both results back */
    ls__instance *i;
    assert_int_equal(ls__instance_open(plan, NULL, &i), LS_OK);
    uint16_t data[3];
    for (int k = 0; k < 3; k++)
        data[k] = ls__bf16_from_f32((float)k);
    assert_int_equal(run_once(i, (const void *[]){ data }), LS_OK);
    const uint16_t *sum = ls__instance_output(i, 0);
    assert_float_equal(ls__bf16_to_f32(sum[2]), 4, 0);
    assert_int_equal(((const uint16_t *)ls__instance_output(i, 1))[0], ls__bf16_from_f32(1));
    ls__instance_close(i);
    ls__plan_free(plan);
}

/* ---- packed weights ------------------------------------------------------------------------------ */

static int packings;

static ls_status pack_kernel(ls_call *c)
{
    packings++;
    memcpy(ls_call_out(c, 0), ls_call_in(c, 0), 12);
    return LS_OK;
}

static ls_status like_input(ls_call *c)
{
    return ls__output_like(c, 0, 0);
}

static const ls_op pack_row = { .size = sizeof(ls_op),
                                .name = "test_pack",
                                .inputs = 1,
                                .outputs = 1,
                                .flags = LS__OP_PACKS,
                                .shape = like_input,
                                .kernel = pack_kernel };

static void packed_again_when_the_version_changes(void **state)
{
    (void)state;
    for (int written = 0; written < 2; written++) {
        ls__graph *g = ls__graph_new("t");
        ls__cell *cell = new_cell("w", 1);
        int x = ls__graph_input(g, &vector), c = add_cell(g, cell);
        int read = on_cell(g, "read", c, 0, NULL)->outputs[0];
        int packed = ls__graph_call(g, NULL, &pack_row, NULL, 1, &read)->outputs[0];
        ls__graph_output(g, add_call(g, "add", NULL, 2, (int[]){ packed, x }));
        if (written)
            on_cell(g, "assign_add", c, 1, &x);
        ls__plan *plan = plan_of(g, NULL);
        assert_true(plan->kept_bytes > 0);
        ls__instance *i;
        assert_int_equal(ls__instance_open(plan, NULL, &i), LS_OK);
        const float one[3] = { 1, 1, 1 };
        packings = 0;
        for (int k = 0; k < 3; k++)
            assert_int_equal(run_once(i, (const void *[]){ one }), LS_OK);
        assert_int_equal(packings, written ? 3 : 1);
        assert_float_equal(*(const float *)ls__instance_output(i, 0), written ? 4 : 2, 0);
        *(float *)ls__cell_write(cell) = 50; /* somebody else writes it */
        assert_int_equal(run_once(i, (const void *[]){ one }), LS_OK);
        assert_float_equal(*(const float *)ls__instance_output(i, 0), 51, 0);
        ls__instance_close(i);
        ls__plan_free(plan);
        ls__cell_unref(cell);
    }
}

static void a_constant_is_packed_once(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    ls__storage *s = ls__storage_new("test", 12);
    memcpy(s->data, (float[]){ 7, 8, 9 }, 12);
    int x = ls__graph_input(g, &vector), weights = ls__graph_constant(g, &vector, s);
    ls__storage_unref(s);
    g->calls++;
    int packed = ls__graph_call(g, NULL, &pack_row, NULL, 1, &weights)->outputs[0];
    ls__graph_output(g, add_call(g, "add", NULL, 2, (int[]){ packed, x }));
    ls__plan *plan = plan_of(g, NULL);
    ls__instance *i;
    const float one[3] = { 1, 1, 1 };
    assert_int_equal(ls__instance_open(plan, NULL, &i), LS_OK);
    packings = 0;
    for (int k = 0; k < 3; k++) {
        assert_int_equal(run_once(i, (const void *[]){ one }), LS_OK);
        assert_float_equal(*(const float *)ls__instance_output(i, 0), 8, 0);
    }
    assert_int_equal(packings, 1);
    ls__instance_close(i);
    ls__plan_free(plan);
}

/* ---- replicas that meet ------------------------------------------------------------------------------ */

static const ls_op meet_row = { .size = sizeof(ls_op),
                                .name = "test_sum_of_replicas",
                                .inputs = 1,
                                .outputs = 1,
                                .flags = LS__OP_SYNC,
                                .shape = like_input,
                                .kernel = pack_kernel };

enum { V = 2 };

/* What each replica brings to the meeting, summed: a segment between two barriers, run
 * once for all, and itself a plan. */
static ls__plan *plan_merge(void)
{
    ls__graph *g = ls__graph_new("merge");
    int sum = ls__graph_input(g, &vector);
    for (int r = 1; r < V; r++)
        sum = add_call(g, "add", NULL, 2, (int[]){ sum, ls__graph_input(g, &vector) });
    ls__graph_output(g, sum);
    return plan_of(g, NULL);
}

/* One plan, V instances with cells of their own, driven segment by segment with the merge
 * segment in between: what a strategy does. */
static void replicas_meet(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    ls__cell *cells[V] = { new_cell("w", 0), new_cell("w", 100) };
    int x = ls__graph_input(g, &vector), c = add_cell(g, cells[0]);
    int squared = add_call(g, "square", NULL, 1, &x);
    g->calls++;
    int sum = ls__graph_call(g, NULL, &meet_row, NULL, 1, &squared)->outputs[0];
    on_cell(g, "assign_add", c, 1, &sum);
    ls__graph_output(g, sum);
    ls__plan *plan = plan_of(g, NULL), *merge = plan_merge();
    ls__instance *replica[V], *merging;
    const float given[V][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    const void *brought[V];
    int meeting[V] = { -2, -2 };
    assert_int_equal(ls__instance_open(merge, NULL, &merging), LS_OK);
    for (int r = 0; r < V; r++) {
        assert_int_equal(ls__instance_open(plan, &cells[r], &replica[r]), LS_OK);
        ls__instance_begin(replica[r], (const void *[]){ given[r] }, &no_draws);
        assert_int_equal(ls__instance_run(replica[r], &meeting[r]), LS_OK);
        assert_true(meeting[r] >= 0 && meeting[r] == meeting[0]);
        brought[r] = ls__instance_call(replica[r], meeting[r])->in_data[0];
    }
    assert_int_equal(run_once(merging, brought), LS_OK);
    for (int r = 0; r < V; r++) {
        memcpy(ls__instance_call(replica[r], meeting[r])->out_data[0],
               ls__instance_output(merging, 0), 3 * sizeof(float));
        assert_int_equal(ls__instance_run(replica[r], &meeting[r]), LS_OK);
        assert_int_equal(meeting[r], -1);
        assert_int_equal(ls__instance_end(replica[r], LS_OK), LS_OK);
        assert_float_equal(*(const float *)ls__instance_output(replica[r], 0), 17, 0);
        assert_float_equal(*(const float *)ls__cell_data(cells[r]), 17 + 100 * r, 0);
        ls__instance_close(replica[r]);
        ls__cell_unref(cells[r]);
    }
    ls__instance_close(merging);
    ls__plan_free(merge);
    ls__plan_free(plan);
}

/* A replica that another one's failure cancels puts its own writes back. */
static void a_cancelled_replica_undoes_its_writes(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    ls__cell *cell = new_cell("w", 5);
    int x = ls__graph_input(g, &vector), c = add_cell(g, cell);
    on_cell(g, "assign", c, 1, &x);
    g->calls++;
    ls__graph_output(g, ls__graph_call(g, NULL, &meet_row, NULL, 1, &x)->outputs[0]);
    ls__plan *plan = plan_of(g, NULL);
    assert_int_equal(plan->n_undo, 1); /* a meeting can always fail */
    ls__instance *i;
    int meeting;
    const float given[3] = { 0, 0, 0 };
    assert_int_equal(ls__instance_open(plan, NULL, &i), LS_OK);
    ls__instance_begin(i, (const void *[]){ given }, &no_draws);
    assert_int_equal(ls__instance_run(i, &meeting), LS_OK);
    assert_float_equal(*(const float *)ls__cell_data(cell), 0, 0);
    assert_int_equal(ls__instance_end(i, LS_CANCELLED), LS_CANCELLED);
    assert_float_equal(*(const float *)ls__cell_data(cell), 5, 0);
    ls__instance_close(i);
    ls__plan_free(plan);
    ls__cell_unref(cell);
}

static ls_status refuses(ls_call *c)
{
    return ls_call_fail(c, LS_INVALID, "nobody came");
}

static const ls_op lonely_row = { .size = sizeof(ls_op),
                                  .name = "test_lonely",
                                  .inputs = 1,
                                  .outputs = 1,
                                  .flags = LS__OP_SYNC,
                                  .shape = like_input,
                                  .kernel = refuses };

static ls_value *meets_alone(ls_value *v, void *user)
{
    (void)user;
    ls_tensor *x = ls_neg(ls_item(v, 0));
    x = ls_apply(&lonely_row, 1, &x, NULL);
    return ls_leaf(x);
}

static void an_error_of_a_meeting_says_where(void **state)
{
    (void)state;
    ls_function *f = ls_trace_with(LS_TRACE(.name = "my_step"), meets_alone, NULL);
    LS_FRAME {
        ls_tensor *x = ls_ones(LS_F32, LS_DIMS(2));
        assert_null(ls_function_call(f, ls_tensors(1, &x)));
        assert_non_null(strstr(ls_error_text(), "my_step: operator 2 of 2: test_lonely: nobody"));
        failed(LS_INVALID);
    }
    ls_function_free(f);
}

/* Updates stay on their side of a meeting. */
static void updates_do_not_cross_a_meeting(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    ls__cell *cells[] = { new_cell("a", 1), new_cell("b", 2) };
    const ls__spec number = { LS_F64, 0, { 0 } };
    const ls__update_attrs attrs = { 0 };
    int x = ls__graph_input(g, &vector), rate = ls__graph_input(g, &number);
    for (int i = 0; i < 2; i++) {
        int c = add_cell(g, cells[i]);
        g->calls++;
        assert_non_null(ls__graph_call_cells(g, NULL, ls_op_find("sgd_update"), &attrs, 2,
                                             (int[]){ x, rate }, 1, &c));
        if (i == 0)
            ls__graph_output(g, ls__graph_call(g, NULL, &meet_row, NULL, 1, &x)->outputs[0]);
    }
    assert_int_equal(ls__pass_fuse_update(g), LS_OK);
    assert_int_equal(count_rows(g, "sgd_update"), 2);
    ls__graph_free(g);
    for (int i = 0; i < 2; i++)
        ls__cell_unref(cells[i]);
}

/* A program may save a cell itself, after a write: what was saved first counts. */
static void what_was_saved_first_is_restored_last(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    ls__cell *cell = new_cell("w", 5);
    int x = ls__graph_input(g, &vector), c = add_cell(g, cell);
    on_cell(g, "assign", c, 1, &x);
    ls__graph_output(g, on_cell(g, "save", c, 0, NULL)->outputs[0]);
    g->calls++;
    ls__graph_output(g, ls__graph_call(g, NULL, &meet_row, NULL, 1, &x)->outputs[0]);
    ls__plan *plan = plan_of(g, NULL);
    assert_int_equal(plan->n_undo, 2);
    ls__instance *i;
    int meeting;
    const float given[3] = { 0, 0, 0 };
    assert_int_equal(ls__instance_open(plan, NULL, &i), LS_OK);
    ls__instance_begin(i, (const void *[]){ given }, &no_draws);
    assert_int_equal(ls__instance_run(i, &meeting), LS_OK);
    assert_int_equal(ls__instance_end(i, LS_CANCELLED), LS_CANCELLED);
    assert_float_equal(*(const float *)ls__cell_data(cell), 5, 0);
    ls__instance_close(i);
    ls__plan_free(plan);
    ls__cell_unref(cell);
}

/* ---- cells that are not here ------------------------------------------------------------------------- */

static void a_hollow_cell_cannot_run(void **state)
{
    (void)state;
    ls__graph *g = ls__graph_new("t");
    int c = ls__graph_cell_add(g, 7, "far", &vector, NULL);
    ls__graph_output(g, on_cell(g, "read", c, 0, NULL)->outputs[0]);
    ls__plan *plan = plan_of(g, NULL);
    ls__instance *i = NULL;
    assert_int_equal(ls__instance_open(plan, NULL, &i), LS_STATE);
    assert_non_null(strstr(ls_error_text(), "'far'"));
    failed(LS_STATE);
    ls__cell *near = new_cell("near", 3), *other;
    assert_int_equal(ls__instance_open(plan, &near, &i), LS_OK);
    assert_int_equal(run_once(i, NULL), LS_OK);
    assert_float_equal(*(const float *)ls__instance_output(i, 0), 3, 0);
    ls__instance_close(i);
    const ls__spec scalar = { LS_F32, 0, { 0 } };
    assert_int_equal(ls__cell_new("other", &scalar, &other), LS_OK);
    assert_int_equal(ls__instance_open(plan, &other, &i), LS_SHAPE);
    failed(LS_SHAPE);
    ls__cell_unref(near);
    ls__cell_unref(other);
    ls__plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(elementwise_results_lie_over_their_operand, clean),
        cmocka_unit_test_setup(without_the_memory_pass_nothing_is_shared, clean),
        cmocka_unit_test_setup(buckets_are_filled_in_order, clean),
        cmocka_unit_test_setup(gradients_lie_side_by_side, clean),
        cmocka_unit_test_setup(only_what_can_fail_later_is_saved, clean),
        cmocka_unit_test_setup(bf16_is_widened_once, clean),
        cmocka_unit_test_setup(packed_again_when_the_version_changes, clean),
        cmocka_unit_test_setup(a_constant_is_packed_once, clean),
        cmocka_unit_test_setup(replicas_meet, clean),
        cmocka_unit_test_setup(a_cancelled_replica_undoes_its_writes, clean),
        cmocka_unit_test_setup(an_error_of_a_meeting_says_where, clean),
        cmocka_unit_test_setup(updates_do_not_cross_a_meeting, clean),
        cmocka_unit_test_setup(what_was_saved_first_is_restored_last, clean),
        cmocka_unit_test_setup(a_hollow_cell_cannot_run, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
