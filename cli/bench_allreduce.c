/*
 * `lockstep bench allreduce`: how long an all-reduce (SUM, f32, in place) of memory takes, size by size.
 *
 * Every rank is a thread pinned to a core of its own. Before each call all ranks meet and wait for one
 * moment, so that none begins a little later than rank 0, whose clock times the call; the median of many
 * calls counts. The peer is measured in the same way (bench/peers/mpi_allreduce.c). The sum of the first call is compared with what it must be, element by
 * element: a time for a wrong sum is worth nothing.
 *
 * Values double with every call of two ranks, so they start anew before they overflow, between calls.
 */
#include <lockstep/collective.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cli.h"
#include "ranks.h"

enum {
    MOST_RANKS = 1024, /* ls_comm's */
    MOST_SIZES = 64,
    WARM_UP = 3,
    FEWEST_CALLS = 5,
    MOST_CALLS = 2000,
};

#define MOST_BYTES ((int64_t)1 << 40)
/* Seconds from rank 0's coming to a meeting until the call: longer than a meeting takes when nobody is
 * late. If somebody is, the moment has passed, and ranks begin as they leave the meeting. */
#define LEAD 5e-6
#define START_ANEW 1e30f /* times MOST_RANKS is still an f32 */

/* ---- the request -------------------------------------------------------------------- */

typedef struct request {
    int64_t ranks;
    ls_algorithm algorithm;
    char transport[8];
    double seconds; /* of timed calls, at most, for each size */
    int n_sizes;
    int64_t bytes[MOST_SIZES];
} request;

static bool read_ranks(const char *text, void *to)
{
    return cli_whole(text, 1, MOST_RANKS, to);
}

#define TRANSPORTS "one of local, shm, tcp, mpi"
static bool read_transport(const char *text, void *to)
{
    static const char *const names[] = { "local", "shm", "tcp", "mpi" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) {
            strcpy(to, text);
            return true;
        }
    return false;
}

#define ALGORITHM_TEXT(name, value, text) " " text
#define ALGORITHM_WORDS LS_ALGORITHM_LIST(ALGORITHM_TEXT)
#define ALGORITHMS "an algorithm; there are" ALGORITHM_WORDS
static bool read_algorithm(const char *text, void *to)
{
#define ALGORITHM_READ(name, value, its_text)                                                      \
    if (strcmp(text, its_text) == 0) {                                                             \
        *(ls_algorithm *)to = name;                                                                \
        return true;                                                                               \
    }
    LS_ALGORITHM_LIST(ALGORITHM_READ)
#undef ALGORITHM_READ
    return false;
}

/* "4K": up to the comma or the end, which `*end` gets. */
static bool read_size(const char *text, char **end, int64_t *out)
{
    static const char units[] = "kmg";
    if (text[0] < '0' || text[0] > '9')
        return false;
    int64_t bytes = strtoll(text, end, 10); /* too many digits give the most there is */
    const char *unit = **end ? strchr(units, **end | 0x20) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (bytes > MOST_BYTES >> shift)
        return false;
    bytes <<= shift;
    *end += unit != NULL;
    *out = bytes;
    return bytes > 0 && bytes % 4 == 0 && (**end == ',' || !**end);
}

#define SIZES "a list of at most 64 sizes like 4K,1M,1048576, multiples of 4 bytes up to 1024G"
static bool read_sizes(const char *text, void *to)
{
    request *r = to;
    char *end = (char *)text;
    for (r->n_sizes = 0; r->n_sizes < MOST_SIZES; text = end + 1) {
        if (!read_size(text, &end, &r->bytes[r->n_sizes++]))
            return false;
        if (!*end)
            return true;
    }
    return false;
}

static void default_request(void *to)
{
    request *r = to;
    *r = (request){ .ranks = 2, .transport = "local", .seconds = 1 };
    for (int64_t bytes = 4096; bytes <= 256 << 20; bytes *= 4)
        r->bytes[r->n_sizes++] = bytes;
}

/* ---- one size -------------------------------------------------------------------------- */

