/*
 * The peer of `lockstep bench allreduce`: MPI_Allreduce (SUM, float, in place) among the ranks of one
 * mpirun, size by size, measured in the same way: all ranks meet and wait for one moment, rank 0's clock
 * times the call, the median of many calls counts; values start anew before they overflow; the sum of the first call is
 * checked. Prints the same JSON lines, with "system":"mpi". Not part of the build: bench/reduce_peers
 * compiles it with mpicc.
 *
 *     mpirun -n 2 mpi_allreduce [-s SECONDS] [BYTES...]       4096 to 256 MiB by 4
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARM_UP = 3, FEWEST_CALLS = 5, MOST_CALLS = 2000 };

static int rank, ranks;
static double seconds = 1; /* of timed calls, at most, for each size */
static double took[MOST_CALLS];

/* Of all processes of this host. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fill(float *x, int count, float value)
{
    for (int i = 0; i < count; i++)
        x[i] = value;
}

static void give_up(const char *what, long bytes)
{
    fprintf(stderr, "mpi_allreduce: rank %d, %ld bytes: %s\n", rank, bytes, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check_sum(const float *x, int count)
{
    for (int i = 0; i < count; i++)
        if (x[i] != (float)(ranks * (ranks + 1) / 2))
            give_up("the sum is wrong", count * 4L);
}

/* Rank 0 decides, before the ranks meet: when the next call begins, a little later than a message
 * takes; 0: no more. */
static double next_moment(int call, double began)
{
    double moment = now() + 20e-6;
    if (call == MOST_CALLS || (call >= FEWEST_CALLS && now() - began > seconds))
        moment = 0;
    MPI_Bcast(&moment, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return moment;
}

/* How many calls were timed. */
static int measure(float *x, int count)
{
    double began = 0;
    fill(x, count, (float)(rank + 1));
    for (int call = -WARM_UP;; call++) {
        if (call == 0)
            began = now();
        MPI_Barrier(MPI_COMM_WORLD);
        double moment = next_moment(call, began), start;
        if (moment == 0)
            return call;
        while ((start = now()) < moment)
            ;
        MPI_Allreduce(MPI_IN_PLACE, x, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        double end = now();
        if (call >= 0)
            took[call] = end - start;
        if (call == -WARM_UP)
            check_sum(x, count);
        if (x[0] > 1e30f)
            fill(x, count, 1);
    }
}

static void measure_size(long bytes)
{
    if (bytes < 4 || bytes % 4 || bytes > 1L << 32)
        give_up("not a multiple of 4 up to 4 GiB", bytes);
    float *x = aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64);
    if (!x)
        give_up("no memory", bytes);
    int calls = measure(x, (int)(bytes / 4));
    free(x);
    qsort(took, (size_t)calls, sizeof *took, ascending);
    if (rank > 0)
        return;
    printf("{\"system\":\"mpi\",\"bench\":\"allreduce\",\"ranks\":%d,\"bytes\":%ld,"
           "\"median_us\":%.7g,\"best_us\":%.7g}\n",
           ranks, bytes, 1e6 * took[calls / 2], 1e6 * took[0]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int at = 1;
    if (argc > 2 && strcmp(argv[1], "-s") == 0) {
        seconds = atof(argv[2]);
        at = 3;
    }
    if (at == argc)
        for (long bytes = 4096; bytes <= 256 << 20; bytes *= 4)
            measure_size(bytes);
    for (; at < argc; at++)
        measure_size(atol(argv[at]));
    MPI_Finalize();
    return 0;
}
