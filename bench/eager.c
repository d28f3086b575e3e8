/*
 * What eager costs: one small operator beside its kernel, and a training step of
 * `cnn` on one thread; and that a loop of 10,000 steps frees what it makes.
 * Prints one JSON object a line, as the scripts in bench/peers do.
 */
#include <lockstep.h>

#include <stdio.h>
#include <stdlib.h>

#include "measure.h"

enum { BATCH = 64, WINDOWS = 5 };

/* Median over windows of the seconds that one of `turns` calls takes. */
static double median_seconds(void (*call)(void *), void *user, int turns)
{
    double windows[WINDOWS];
    for (int i = 0; i < turns / 10 + 1; i++)
        LS_FRAME
            call(user);
    for (int w = 0; w < WINDOWS; w++) {
        double start = now();
        for (int i = 0; i < turns; i++)
            LS_FRAME
                call(user);
        windows[w] = (now() - start) / turns;
    }
    return median(windows, WINDOWS);
}

/* ---- one small operator ------------------------------------------------------- */

enum { OPS_PER_FRAME = 50 };

typedef struct small_op {
    ls_tensor *a, *b;
    bool taped;
} small_op;

static void add_many(void *user)
{
    small_op *s = user;
    if (s->taped)
        ls_tape_open();
    for (int i = 0; i < OPS_PER_FRAME; i++)
        ls_add(s->a, s->b);
}

static void small_operators(void)
{
    for (int taped = 0; taped < 2; taped++)
        for (int64_t n = 1; n <= 8; n += 7)
            LS_FRAME {
                ls_tensor *x = ls_ones(LS_F32, n > 1, &n);
                small_op s = { x, x, taped };
                double us = 1e6 * median_seconds(add_many, &s, 2000) / OPS_PER_FRAME;
                printf("{\"system\":\"lockstep\",\"bench\":\"eager_op\",\"op\":\"add%s\","
                       "\"elements\":%lld,\"us\":%.3f}\n",
                       taped ? "_taped" : "", (long long)n, us);
            }
}

/* ---- a training step of cnn ------------------------------------------------------ */

typedef struct cnn {
    ls_variable *p[6];
    ls_tensor *x, *y;
    ls_optimizer *adam;
} cnn;

static void cnn_step(void *user)
{
    cnn *m = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *h = ls_relu(ls_add(ls_conv2d(m->x, ls_read(m->p[0]), NULL), ls_read(m->p[1])));
    h = ls_flatten_rows(ls_max_pool2d(h, 2, 2, LS_VALID));
    h = ls_relu(ls_dense(h, ls_read(m->p[2]), ls_read(m->p[3])));
    ls_tensor *logits = ls_dense(h, ls_read(m->p[4]), ls_read(m->p[5]));
    ls_tensor *loss = ls_mean(ls_sparse_softmax_xent(logits, m->y), LS_ALL_AXES, false);
    ls_minimize(m->adam, tape, loss, 6, m->p);
    ls_to_float(loss);
}

static void training_step(int steps)
{
    LS_FRAME {
        cnn m = { .adam = ls_adam(NULL) };
        m.p[0] = ls_variable_new("conv", ls_glorot_uniform(LS_F32, LS_DIMS(3, 3, 1, 32)), true);
        m.p[1] = ls_variable_new("conv_bias", ls_zeros(LS_F32, LS_DIMS(32)), true);
        m.p[2] = ls_variable_new("hidden", ls_glorot_uniform(LS_F32, LS_DIMS(5408, 64)), true);
        m.p[3] = ls_variable_new("hidden_bias", ls_zeros(LS_F32, LS_DIMS(64)), true);
        m.p[4] = ls_variable_new("out", ls_glorot_uniform(LS_F32, LS_DIMS(64, 10)), true);
        m.p[5] = ls_variable_new("out_bias", ls_zeros(LS_F32, LS_DIMS(10)), true);
        m.x = ls_random_uniform(LS_F32, LS_DIMS(BATCH, 28, 28, 1), 0, 1);
        m.y = ls_random_uniform(LS_I32, LS_DIMS(BATCH), 0, 10);
        double seconds = median_seconds(cnn_step, &m, steps);
        printf("{\"system\":\"lockstep\",\"bench\":\"eager_step\",\"model\":\"cnn\",\"batch\":%d,"
               "\"threads\":1,\"images_per_second\":%.0f}\n",
               BATCH, BATCH / seconds);
        ls_optimizer_free(m.adam);
        for (int i = 0; i < 6; i++)
            ls_variable_free(m.p[i]);
    }
}

/* ---- memory over many steps ---------------------------------------------------------- */

static void memory_over(int steps)
{
    LS_FRAME {
        ls_variable *w = ls_variable_new("w", ls_glorot_uniform(LS_F32, LS_DIMS(64, 32)), true);
        ls_variable *b = ls_variable_new("b", ls_zeros(LS_F32, LS_DIMS(32)), true);
        ls_optimizer *adam = ls_adam(NULL);
        ls_tensor *x = ls_random_normal(LS_F32, LS_DIMS(16, 64), 0, 1);
        size_t first = 0, last = 0;
        long first_kib = 0;
        for (int i = 0; i < steps; i++) {
            LS_FRAME {
                ls_tape *tape = ls_tape_open();
                ls_tensor *y = ls_gelu(ls_dense(x, ls_read(w), ls_read(b)), false);
                ls_minimize(adam, tape, ls_sum(ls_square(ls_dropout(y, 0.1)), LS_ALL_AXES, false),
                            2, (ls_variable *[]){ w, b });
            }
            ls_memory(&last, NULL);
            if (i == 99) {
                first = last;
                first_kib = resident_kib();
            }
        }
        printf("{\"system\":\"lockstep\",\"bench\":\"eager_memory\",\"steps\":%d,"
               "\"bytes_after_100\":%zu,\"bytes_at_end\":%zu,\"resident_kib_after_100\":%ld,"
               "\"resident_kib_at_end\":%ld}\n",
               steps, first, last, first_kib, resident_kib());
        ls_optimizer_free(adam);
        ls_variable_free(w);
        ls_variable_free(b);
    }
}

int main(int argc, char **argv)
{
    small_operators();
    training_step(argc > 1 ? atoi(argv[1]) : 100);
    memory_over(10000);
    if (ls_error_pending()) {
        fprintf(stderr, "eager: %s\n", ls_error_report());
        return 1;
    }
    return 0;
}
