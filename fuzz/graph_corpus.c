/*
 * graph_corpus DIR: writes the sample graphs there, for fuzz/corpus/graph.
 */
#include <stdio.h>
#include <stdlib.h>

#include "trace/graph_samples.h"

static int write_sample(const char *folder, int i)
{
    char path[4096];
    void *bytes = NULL;
    size_t size = 0;
    ls__graph *g = sample(i);
    if (!g || ls__graph_write(g, &bytes, &size)) {
        fprintf(stderr, "graph_corpus: %s: %s\n", samples[i].name, ls_error_report());
        return 2;
    }
    ls__graph_free(g);
    snprintf(path, sizeof path, "%s/%s.bin", folder, samples[i].name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0) {
        fprintf(stderr, "graph_corpus: cannot write '%s'\n", path);
        return 2;
    }
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < SAMPLES && !failed; i++)
        failed = write_sample(argv[1], i);
    return failed;
}
