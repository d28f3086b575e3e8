/* See explain.h. Instructions of one row and the same shapes are one line. */
#include "explain.h"

#include <lockstep/ops.h>
#include <lockstep/profile.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* ---- limits ------------------------------------------------------------------------------------- */

enum { SIDE = 1024, BIG = 16 << 20, TURNS = 5 };

static ls_value *multiply(ls_value *arguments, void *user)
{
    (void)user;
    ls_tensor *x = ls_leaf_tensor(arguments);
    const int64_t begin[] = { 0, 0 }, one[] = { 1, 1 }; /* of the result, no more is copied out */
    return ls_leaf(ls_slice(ls_matmul(x, x), 2, begin, one));
}

static ls_value *add_up(ls_value *arguments, void *user)
{
    (void)user;
    ls_tensor *x = ls_leaf_tensor(arguments);
    return ls_leaf(ls_sum(x, LS_ALL_AXES, false));
}

/* The least seconds that a run takes on all replicas. */
static double time_step(ls_strategy *s, ls_step fn, int rank, const int64_t *dims)
{
    double best = 0;
    ls_function *f = ls_trace(fn, NULL);
    LS_FRAME {
        ls_value *each[64];
        int n = ls_num_replicas(s);
        for (int r = 0; r < n && r < 64; r++)
            each[r] = ls_leaf(ls_full(LS_F32, rank, dims, 1e-3));
        ls_value *arguments = n <= 64 ? ls_per_replica(s, each) : NULL;
        for (int turn = 0; turn <= TURNS && arguments && !ls_error_pending(); turn++)
            LS_FRAME {
                double began = bench_now();
                ls_run(s, f, arguments);
                double took = bench_now() - began;
                if (turn > 0 && (best == 0 || took < best))
                    best = took;
            }
    }
    ls_function_free(f);
    return ls_error_pending() ? 0 : best;
}

explain_limits explain_measure(ls_strategy *s, int devices)
{
    /* Replicas that take turns on a device do so here, too. */
    double turns = (double)ls_num_replicas(s) / devices;
    double product = time_step(s, multiply, LS_DIMS(SIDE, SIDE));
    double sum = time_step(s, add_up, LS_DIMS(BIG));
    return (explain_limits){ .flops = product > 0 ? turns * 2.0 * SIDE * SIDE * SIDE / product : 0,
                             .bytes = sum > 0 ? turns * 4.0 * BIG / sum : 0 };
}

/* ---- rows --------------------------------------------------------------------------------------- */

enum { MOST_ROWS = 512 };

typedef struct row {
    char name[48], shapes[256];
    ls_phase phase;
    int64_t calls;
    double seconds, flops, bytes; /* of all its calls */
} row;

typedef struct rows {
    int count;
    row at[MOST_ROWS];
} rows;

static row *row_of(rows *all, const ls_operator_time *o)
{
    for (int i = 0; i < all->count; i++)
        if (all->at[i].phase == o->phase && strcmp(all->at[i].name, o->name) == 0 &&
            strncmp(all->at[i].shapes, o->shapes, sizeof all->at[i].shapes - 1) == 0)
            return &all->at[i];
    if (all->count == MOST_ROWS)
        return NULL;
    row *r = &all->at[all->count++];
    *r = (row){ .phase = o->phase };
    snprintf(r->name, sizeof r->name, "%s", o->name);
    snprintf(r->shapes, sizeof r->shapes, "%s", o->shapes);
    return r;
}

static ls_status see(const ls_operator_time *o, void *user)
{
    row *r = row_of(user, o);
    if (!r)
        return LS_END; /* the rest is told as one */
    r->calls += o->calls;
    r->seconds += o->seconds;
    r->flops += o->flops * (double)o->calls;
    r->bytes += o->bytes * (double)o->calls;
    return LS_OK;
}

static int by_time(const void *a, const void *b)
{
    double x = ((const row *)a)->seconds, y = ((const row *)b)->seconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The share of the limit it is nearer to. */
static double share_of_limit(const row *r, const explain_limits *l)
{
    double flops = l->flops > 0 ? r->flops / r->seconds / l->flops : 0;
    double bytes = l->bytes > 0 ? r->bytes / r->seconds / l->bytes : 0;
    return flops > bytes ? flops : bytes;
}

static void print_json(const row *r, const explain_limits *l, double all, int64_t steps)
{
    json j = json_open(stdout);
    json_text(&j, "bench", "operator");
    json_text(&j, "name", r->name);
    json_text(&j, "shapes", r->shapes);
    json_text(&j, "phase", ls_phase_name(r->phase));
    json_number(&j, "calls_per_step", (double)r->calls / (double)steps);
    json_number(&j, "us_per_step", 1e6 * r->seconds / (double)steps);
    json_number(&j, "share", r->seconds / all);
    json_number(&j, "gflops", 1e-9 * r->flops / r->seconds);
    json_number(&j, "gigabytes_per_second", 1e-9 * r->bytes / r->seconds);
    json_number(&j, "of_limit", share_of_limit(r, l));
    json_close(&j);
}

static void print_row(const row *r, const explain_limits *l, double all, int64_t steps)
{
    bool product = r->flops > 0;
    double rate = (product ? r->flops : r->bytes) / r->seconds * 1e-9;
    printf("%5.1f %%  %9.1f  %7.1f %s  %4.0f %%  %-8s  %s  %s\n", 100 * r->seconds / all,
           1e6 * r->seconds / (double)steps, rate, product ? "GF/s" : "GB/s",
           100 * share_of_limit(r, l), ls_phase_name(r->phase), r->name, r->shapes);
}

ls_status explain_print(const cli *c, ls_function *step, const explain_limits *limits,
                        double seconds, int64_t steps)
{
    rows *all = calloc(1, sizeof *all);
    if (!all)
        return LS_NO_MEMORY;
    ls_status st = ls_operators_read(step, see, all);
    double known = 0;
    qsort(all->at, (size_t)all->count, sizeof *all->at, by_time);
    if (!c->json && (!st || st == LS_END))
        printf("limits of a device: %.0f GF/s (products), %.1f GB/s (reading memory)\n"
               " share  us a step  at a rate of    limit  phase     operator\n",
               1e-9 * limits->flops, 1e-9 * limits->bytes);
    for (int i = 0; i < all->count && (!st || st == LS_END); i++) {
        known += all->at[i].seconds;
        (c->json ? print_json : print_row)(&all->at[i], limits, seconds, steps);
    }
    if (!c->json && (!st || st == LS_END))
        printf("%5.1f %%  %9.1f  waiting, input, and what is between operators\n"
               "(Times are sums over devices. Rates are of what an operator stands for: Winograd's\n"
               "algorithm and products that leave out zeros do less, and caches give more than\n"
               "memory, so that some are beyond the limit.)\n",
               100 * (seconds - known) / seconds, 1e6 * (seconds - known) / (double)steps);
    free(all);
    return st == LS_END ? LS_OK : st;
}
