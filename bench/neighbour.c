/*
 * A loud neighbour, on purpose: keeps one core at a third of its speed for 3 to 8 ms now and then,
 * as another guest of a machine does, to see what that does to who shares it.
 *
 *     build/bench/neighbour CORE [QUIET_MS [SECONDS [SEED]]]    (40, 60, 1)
 *
 * Between bursts are QUIET_MS in the mean. Bursts are 100 us of work and 50 us of sleep, by turns,
 * at a real-time priority, which takes the rights of root.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WORK_NS = 100000, SLEEP_NS = 50000, PRIORITY = 10 };
enum { LEAST_BURST_MS = 3, MOST_BURST_MS = 8 };

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void doze(int64_t ns)
{
    nanosleep(&(struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 }, NULL);
}

static void burst(int64_t ns)
{
    for (const int64_t end = now() + ns; now() < end; doze(SLEEP_NS))
        for (const int64_t stop = now() + WORK_NS; now() < stop;)
            ;
}

/* Argument `i` from `least` to `most`; `otherwise` where there is none. */
static long number(int count, char **words, int i, long least, long most, long otherwise)
{
    if (i >= count)
        return otherwise;
    char *end;
    const long n = strtol(words[i], &end, 10);
    if (end != words[i] && !*end && n >= least && n <= most)
        return n;
    fprintf(stderr, "neighbour: argument %d is '%s', wants a number from %ld to %ld\n", i, words[i],
            least, most);
    exit(2);
}

/* From now on this process runs there, before all others. */
static bool take_core(int core)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        perror("neighbour: this core");
    else if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ PRIORITY }))
        perror("neighbour: a real-time priority (are you root?)");
    else
        return true;
    return false;
}

int main(int count, char **words)
{
    if (count < 2 || count > 5) {
        fprintf(stderr, "usage: neighbour CORE [QUIET_MS [SECONDS [SEED]]]\n");
        return 2;
    }
    const int core = (int)number(count, words, 1, 0, CPU_SETSIZE - 1, 0);
    const int64_t quiet = number(count, words, 2, 1, 60000, 40) * INT64_C(1000000);
    const int64_t seconds = number(count, words, 3, 1, 86400, 60);
    srand((unsigned)number(count, words, 4, 0, RAND_MAX, 1));
    if (!take_core(core))
        return 1;
    for (const int64_t end = now() + seconds * INT64_C(1000000000); now() < end;) {
        doze((int64_t)((double)quiet * 2 * rand() / RAND_MAX));
        burst((LEAST_BURST_MS + rand() % (MOST_BURST_MS - LEAST_BURST_MS + 1)) * INT64_C(1000000));
    }
    return 0;
}
