/*
 * Fuzz target: bytes that say they are a stored step. Either they are refused with
 * an error, or they are a graph that keeps every promise of trace/graph.h: it
 * verifies, prints, is stored as the very same bytes, and still verifies after all
 * passes ran over it. No kernel runs. A broken promise aborts.
 *
 * Size and checksum are put right first, or else no change would get past them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/graph_bytes.h"
#include "trace/pass.h"

/* Of constants: a real file may take more, and an input is to be done in no time. */
#define CONSTANT_BYTES ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *promise)
{
    if (holds)
        return;
    fprintf(stderr, "graph_read_fuzz: %s: %s\n", promise, ls_error_report());
    abort();
}

static void sign(uint8_t *bytes, uint64_t size)
{
    uint64_t sum;
    if (size < LS__GRAPH_HEAD + sizeof sum)
        return;
    memcpy(bytes + LS__GRAPH_HEAD - sizeof size, &size, sizeof size);
    sum = ls__graph_checksum(bytes, size - sizeof sum);
    memcpy(bytes + size - sizeof sum, &sum, sizeof sum);
}

static void check_prints(const ls__graph *g)
{
    char *text = ls__graph_text(g), *dot = ls__graph_dot(g);
    require(text && dot, "an accepted graph prints");
    free(text);
    free(dot);
}

static void check_stores(const ls__graph *g, const uint8_t *bytes, size_t size)
{
    void *again = NULL;
    size_t count = 0;
    require(ls__graph_write(g, &again, &count) == LS_OK, "an accepted graph can be stored");
    require(count == size && memcmp(again, bytes, size) == 0, "it is stored as the same bytes");
    free(again);
}

/* A pass may refuse a graph, but not leave a broken one. */
static void check_passes(ls__graph *g)
{
    if (ls__passes_run(g, 0)) {
        require(ls_error() != LS_OK, "a pass that fails says why");
        return;
    }
    require(ls_error_pending() == LS_OK, "a pass that succeeds leaves no error");
    require(ls__graph_verify(g) == LS_OK, "it verifies after the passes");
    check_prints(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size + 1); /* of this size, so that a sanitizer sees its end */
    if (!bytes)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    sign(bytes, size);
    ls__graph *g = ls__graph_read_within(bytes, size, CONSTANT_BYTES);
    if (g) {
        require(ls__graph_verify(g) == LS_OK, "an accepted graph verifies");
        check_prints(g);
        check_stores(g, bytes, size);
        check_passes(g);
        ls__graph_free(g);
    } else {
        require(ls_error() != LS_OK, "what is refused is refused with an error");
    }
    free(bytes);
    return 0;
}
