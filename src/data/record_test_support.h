/*
 * What tests of records share: TFRecord files made byte by byte, and going through datasets of
 * strings.
 */
#ifndef LS__DATA_RECORD_TEST_SUPPORT_H
#define LS__DATA_RECORD_TEST_SUPPORT_H

#include <lockstep.h>
#include <lockstep/records.h>

#include "data/iterator.h"
#include "os/file_test_support.h"

static inline int clean_dir(void **state)
{
    (void)state;
    ls_error();
    empty_test_dir();
    return 0;
}

static inline void failed_with(ls_status want, const char *word)
{
    if (ls_error_pending() != want || !strstr(ls_error_text(), word))
        fail_msg("wanted %s with '%s', got %s", ls_status_name(want), word, ls_error_report());
    ls_error();
}

/* ---- files --------------------------------------------------------------------------------- */

static inline uint32_t masked_sum(const void *data, size_t n)
{
    uint32_t crc = slow_crc(0x82F63B78u, data, n);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

static inline void add_record(bytes *b, const void *data, size_t n)
{
    size_t at = b->n;
    add_number(b, n, 8);
    add_number(b, masked_sum(b->at + at, 8), 4);
    add_bytes(b, data, n);
    add_number(b, masked_sum(data, n), 4);
}

/* Record `i` of `n` bytes: what is in it depends on both. */
static inline void add_sample_record(bytes *b, int i, size_t n)
{
    uint64_t random = (uint64_t)i << 32 | n;
    unsigned char *data = calloc(n + 8, 1);
    for (size_t k = 0; k < n; k += 8) {
        uint64_t word = random_number(&random);
        memcpy(data + k, &word, 8);
    }
    add_record(b, data, n);
    free(data);
}

/* As a file, packed by hand. */
static inline void put_packed(const char *name, ls_compression kind, const bytes *b)
{
    bytes packed = { 0 };
    if (kind == LS_GZIP)
        add_gzip(&packed, b->at, b->n);
    if (kind == LS_ZLIB)
        add_zlib(&packed, b->at, b->n);
    if (kind == LS_PLAIN)
        put_file(name, b->at, b->n);
    else
        put_file(name, packed.at, packed.n);
    free_bytes(&packed);
}

static const ls_compression last_kind = HAVE_ZLIB ? LS_ZLIB : LS_PLAIN; /* that can be read */

/* ---- going through ------------------------------------------------------------------------- */

/* The next element, a string, in the innermost frame. */
static inline ls_status next_string(ls_iterator *it, const void **data, size_t *n)
{
    ls_value *v = NULL;
    ls_status st = ls_next(it, &v);
    return st ? st : ls_string_at(ls_leaf_tensor(v), 0, data, n);
}

/* All elements that are left as a TFRecord file would have them; errors are counted. */
static inline bytes take_all(ls_iterator *it, int *errors)
{
    bytes all = { 0 };
    *errors = 0;
    for (;;) {
        LS_FRAME {
            const void *data;
            size_t n;
            ls_status st = next_string(it, &data, &n);
            if (st == LS_END)
                return all;
            if (st) {
                assert_int_equal(ls_error(), st);
                ++*errors;
                assert_true(*errors < 1000);
            } else {
                add_record(&all, data, n);
            }
        }
    }
}

/* The same of a dataset, pulled `most` at a time, as stages do. */
static inline bytes pull_all(ls_dataset *d, int most, int *errors, int64_t *skipped)
{
    bytes all = { 0 };
    ls__going going = { 0 };
    ls__it *it = NULL;
    ls__chunk c = { 0 };
    assert_int_equal(ls__it_open(d, &(ls__opening){ .going = &going }, &it), LS_OK);
    *errors = 0;
    for (ls_status st; (st = ls__it_pull(it, most, &c)) != LS_END;) {
        if (st) {
            assert_int_equal(ls_error(), st);
            assert_int_equal(c.n, 0);
            ++*errors;
        } else {
            assert_true(c.n > 0 && c.n <= most);
        }
        for (int i = 0; i < c.n; i++)
            add_record(&all, ls__chunk_datum(&c, i, 0)->data, ls__chunk_datum(&c, i, 0)->bytes);
    }
    *skipped = going.skipped;
    ls__chunk_free(&c);
    ls__it_close(it);
    return all;
}

#endif