typedef struct measured {
    ls_comm *comm;
    int ranks;
    int64_t count; /* elements */
    double seconds;
    float **data; /* of each rank */
    atomic_bool enough;
    _Atomic double moment; /* when the next call begins */
    _Atomic int64_t wrong; /* an element that was not the sum; -1: none */
    /* Rank 0's: */
    int calls;
    double began, took[MOST_CALLS];
} measured;

static void fill(float *x, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = value;
}

/* Rank r gives r + 1, so the sum of n ranks is n (n + 1) / 2, exactly. */
static void check_sum(measured *m, const float *x)
{
    const float sum = (float)(m->ranks * (m->ranks + 1) / 2);
    for (int64_t i = 0; i < m->count; i++)
        if (x[i] != sum) {
            m->wrong = i;
            return;
        }
}

/* Rank 0 only, before a call that would be timed as number m->calls. */
static bool is_enough(measured *m, int call)
{
    if (call == 0)
        m->began = bench_now();
    return m->wrong >= 0 || m->calls == MOST_CALLS ||
           (m->calls >= FEWEST_CALLS && bench_now() - m->began > m->seconds);
}

/* `enough` and `moment` are written by rank 0 before a meeting and read by all after it; rank 0 writes
 * them again after a collective that all others have entered, so after they have read them. */
static ls_status measure_rank(cli_ranks *ranks, int rank, void *user)
{
    measured *m = user;
    float *x = m->data[rank];
    fill(x, m->count, (float)(rank + 1));
    for (int call = -WARM_UP;; call++) {
        if (rank == 0) {
            m->enough = is_enough(m, call);
            m->moment = bench_now() + LEAD;
        }
        if (!cli_ranks_meet(ranks))
            return LS_CANCELLED;
        if (m->enough)
            return LS_OK;
        double moment = m->moment, start;
        while ((start = bench_now()) < moment)
            ;
        ls_status st = ls_comm_all_reduce(m->comm, rank, LS_SUM, LS_F32, x, m->count);
        double took = bench_now() - start;
        if (st) {
            ls_comm_abort(m->comm, st, ls_error_text()); /* so that all tell the same */
            return st;
        }
        if (rank == 0 && call >= 0)
            m->took[m->calls++] = took;
        if (call == -WARM_UP)
            check_sum(m, x);
        if (x[0] > START_ANEW)
            fill(x, m->count, 1);
    }
}

static bool make_data(measured *m)
{
    size_t bytes = ((size_t)m->count * sizeof(float) + 63) / 64 * 64;
    m->data = calloc((size_t)m->ranks, sizeof *m->data);
    for (int r = 0; m->data && r < m->ranks; r++)
        if (!(m->data[r] = aligned_alloc(64, bytes)))
            return false;
    return m->data != NULL;
}

static void free_data(measured *m)
{
    for (int r = 0; m->data && r < m->ranks; r++)
        free(m->data[r]);
    free(m->data);
    m->data = NULL;
}

/* An exit status. */
static int measure(const cli *c, const request *r, int64_t bytes, measured *m)
{
    m->count = bytes / (int64_t)sizeof(float);
    m->seconds = r->seconds;
    m->wrong = -1;
    m->calls = 0;
    if (!make_data(m))
        return cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "ask for smaller sizes or fewer ranks",
                         "no memory for %d ranks of %lld bytes", m->ranks, (long long)bytes);
    cli_failure why;
    if (!cli_ranks_run(m->ranks, measure_rank, m, &why))
        return cli_error(c, EXIT_FAILED, why.code, why.hint, "%s",
                         why.text[0] ? why.text : ls_status_text(why.code));
    if (m->wrong >= 0)
        return cli_error(c, EXIT_FAILED, LS_CORRUPT, "please report this",
                         "all-reduce of %lld bytes: element %lld is not the sum", (long long)bytes,
                         (long long)m->wrong);
    return EXIT_DONE;
}

/* ---- the results --------------------------------------------------------------------------- */

