/*
 * What adding up over 2 ranks costs, beside the least it could:
 *
 *     bare     all-reduce of 2 ranks beside a bare sum by two pinned threads
 *     adam     reduce with Adam in the same pass, beside two ways to do one after the other
 *     memory   peak memory of a training step of an mlp of 10^8 parameters, V = 1 and 8
 *
 *     reduce [-s SECONDS] [-m BYTES] [WHAT...]      all; rounds of SECONDS (0.2), sums up to BYTES
 *
 * Prints one JSON object a line, as bench/eager.c does; bench/reduce_table.py makes tables of them.
 */
#include "reduce.h"

#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    void (*run)(const reduce_options *o);
} parts[] = { { "bare", reduce_bare }, { "adam", reduce_adam }, { "memory", reduce_memory } };

enum { PARTS = sizeof parts / sizeof parts[0] };

static int usage(void)
{
    fprintf(stderr, "usage: reduce [-s SECONDS] [-m BYTES] [bare] [adam] [memory]\n");
    return 2;
}

static int find(const char *name)
{
    for (int i = 0; i < PARTS; i++)
        if (strcmp(name, parts[i].name) == 0)
            return i;
    return -1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "memory-of") == 0) /* reduce_memory starts us so */
        return reduce_memory_of(atoi(argv[2]));
    reduce_options o = { .seconds = 0.2, .largest = 256 << 20 };
    int option;
    while ((option = getopt(argc, argv, "s:m:")) != -1) {
        if (option == 's')
            o.seconds = atof(optarg);
        else if (option == 'm')
            o.largest = atoll(optarg);
        if (option == '?' || !(o.seconds > 0) || o.largest < 4096)
            return usage();
    }
    for (int i = optind; i < argc; i++)
        if (find(argv[i]) < 0)
            return usage();
    for (int i = 0; i < PARTS && optind == argc; i++)
        parts[i].run(&o);
    for (int i = optind; i < argc; i++)
        parts[find(argv[i])].run(&o);
    return 0;
}
