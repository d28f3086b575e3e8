/*
 * Drives a fuzz target where there is no libFuzzer, and in the test run:
 *
 *     TARGET FILE...                    runs each file
 *     TARGET --mutate N SEED FILE...    runs the files and N changed ones
 *
 * The same N, SEED and files give the same inputs on every machine. The input that
 * is running when the process dies is named by its number, so that it can be made
 * again: --mutate N SEED --only NUMBER FILE... writes it to standard output.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED
#endif
#ifdef SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BYTES ((size_t)1 << 16)

typedef struct blob {
    uint8_t *at;
    size_t size;
} blob;

static long long running; /* the number of the input at work, for crashed() */

static void die(const char *what, const char *name)
{
    fprintf(stderr, "fuzz: %s '%s'\n", what, name);
    exit(2);
}

static void name_input(void)
{
    char text[64];
    int length = snprintf(text, sizeof text, "fuzz: died of input %lld\n", running);
    if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
        _exit(2);
}

#ifdef SANITIZED /* a sanitizer has its own handlers, and a report that is worth having */
static void watch(void)
{
    __sanitizer_set_death_callback(name_input);
}
#else
static void crashed(int signal_number)
{
    name_input();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void watch(void)
{
    signal(SIGABRT, crashed);
    signal(SIGSEGV, crashed);
    signal(SIGFPE, crashed);
}
#endif

static blob load(const char *path)
{
    blob b = { malloc(MAX_BYTES), 0 };
    FILE *f = fopen(path, "rb");
    if (!b.at || !f)
        die("cannot open", path);
    b.size = fread(b.at, 1, MAX_BYTES, f);
    fclose(f);
    return b;
}

/* ---- mutations ---------------------------------------------------------------------- */

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t n)
{
    return n ? (size_t)(next(state) % n) : 0;
}

static void flip_bit(blob *b, uint64_t *state)
{
    if (b->size)
        b->at[below(state, b->size)] ^= (uint8_t)(1u << below(state, 8));
}

static void set_integer(blob *b, uint64_t *state)
{
    static const uint64_t extremes[] = { 0,
                                         1,
                                         2,
                                         7,
                                         8,
                                         9,
                                         0x7f,
                                         0xff,
                                         0xffff,
                                         0x7fffffff,
                                         0x80000000,
                                         0xffffffff,
                                         0x100000000,
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0xffffffffffffffff,
                                         0x4000000000000000,
                                         0x7ff0000000000000 };
    static const size_t widths[] = { 1, 4, 8 };
    size_t width = widths[below(state, 3)];
    uint64_t value = extremes[below(state, sizeof extremes / sizeof extremes[0])];
    if (b->size >= width)
        memcpy(b->at + below(state, b->size - width + 1), &value, width);
}

/* A small step up or down, as a count or an index that is off by one. */
static void nudge(blob *b, uint64_t *state)
{
    if (b->size)
        b->at[below(state, b->size)] += (uint8_t)(1 + 254 * below(state, 2));
}

static void truncate_it(blob *b, uint64_t *state)
{
    b->size = below(state, b->size + 1);
}

/* Some bytes of another input, over or between those that are there. */
static void splice(blob *b, const blob *other, uint64_t *state)
{
    size_t from = below(state, other->size), length = below(state, other->size - from);
    size_t to = below(state, b->size), tail = b->size - to;
    if (below(state, 2)) {
        length = length < tail ? length : tail;
        memcpy(b->at + to, other->at + from, length);
    } else if (b->size + length <= MAX_BYTES) {
        memmove(b->at + to + length, b->at + to, tail);
        memcpy(b->at + to, other->at + from, length);
        b->size += length;
    }
}

static void cut_out(blob *b, uint64_t *state)
{
    size_t from = below(state, b->size), length = below(state, (b->size - from) / 4 + 1);
    memmove(b->at + from, b->at + from + length, b->size - from - length);
    b->size -= length;
}

/* Input `number` of a run: depends on it, the seed and the files alone. Most changes are
 * of single numbers: those get furthest. */
static void mutate(blob *out, const blob *files, size_t n, uint64_t seed, uint64_t number)
{
    uint64_t state = seed * 0x2545f4914f6cdd1du + number;
    const blob *from = &files[below(&state, n)];
    memcpy(out->at, from->at, from->size);
    out->size = from->size;
    for (size_t changes = 1 + below(&state, 4); changes > 0; changes--) {
        size_t kind = below(&state, 16);
        if (kind < 5)
            flip_bit(out, &state);
        else if (kind < 9)
            set_integer(out, &state);
        else if (kind < 13)
            nudge(out, &state);
        else if (kind == 13)
            splice(out, &files[below(&state, n)], &state);
        else if (kind == 14)
            cut_out(out, &state);
        else
            truncate_it(out, &state);
    }
}

/* ---- what the command line asks for ------------------------------------------------------ */

static int run(char **paths, size_t n, uint64_t mutations, uint64_t seed, long long only)
{
    blob *files = calloc(n, sizeof *files), one = { malloc(MAX_BYTES), 0 };
    if (!files || !one.at)
        die("no memory for", "the inputs");
    for (size_t i = 0; i < n; i++)
        files[i] = load(paths[i]);
    if (only >= 0) {
        mutate(&one, files, n, seed, (uint64_t)only);
        fwrite(one.at, 1, one.size, stdout);
    }
    for (size_t i = 0; i < n && only < 0; i++) {
        running = -(long long)i - 1;
        LLVMFuzzerTestOneInput(files[i].at, files[i].size);
    }
    for (uint64_t k = 0; k < mutations && only < 0; k++) {
        running = (long long)k;
        mutate(&one, files, n, seed, k);
        LLVMFuzzerTestOneInput(one.at, one.size);
    }
    if (only < 0)
        printf("%zu files, %llu changed ones\n", n, (unsigned long long)mutations);
    for (size_t i = 0; i < n; i++)
        free(files[i].at);
    free(files);
    free(one.at);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t mutations = 0, seed = 0;
    long long only = -1;
    int at = 1;
    watch();
    if (argc > 4 && strcmp(argv[1], "--mutate") == 0) {
        mutations = strtoull(argv[2], NULL, 10);
        seed = strtoull(argv[3], NULL, 10);
        at = 4;
        if (argc > 6 && strcmp(argv[4], "--only") == 0) {
            only = strtoll(argv[5], NULL, 10);
            at = 6;
        }
    }
    if (at >= argc || argv[at][0] == '-') {
        fprintf(stderr, "usage: %s [--mutate N SEED [--only NUMBER]] FILE...\n", argv[0]);
        return 2;
    }
    return run(argv + at, (size_t)(argc - at), mutations, seed, only);
}
