/*
 * A schedule as text: what each rank has of each chunk, at the start, after its folds and after
 * each round. A cell shows the largest sums, each as the replicas in it: "{01}{2}" is the sum of
 * replicas 0 and 1, and replica 2 apart; above ten replicas "{0-7}{8}". A chain of the ring names
 * its ranks in the order in which they were added. Follows the hops as they stand and proves
 * nothing (verify.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collective/placement.h"
#include "collective/schedule.h"

/* What one rank has of one chunk. */
typedef struct cell {
    uint32_t *nodes;
    int n;
} cell;

typedef struct board {
    const ls__schedule *s;
    cell *cells; /* rank after rank, chunk after chunk */
    int *at;     /* per rank: its next hop */
    int width;   /* of the widest cell so far */
    FILE *f;     /* NULL: nothing is written, to learn the width */
} board;

static cell *cell_of(const board *b, int rank, int chunk)
{
    return &b->cells[(size_t)rank * (size_t)b->s->chunks + (size_t)chunk];
}

/* In the order of replicas. */
static bool put(board *b, int rank, uint32_t chunk, uint32_t node)
{
    bool every = chunk == LS__EVERY_CHUNK;
    int end = every ? b->s->chunks : (int)chunk + 1;
    for (int i = every ? 0 : (int)chunk; i < end; i++) {
        cell *c = cell_of(b, rank, i);
        uint32_t *more = realloc(c->nodes, (size_t)(c->n + 1) * sizeof *more);
        if (!more)
            return false;
        c->nodes = more;
        int at = c->n++;
        for (; at > 0 && ls__tree_first(more[at - 1]) > ls__tree_first(node); at--)
            more[at] = more[at - 1];
        more[at] = node;
    }
    return true;
}

/* Whether `node` is in the sum `of`: then it is not shown. */
static bool within(const ls__schedule_spec *spec, uint32_t node, uint32_t of)
{
    if (node == of)
        return false;
    if (!(of & LS__CHAIN))
        return ls__tree_first(node) >= ls__tree_first(of) &&
               ls__tree_end(node, spec->replicas) <= ls__tree_end(of, spec->replicas);
    int skipped = ls__chain_first(node) - ls__chain_first(of);
    if (skipped < 0)
        skipped += spec->ranks;
    return skipped + ls__chain_count(node) <= ls__chain_count(of);
}

void ls__node_text(const ls__schedule_spec *spec, uint32_t chunk, uint32_t node, char *out,
                   size_t size)
{
    bool chain = node & LS__CHAIN;
    int first = chain ? ls__chain_first(node) : ls__tree_first(node);
    int n = chain ? ls__chain_count(node) : ls__tree_end(node, spec->replicas) - first;
    size_t used = (size_t)snprintf(out, size, "{");
    for (int i = 0; i < n && used < size; i++) {
        if (spec->replicas > 10 && i > 0 && i < n - 1)
            continue; /* first and last */
        int x = chain ? ls__ring_rank(spec, chunk, (first + i) % spec->ranks) : first + i;
        used += (size_t)snprintf(out + used, size - used, "%s%d",
                                 spec->replicas > 10 && i > 0 ? "-" : "", x);
    }
    if (used < size)
        snprintf(out + used, size - used, "}");
}

/* Writes a cell, or measures it. */
static void print_cell(board *b, int rank, int chunk)
{
    const cell *c = cell_of(b, rank, chunk);
    int width = 0;
    for (int i = 0; i < c->n; i++) {
        bool shown = true;
        for (int j = 0; j < c->n && shown; j++)
            shown = !within(&b->s->spec, c->nodes[i], c->nodes[j]);
        char text[64];
        ls__node_text(&b->s->spec, (uint32_t)chunk, c->nodes[i], text, sizeof text);
        if (shown)
            width += b->f ? fprintf(b->f, "%s", text) : (int)strlen(text);
    }
    if (b->f)
        fprintf(b->f, "%*s", b->width - width + 2, "");
    else if (width > b->width)
        b->width = width;
}

/* A row per rank; of one chunk a row for all, a column per rank. */
static void print(board *b, const char *when)
{
    bool across = b->s->chunks == 1;
    for (int r = 0; r < b->s->spec.ranks; r++) {
        if (b->f && !across)
            fprintf(b->f, "%-8s r%-4d ", r == 0 ? when : "", r);
        else if (b->f && r == 0)
            fprintf(b->f, "%-8s ", when);
        for (int c = 0; c < b->s->chunks; c++)
            print_cell(b, r, c);
        if (b->f && (!across || r + 1 == b->s->spec.ranks))
            fprintf(b->f, "\n");
    }
}

