/*
 * Sums over replicas that go into updates and nowhere else: summed and applied in one node, with
 * the bits of before; sums that somebody else wants, or whose updates need more, stay.
 */
#include <lockstep/ops.h>

#include "ops/update.h"
#include "ops/variable.h"
#include "trace/test_record.h"

enum { VARIABLES = 3, V = 2, IN = VARIABLES * V, MOST_CELLS = 3 * VARIABLES };

static const ls__spec specs[VARIABLES] = { { LS_F32, 2, { 3, 7 } },
                                           { LS_F32, 1, { 33 } },
                                           { LS_F64, 1, { 5 } } };

typedef enum twist {
    PLAIN,
    SUMS_APART,    /* a sum for each variable */
    TWO_GROUPS,    /* updates of other attributes share the sum */
    ONE_ALONE,     /* a single variable */
    MEAN,          /* of the f32 ones */
    SEEN,          /* a sum is also a result of the step */
    TAKEN_TWICE,   /* a sum also goes into what another update takes */
    SCALED,        /* with a scale */
    ITS_OWN_VALUE, /* what replicas give is the variable itself */
    READ_BETWEEN   /* somebody reads a variable between the updates: two groups */
} twist;

typedef struct job {
    const ls__update_kind *kind;
    twist t;
    ls__cell *cells[MOST_CELLS];
} job;

static const ls__update_attrs attrs = {
    .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-7
};

static void sum(const job *j, ls_tensor *const *in, ls_tensor **sums)
{
    ls_reduce_op op = j->t == MEAN ? LS_MEAN : LS_SUM;
    ls_tensor *parts[IN];
    for (int i = 0; i < IN; i++)
        parts[i] = in[i];
    if (j->t == ITS_OWN_VALUE)
        for (int r = 0; r < V; r++)
            parts[r] = ls__cell_read_op(j->cells[0]);
    if (j->t == SUMS_APART)
        for (int i = 0; i < 2; i++)
            ls__sum_replicas_all(op, V, 1, parts + i * V, sums + i);
    else
        ls__sum_replicas_all(op, V, 2, parts, sums);
    ls__sum_replicas_all(LS_SUM, V, 1, parts + 2 * V, sums + 2);
}

static int step(ls_tensor *const *in, ls_tensor **out, const void *user)
{
    const job *j = user;
    ls_tensor *sums[VARIABLES];
    ls__update_attrs other = attrs;
    ls__update_numbers u = { j->kind, &attrs, ls_scalar(LS_F64, 0.125), ls_scalar_int(LS_I64, 3) };
    ls_tensor *scale = ls_scalar(LS_F64, 0.5);
    other.weight_decay = 0.5;
    sum(j, in, sums);
    if (j->t == TAKEN_TWICE) /* the second update wants it, too */
        sums[1] = ls_add(sums[1], ls_sum(sums[0], LS_ALL_AXES, false));
    int n = j->t == ONE_ALONE ? 1 : VARIABLES, results = 0;
    for (int i = 0; i < n; i++) {
        u.attrs = j->t == TWO_GROUPS && i == 1 ? &other : &attrs;
        if (j->t == READ_BETWEEN && i == 1)
            out[results++] = ls_neg(ls__cell_read_op(j->cells[0]));
        ls__update_one(&u, j->cells + i * j->kind->cells, sums[i], NULL,
                       j->t == SCALED ? scale : NULL);
    }
    if (j->t == SEEN)
        out[results++] = ls_neg(sums[0]);
    return results;
}

static void start(const job *j)
{
    for (int i = 0; i < VARIABLES * j->kind->cells; i++)
        LS_FRAME {
            ls_tensor *t = some_numbers(ls__cell_spec(j->cells[i]), (uint64_t)i + 20);
            bool moment = i % j->kind->cells == 2;
            assert_int_equal(ls__cell_assign(j->cells[i], moment ? ls_mul(t, t) : t), LS_OK);
        }
}