static const char *size_text(int64_t bytes, char *out, size_t room)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
    int unit = 0;
    for (; unit < 3 && bytes % 1024 == 0; unit++)
        bytes /= 1024;
    snprintf(out, room, "%lld %s", (long long)bytes, units[unit]);
    return out;
}

static void print_head(void)
{
    printf("%14s %14s %14s %10s  %s\n", "size", "median us", "best us", "GB/s", "algorithm");
}

static void print_line(const cli *c, const request *r, int64_t bytes, measured *m)
{
    const char *algorithm = ls_algorithm_name(ls_comm_algorithm(m->comm, bytes));
    double median = bench_median(m->took, m->calls), best = m->took[0];
    if (c->json) {
        json j = json_open(stdout);
        json_text(&j, "bench", "allreduce");
        json_text(&j, "transport", r->transport);
        json_whole(&j, "ranks", m->ranks);
        json_whole(&j, "bytes", bytes);
        json_number(&j, "median_us", 1e6 * median);
        json_number(&j, "best_us", 1e6 * best);
        json_text(&j, "algorithm", algorithm);
        json_close(&j);
        return;
    }
    char size[32];
    printf("%14s %14.2f %14.2f %10.2f  %s\n", size_text(bytes, size, sizeof size), 1e6 * median,
           1e6 * best, 1e-9 * (double)bytes / median, algorithm);
    fflush(stdout);
}

static int measure_all(const cli *c, const request *r)
{
    measured *m = calloc(1, sizeof *m);
    if (!m)
        return cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "no memory for the times");
    m->ranks = (int)r->ranks;
    m->comm = ls_comm_local(LS_COMM(.ranks = m->ranks, .algorithm = r->algorithm));
    int status = m->comm ? EXIT_DONE : cli_failed(c);
    if (!c->json && status == EXIT_DONE)
        print_head();
    for (int i = 0; i < r->n_sizes && status == EXIT_DONE; i++) {
        status = measure(c, r, r->bytes[i], m);
        if (status == EXIT_DONE)
            print_line(c, r, r->bytes[i], m);
        free_data(m);
    }
    ls_comm_free(m->comm);
    free(m);
    return status == EXIT_DONE ? cli_done(c) : status;
}

static int run(const cli *c, void *request_, int n, char **positional)
{
    (void)n, (void)positional;
    const request *r = request_;
    if (strcmp(r->transport, "local") != 0)
        return cli_error(c, EXIT_USAGE, LS_UNSUPPORTED, "use --transport local",
                         "transport '%s': this build has local only so far", r->transport);
    return measure_all(c, r);
}

static const cli_option options[] = {
    { "--ranks", "N", "threads that take part (2)", "a whole number from 1 to 1024", read_ranks,
      .at = offsetof(request, ranks) },
    { "--transport", "NAME", "local; shm, tcp and mpi are to come (local)", TRANSPORTS,
      read_transport, .at = offsetof(request, transport), .values = "local" },
    { "--bytes", "LIST", "sizes like 4K,1M,1048576 (4K to 256M by 4)", SIZES, read_sizes, .at = 0 },
    { "--algorithm", "NAME", "auto, direct, ring... (auto)", ALGORITHMS, read_algorithm,
      .at = offsetof(request, algorithm), .values = ALGORITHM_WORDS },
    { "--seconds", "X", "calls are timed at most so long, for each size (1)", CLI_SECONDS_EXPECTED,
      cli_seconds, .at = offsetof(request, seconds) },
};

const command cli_bench_allreduce = {
    .name = "allreduce",
    .help = "all-reduce of memory, size by size",
    .about = "Times all-reduce (SUM, f32, in place) among threads, each pinned to a core of its "
             "own. The median of many calls counts; sums are checked.",
    .examples = "Two threads, all sizes:\n\n  lockstep bench allreduce\n\n"
                "How the ring does with 1 MiB on four, for a script:\n\n"
                "  lockstep bench allreduce --ranks 4 --bytes 1M --algorithm ring --json",
    .environment = "LOCKSTEP_ISA",
    CLI_OPTIONS(options),
    .request_bytes = sizeof(request),
    .defaults = default_request,
    .run = run,
};
