/*
 * Peak memory of traced training steps with Adam, of an mlp of 10^8 parameters, for V = 1 and V = 8 on 2
 * devices (V = 1 has one). Each in a process of its own, this program started again, because the peak
 * of a process never falls. The process is built with the public interface alone.
 */
#include <lockstep/strategy.h>
#include <spawn.h>
#include <sys/wait.h>

#include "reduce.h"

extern char **environ;

enum { IN = 784, WIDTH = 4900, HIDDEN = 5, OUT = 10, LAYERS = HIDDEN + 1, ROWS = 8, STEPS = 2 };

typedef struct mlp {
    ls_variable *p[2 * LAYERS]; /* weights and bias of each layer */
    ls_optimizer *adam;
    int replicas;
} mlp;

static int64_t make_parameters(mlp *m)
{
    int64_t parameters = 0;
    for (int i = 0; i < LAYERS; i++)
        LS_FRAME {
            char name[32];
            int64_t in = i == 0 ? IN : WIDTH, out = i < HIDDEN ? WIDTH : OUT;
            snprintf(name, sizeof name, "weights%d", i);
            m->p[2 * i] = ls_variable_new(name, ls_glorot_uniform(LS_F32, LS_DIMS(in, out)), true);
            snprintf(name, sizeof name, "bias%d", i);
            m->p[2 * i + 1] = ls_variable_new(name, ls_zeros(LS_F32, LS_DIMS(out)), true);
            parameters += in * out + out;
        }
    return parameters;
}

/* One replica's part of a step. */
static ls_value *train_step(ls_value *batch, void *user)
{
    const mlp *m = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *h = ls_item(batch, 0);
    for (int i = 0; i < LAYERS; i++) {
        h = ls_dense(h, ls_read(m->p[2 * i]), ls_read(m->p[2 * i + 1]));
        h = i < HIDDEN ? ls_relu(h) : h;
    }
    ls_tensor *losses = ls_sparse_softmax_xent(h, ls_item(batch, 1));
    ls_tensor *loss = ls_scale(ls_sum(losses, LS_ALL_AXES, false), 1.0 / (m->replicas * ROWS));
    ls_minimize(m->adam, tape, loss, 2 * LAYERS, m->p);
    return ls_leaf(loss);
}

static ls_value *draw_batch(int replica, int replicas, void *user)
{
    (void)replica, (void)replicas, (void)user;
    return ls_tensors(2, (ls_tensor *[]){ ls_random_uniform(LS_F32, LS_DIMS(ROWS, IN), 0, 1),
                                          ls_zeros(LS_I32, LS_DIMS(ROWS)) });
}

int reduce_memory_of(int replicas)
{
    mlp m = { .adam = must_have(ls_adam(NULL)), .replicas = replicas };
    ls_strategy *s = must_have(ls_mirrored(
        LS_MIRRORED(.devices = replicas > 1 ? "/cpu:0,/cpu:1" : "/cpu:0", .replicas = replicas)));
    int64_t parameters = 0;
    LS_SCOPE (s)
        parameters = make_parameters(&m);
    long before = resident_kib();
    ls_function *step = must_have(ls_trace(train_step, &m));
    for (int i = 0; i < STEPS; i++)
        LS_FRAME
            must_have(ls_run(s, step, must_have(ls_distribute_values(s, draw_batch, NULL))));
    double peak = 1024. * (double)peak_kib();
    printf(
        "{\"system\":\"lockstep\",\"bench\":\"peak_memory\",\"model\":\"mlp\",\"parameters\":%lld,"
        "\"replicas\":%d,\"devices\":%d,\"rss_before_bytes\":%.0f,\"peak_rss_bytes\":%.0f,"
        "\"bytes_per_parameter\":%.2f}\n",
        (long long)parameters, replicas, replicas > 1 ? 2 : 1, 1024. * (double)before, peak,
        peak / (double)parameters);
    ls_function_free(step);
    ls_optimizer_free(m.adam);
    for (int i = 0; i < 2 * LAYERS; i++)
        ls_variable_free(m.p[i]);
    ls_strategy_free(s);
    return fflush(stdout) ? 1 : 0;
}

void reduce_memory(const reduce_options *o)
{
    (void)o;
    static const char *const replicas[] = { "1", "8" };
    for (int i = 0; i < 2; i++) {
        char *arguments[] = { "reduce", "memory-of", (char *)replicas[i], NULL };
        pid_t child;
        int status = 0;
        fflush(stdout);
        if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0 ||
            waitpid(child, &status, 0) != child || status != 0) {
            fprintf(stderr, "reduce: the process that trains with V = %s failed\n", replicas[i]);
            exit(1);
        }
    }
}