/* X_reduced, X_updates and X_update nodes, and sums, after the pass. */
static void becomes(int kind, twist t, int reduced, int many, int one, int sums)
{
    job j = { .kind = &ls__update_kinds[kind], .t = t };
    for (int i = 0; i < VARIABLES * j.kind->cells; i++)
        assert_int_equal(ls__cell_new("w", &specs[i / j.kind->cells], &j.cells[i]), LS_OK);
    LS_FRAME {
        ls_tensor *in[IN], *out[2][MOST_RESULTS], *after[2][MOST_CELLS];
        for (int i = 0; i < IN; i++)
            in[i] = some_numbers(&specs[i / V], (uint64_t)i + 1);
        ls__graph *g = record_step(step, &j, IN, in);
        for (int fused = 0; fused < 2; fused++) {
            if (fused)
                run_pass(ls__pass_fuse_update, g);
            start(&j);
            run_graph(g, in, out[fused]);
            for (int i = 0; i < VARIABLES * j.kind->cells; i++)
                after[fused][i] = ls__cell_read(j.cells[i]);
        }
        for (int i = 0; i < VARIABLES * j.kind->cells; i++)
            same_bits(after[1][i], after[0][i]);
        for (int i = 0; i < g->n_outputs; i++)
            same_bits(out[1][i], out[0][i]);
        assert_int_equal(count_rows(g, j.kind->reduced->name), reduced);
        assert_int_equal(count_rows(g, j.kind->many->name), many);
        assert_int_equal(count_rows(g, j.kind->one->name), one);
        assert_int_equal(count_rows(g, "sum_replicas"), sums);
        ls__graph_free(g);
    }
    for (int i = 0; i < VARIABLES * j.kind->cells; i++)
        ls__cell_unref(j.cells[i]);
}

static void sums_go_into_updates(void **state)
{
    (void)state;
    for (int kind = 0; kind < LS__UPDATES; kind++) {
        becomes(kind, PLAIN, 1, 0, 0, 0);
        becomes(kind, SUMS_APART, 1, 0, 0, 0);
        becomes(kind, TWO_GROUPS, 2, 0, 0, 0);
        becomes(kind, READ_BETWEEN, 2, 0, 0, 0);
        becomes(kind, ONE_ALONE, 1, 0, 0, 1); /* a sum that nobody wants is for another pass */
    }
}

static void sums_that_others_want_stay(void **state)
{
    (void)state;
    for (int kind = 0; kind < LS__UPDATES; kind++) {
        becomes(kind, MEAN, 1, 1, 0, 1); /* that of f64 is a sum */
        becomes(kind, SEEN, 1, 1, 0, 1);
        becomes(kind, TAKEN_TWICE, 1, 1, 0, 1);
        becomes(kind, SCALED, 0, 1, 0, 2);
    }
}

/* The replay copies what it reads before it is written. */
static ls_value *replay_step(ls_value *arguments, void *user)
{
    ls_tensor *in[IN], *out[MOST_RESULTS];
    for (int i = 0; i < IN; i++)
        in[i] = ls_item(arguments, i);
    return ls_tensors(step(in, out, user), out);
}

static void replays_keep_the_bits(void **state)
{
    (void)state;
    for (int way = 0; way < 3 * LS__UPDATES; way++) {
        static const twist twists[] = { PLAIN, ITS_OWN_VALUE, READ_BETWEEN };
        job j = { .kind = &ls__update_kinds[way / 3], .t = twists[way % 3] };
        for (int i = 0; i < VARIABLES * j.kind->cells; i++)
            assert_int_equal(ls__cell_new("w", &specs[i / j.kind->cells], &j.cells[i]), LS_OK);
        LS_FRAME {
            ls_tensor *in[IN], *after[2][MOST_CELLS];
            for (int i = 0; i < IN; i++)
                in[i] = some_numbers(&specs[i / V], (uint64_t)i + 1);
            for (int fused = 0; fused < 2; fused++) {
                ls_function *f =
                    ls_trace_with(LS_TRACE(.off = fused ? NULL : "fuse-update"), replay_step, &j);
                start(&j);
                for (int k = 0; k < 3; k++)
                    if (!ls_function_call(f, ls_tensors(IN, in)))
                        fail_msg("%s", ls_error_report());
                for (int i = 0; i < VARIABLES * j.kind->cells; i++)
                    after[fused][i] = ls__cell_read(j.cells[i]);
                ls_function_free(f);
            }
            for (int i = 0; i < VARIABLES * j.kind->cells; i++)
                same_bits(after[1][i], after[0][i]);
        }
        for (int i = 0; i < VARIABLES * j.kind->cells; i++)
            ls__cell_unref(j.cells[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(sums_go_into_updates, clean),
        cmocka_unit_test_setup(sums_that_others_want_stay, clean),
        cmocka_unit_test_setup(replays_keep_the_bits, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