static void print_title(const board *b)
{
    const ls__schedule_spec *spec = &b->s->spec;
    fprintf(b->f, "%s, %d ranks, %d replicas", ls__algorithm_name(spec->algorithm), spec->ranks,
            spec->replicas);
    if (spec->root)
        fprintf(b->f, ", root %d", spec->root);
    if (spec->stop_at_root)
        fprintf(b->f, ", stops there");
    if (spec->subdivisions > 1)
        fprintf(b->f, ", %d subdivisions", spec->subdivisions);
    if (spec->ranks_per_host < spec->ranks)
        fprintf(b->f, ", %d ranks per host", spec->ranks_per_host);
    fprintf(b->f, "\n");
}

static void print_head(board *b)
{
    const ls__schedule *s = b->s;
    bool across = s->chunks == 1;
    int columns = across ? s->spec.ranks : s->chunks;
    const char *what = across ? "rank" : "chunk";
    char last[32];
    int width = snprintf(last, sizeof last, "%s %d", what, columns - 1);
    b->width = width > b->width ? width : b->width;
    if (!b->f)
        return;
    print_title(b);
    fprintf(b->f, "%*s", across ? 9 : 15, "");
    for (int i = 0; i < columns; i++)
        fprintf(b->f, "%s %-*d", what, b->width + 1 - (int)strlen(what), i);
    fprintf(b->f, "\n");
}

/* All hops of a round, or the folds alone. */
static bool follow(board *b, uint32_t round, bool folds)
{
    for (int r = 0; r < b->s->spec.ranks; r++)
        for (; b->at[r] < b->s->n_hops[r]; b->at[r]++) {
            ls__hop h = b->s->hops[r][b->at[r]];
            if (h.round != round || (folds && h.chunk != LS__EVERY_CHUNK))
                break;
            if (h.act != LS__ACT_SEND && !put(b, r, h.chunk, h.node))
                return false;
        }
    return true;
}

static bool start(board *b)
{
    const ls__schedule_spec *spec = &b->s->spec;
    bool ring = spec->algorithm == LS__ALGORITHM_RING, ok = true;
    for (int c = 0; c < b->s->chunks; c++)
        for (int v = 0; v < spec->replicas && ok; v++)
            if (ring)
                ok = put(b, ls__ring_rank(spec, (uint32_t)c, v), (uint32_t)c, ls__chain(v, 1));
            else
                ok = put(b, ls__block_of(spec->replicas, spec->ranks, v), (uint32_t)c,
                         ls__tree_node_at(0, v));
    return ok;
}

static bool print_all(board *b)
{
    const ls__schedule *s = b->s;
    print_head(b);
    if (!start(b))
        return false;
    print(b, "start");
    bool folds = false;
    for (int r = 0; r < s->spec.ranks; r++)
        folds = folds || (s->n_hops[r] && s->hops[r][0].chunk == LS__EVERY_CHUNK);
    if (folds && !follow(b, 0, true))
        return false;
    if (folds)
        print(b, "folds");
    for (int t = 0; t < s->rounds; t++) {
        char when[32];
        snprintf(when, sizeof when, "round %d", t);
        if (!follow(b, (uint32_t)t, false))
            return false;
        print(b, when);
    }
    return true;
}

static bool measure_or_print(board *b)
{
    const ls__schedule *s = b->s;
    size_t cells = (size_t)s->spec.ranks * (size_t)s->chunks;
    b->cells = calloc(cells, sizeof *b->cells);
    b->at = calloc((size_t)s->spec.ranks, sizeof *b->at);
    bool ok = b->cells && b->at && print_all(b);
    for (size_t i = 0; b->cells && i < cells; i++)
        free(b->cells[i].nodes);
    free(b->cells);
    free(b->at);
    return ok;
}

/* Columns are padded: no blanks at the ends of lines. */
static void trim(char *text)
{
    char *out = text;
    for (char *c = text; *c; c++) {
        if (*c == '\n')
            while (out > text && out[-1] == ' ')
                out--;
        *out++ = *c;
    }
    *out = '\0';
}

char *ls__schedule_text(const ls__schedule *s)
{
    size_t size;
    char *text = NULL;
    board b = { .s = s };
    bool ok = measure_or_print(&b);
    b.f = ok ? open_memstream(&text, &size) : NULL;
    if (b.f) {
        ok = measure_or_print(&b);
        ok = !fclose(b.f) && ok;
    }
    if (ok && text) {
        trim(text);
        return text;
    }
    free(text);
    ls__fail_memory("a schedule's text", (size_t)s->spec.ranks * (size_t)s->chunks * sizeof(cell));
    return NULL;
}
