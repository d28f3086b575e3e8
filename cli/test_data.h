/*
 * For tests of data: a folder that goes away again, files in it, what was told on stderr, and
 * what a dataset gives.
 */
#ifndef LOCKSTEP_CLI_TEST_DATA_H
#define LOCKSTEP_CLI_TEST_DATA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <ftw.h>
#include <lockstep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "data.h"

static const cli train_cli = { .name = "lockstep train" };

/* ---- a folder -------------------------------------------------------------------------------- */

static char folder[64];

static inline int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/lockstep-cli-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s, (void)kind, (void)at;
    return remove(path);
}

static inline int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* The path of a name in the folder; the eighth later call reuses it. */
static inline const char *in_folder(const char *name)
{
    static char paths[8][256];
    static int at;
    char *path = paths[at++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline const char *write_file(const char *name, const void *bytes, size_t count)
{
    const char *path = in_folder(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, count, f), count);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* ---- stderr ----------------------------------------------------------------------------------- */

static int usual_stderr = -1;

static inline void hear(void)
{
    fflush(stderr);
    usual_stderr = dup(2);
    assert_non_null(freopen(in_folder("stderr"), "w+", stderr));
}

/* All that was told since; until the next call. */
static inline const char *heard(void)
{
    static char text[8192];
    fflush(stderr);
    rewind(stderr);
    text[fread(text, 1, sizeof text - 1, stderr)] = '\0';
    dup2(usual_stderr, 2);
    close(usual_stderr);
    clearerr(stderr);
    return text;
}

/* One line, exactly this, of which %s stands for the folder. */
static inline void assert_heard(const char *format)
{
    char expected[4096], *to = expected;
    for (const char *at = format; *at; at++)
        if (at[0] == '%' && at[1] == 's') {
            to += sprintf(to, "%s", folder);
            at++;
        } else {
            *to++ = *at;
        }
    strcpy(to, "\n");
    assert_string_equal(heard(), expected);
}

/* ---- what datasets give ----------------------------------------------------------------------- */

enum { MOST = 4096 };

/* What identifies the samples of an epoch, in order. */
typedef struct seen {
    int64_t ids[MOST], batches, n;
} seen;

typedef int64_t (*identify)(const void *x, const void *y, int64_t row);

static inline void note(seen *s, ls_value *batch, identify id)
{
    ls_tensor *x = ls_item(batch, 0), *y = ls_item(batch, 1);
    const void *xs = ls_data(x), *ys = ls_data(y);
    assert_non_null(xs);
    assert_non_null(ys);
    assert_int_equal(ls_dim(x, 0), ls_dim(y, 0));
    for (int64_t i = 0; i < ls_dim(x, 0); i++) {
        assert_true(s->n < MOST);
        s->ids[s->n++] = id(xs, ys, i);
    }
    s->batches++;
}

static inline void go_through(ls_iterator *it, int64_t most_batches, seen *out, identify id)
{
    *out = (seen){ 0 };
    ls_status st = LS_OK;
    while (!st && out->batches < most_batches)
        LS_FRAME {
            ls_value *batch;
            st = ls_next(it, &batch);
            if (!st)
                note(out, batch, id);
        }
    assert_true(st == LS_OK || st == LS_END);
    assert_int_equal(ls_error(), LS_OK);
}

static inline int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static inline bool same_order(const seen *a, const seen *b)
{
    return a->n == b->n && memcmp(a->ids, b->ids, (size_t)a->n * sizeof *a->ids) == 0;
}

/* 0, 1, ... n - 1, each once. */
static inline void assert_each_once(const seen *s, int64_t n)
{
    static int64_t sorted[MOST];
    memcpy(sorted, s->ids, sizeof sorted);
    qsort(sorted, (size_t)s->n, sizeof *sorted, by_number);
    assert_int_equal(s->n, n);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(sorted[i], i);
}

static inline data_sets open_data(const data_request *r)
{
    data_sets sets;
    int status = -1;
    assert_true(data_open(&train_cli, r, &sets, &status));
    return sets;
}

static inline void assert_refused(const data_request *r, const char *line)
{
    data_sets sets;
    int status = -1;
    hear();
    bool opened = data_open(&train_cli, r, &sets, &status);
    assert_heard(line);
    assert_false(opened);
    assert_int_equal(status, EXIT_USAGE);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static inline int64_t open_and_count(const data_request *r)
{
    data_sets sets = open_data(r);
    const int64_t n = (sets.train_samples + r->global_batch - 1) / r->global_batch;
    assert_true(n > 1);
    data_close(&sets);
    return n;
}

static inline void first_epoch(const data_request *r, seen *out, identify id)
{
    data_sets sets = open_data(r);
    ls_iterator *it = ls_iterate(sets.train);
    go_through(it, MOST, out, id);
    ls_iterator_free(it);
    data_close(&sets);
}

/* Three epochs of training data: each has every sample once, all in other orders. */
static inline void assert_epochs(const data_request *r, int64_t samples, identify id)
{
    static seen epochs[3];
    data_sets sets = open_data(r);
    ls_iterator *it = ls_iterate(sets.train);
    for (int e = 0; e < 3; e++) {
        go_through(it, MOST, &epochs[e], id);
        assert_each_once(&epochs[e], samples);
        assert_int_equal(epochs[e].batches, ls_cardinality(sets.train));
        assert_int_equal(ls_rewind(it), LS_OK);
    }
    assert_int_equal(sets.train_samples, samples);
    assert_false(same_order(&epochs[0], &epochs[1]));
    assert_false(same_order(&epochs[1], &epochs[2]));
    assert_false(same_order(&epochs[0], &epochs[2]));
    ls_iterator_free(it);
    data_close(&sets);
}

/* From every place of the second epoch another process goes on as this one did, and has the same third
 * epoch. */
static inline void assert_goes_on(const data_request *r, identify id)
{
    static seen head, rest, next, same_rest, same_next;
    const int64_t batches = 1 + open_and_count(r);
    for (int64_t stop = 0; stop < batches; stop++)
        LS_FRAME {
            data_sets sets = open_data(r);
            ls_iterator *it = ls_iterate(sets.train);
            go_through(it, MOST, &head, id);
            assert_int_equal(ls_rewind(it), LS_OK);
            go_through(it, stop, &head, id);
            ls_tensor *position = ls_position(it);
            assert_non_null(position);
            go_through(it, MOST, &rest, id);
            assert_int_equal(ls_rewind(it), LS_OK);
            go_through(it, MOST, &next, id);
            ls_iterator_free(it);
            data_close(&sets);

            sets = open_data(r);
            it = ls_iterate(sets.train);
            assert_int_equal(ls_seek(it, position), LS_OK);
            go_through(it, MOST, &same_rest, id);
            assert_int_equal(ls_rewind(it), LS_OK);
            go_through(it, MOST, &same_next, id);
            assert_true(same_order(&rest, &same_rest));
            assert_true(same_order(&next, &same_next));
            assert_false(same_order(&head, &next));
            ls_iterator_free(it);
            data_close(&sets);
        }
}

#endif
