/*
 * Trains a little with its phases recorded, for profile_test.py:
 *
 *     profile_writer DEVICES REPLICAS STEPS FILE
 *
 * Prints, as JSON, how long it took from the start of the recording to its end and, for each
 * replica, the seconds of each phase in between, as ls_phase_seconds has them.
 */
#include <lockstep.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 16, WIDTH = 32, MOST = 16 };

typedef struct net {
    ls_variable *w;
    ls_optimizer *sgd;
} net;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static ls_value *train(ls_value *x, void *user)
{
    net *n = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *loss =
        ls_mean(ls_square(ls_matmul(ls_leaf_tensor(x), ls_read(n->w))), LS_ALL_AXES, false);
    ls_tensor *seen = ls_require_finite(loss);
    ls_minimize(n->sgd, tape, loss, 1, &n->w);
    return ls_leaf(seen);
}

/* Every batch is waited for. */
static ls_value *slowly(ls_value *batch, void *user)
{
    (void)user;
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return batch;
}

static ls_dataset *batches(ls_strategy *s, int count)
{
    ls_tensor *rows = ls_full(LS_F32, LS_DIMS((int64_t)count * ROWS, WIDTH), 0.1);
    return ls_distribute(s, ls_map(ls_batch(ls_slices(ls_leaf(rows)), ROWS), LS_MAP(.fn = slowly)));
}

static void steps(ls_strategy *s, ls_function *f, int count)
{
    LS_FRAME
        LS_FOR_EACH (batch, batches(s, count))
            ls_run(s, f, batch);
}

static void print_spent(const ls_strategy *s, double before[MOST][LS_PHASES], double took)
{
    printf("{\"took\": %.9f, \"spent\": [", took);
    for (int r = 0; r < ls_num_replicas(s); r++) {
        double after[LS_PHASES];
        ls_phase_seconds(s, r, after);
        printf("%s{", r ? ", " : "");
        for (int i = 0; i < LS_PHASES; i++)
            printf("%s\"%s\": %.9f", i ? ", " : "", ls_phase_name((ls_phase)i),
                   after[i] - before[r][i]);
        printf("}");
    }
    printf("]}\n");
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    ls_strategy *s =
        ls_mirrored(LS_MIRRORED(.devices = argv[1], .replicas = atoi(argv[2]), .prefetch = -1));
    net n = { .sgd = ls_sgd(LS_SGD(.rate = 0.1)) };
    LS_FRAME
        LS_SCOPE (s)
            n.w = ls_variable_new("w", ls_full(LS_F32, LS_DIMS(WIDTH, WIDTH), 0.5), true);
    ls_function *f = ls_trace_with(LS_TRACE(.name = "train"), train, &n);
    steps(s, f, 2);
    double before[MOST][LS_PHASES], begun = now();
    for (int r = 0; r < ls_num_replicas(s) && r < MOST; r++)
        ls_phase_seconds(s, r, before[r]);
    ls_profile_start(s);
    steps(s, f, atoi(argv[3]));
    double took = now() - begun;
    ls_profile_write(s, argv[4]);
    print_spent(s, before, took);
    ls_function_free(f);
    ls_variable_free(n.w);
    ls_optimizer_free(n.sgd);
    ls_strategy_free(s);
    if (!ls_error_pending())
        return 0;
    fprintf(stderr, "%s\n", ls_error_report());
    return 1;
}
