/*
 * Two replicas that train a small model, against TensorFlow's MirroredStrategy: golden_curves.txt
 * (made by tools/golden.py) has data, start values and the loss of each step. Eager and traced,
 * on one device and on two: to tolerance TensorFlow's losses, and among each other the same bits.
 */
#include <lockstep.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/case_optimizer.h"

enum { X, Y, W1, B1, W2, B2, INPUTS, VARIABLES = INPUTS - W1, MOST_STEPS = 30 };

typedef struct model {
    const test_case *c;
    ls_optimizer *o;
    ls_variable *w[VARIABLES];
} model;

/* The rows of this replica. */
static ls_tensor *half(const model *m, int input)
{
    int64_t rows = m->c->in[input].dims[0] / 2, columns = m->c->in[input].dims[1];
    int64_t id = ls_replica_id(ls_get_replica_context());
    return ls_slice(case_make(&m->c->in[input]), 2, (int64_t[]){ id * rows, 0 },
                    (int64_t[]){ rows, columns });
}

static ls_value *step(ls_value *arguments, void *user)
{
    (void)arguments;
    model *m = user;
    ls_tensor *x = half(m, X), *y = half(m, Y);
    double all = (double)m->c->in[Y].count;
    ls_tape *tape = ls_tape_open();
    ls_tensor *hidden = ls_tanh(ls_add(ls_matmul(x, ls_read(m->w[0])), ls_read(m->w[1])));
    ls_tensor *got = ls_add(ls_matmul(hidden, ls_read(m->w[2])), ls_read(m->w[3]));
    ls_tensor *loss =
        ls_div(ls_sum(ls_square(ls_sub(got, y)), LS_ALL_AXES, false), ls_scalar(LS_F32, all));
    ls_minimize(m->o, tape, loss, VARIABLES, m->w);
    return ls_leaf(loss);
}

static bool make(model *m, ls_strategy *s)
{
    static const char *const names[] = { "w1", "bias1", "w2", "bias2" };
    bool ok = (m->o = case_optimizer(m->c)) != NULL;
    LS_FRAME
        LS_SCOPE (s)
            for (int i = 0; i < VARIABLES; i++) {
                m->w[i] = ls_variable_new(names[i], case_make(&m->c->in[W1 + i]), true);
                ok = ok && m->w[i];
            }
    return ok;
}

static bool train(const test_case *c, const char *devices, bool traced, float *losses)
{
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = devices, .replicas = 2));
    model m = { .c = c };
    bool ok = s && c->n_in == INPUTS && c->out[0].count == MOST_STEPS && make(&m, s);
    ls_function *f = traced ? ls_trace(step, &m) : NULL;
    for (int k = 0; ok && k < MOST_STEPS; k++)
        LS_FRAME {
            ls_value *none = ls_list(0, NULL);
            ls_value *per = f ? ls_run(s, f, none) : ls_run_eager(s, step, &m, none);
            ls_tensor *loss = per ? ls_reduce(s, LS_SUM, per, LS_NO_AXIS) : NULL;
            ok = loss != NULL;
            if (ok)
                losses[k] = (float)ls_to_double(loss);
        }
    if (!ok)
        print_error("case %s on %s: %s\n", c->name, devices, ls_error_report());
    ls_function_free(f);
    ls_optimizer_free(m.o);
    for (int i = 0; i < VARIABLES; i++)
        ls_variable_free(m.w[i]);
    ls_strategy_free(s);
    return ok;
}

static bool follows(const test_case *c, const float *losses)
{
    const float *want = c->out[0].data;
    for (int k = 0; k < MOST_STEPS; k++)
        if (!(fabsf(losses[k] - want[k]) <= (float)c->tol * want[k])) {
            print_error("case %s, step %d: loss %.9g, TensorFlow's %.9g\n", c->name, k,
                        (double)losses[k], (double)want[k]);
            return false;
        }
    return true;
}

static void test_curves(void **state)
{
    (void)state;
    char path[512];
    case_file file;
    snprintf(path, sizeof path, "%s/golden_curves.txt", case_root());
    if (!case_file_read(path, &file))
        fail_msg("%s", case_problem());
    int bad = 0;
    for (int i = 0; i < file.count; i++) {
        const test_case *c = &file.cases[i];
        float first[MOST_STEPS], losses[MOST_STEPS];
        bool ok = train(c, "/cpu:0", false, first) && follows(c, first);
        for (int way = 1; ok && way < 4; way++) {
            ok = train(c, way & 2 ? "/cpu:0,/cpu:1" : "/cpu:0", way & 1, losses);
            if (ok && memcmp(losses, first, sizeof first) != 0) {
                print_error("case %s: way %d has other bits\n", c->name, way);
                ok = false;
            }
        }
        bad += !ok;
    }
    int count = file.count;
    case_file_free(&file);
    assert_int_equal(bad, 0);
    assert_true(count >= 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_curves) };
    return cmocka_run_group_tests_name("loss curves against TensorFlow", tests, NULL, NULL);
}
