/*
 * Fuzz target: bytes that say they are a record of a cache, or the structure of its elements. A checksum
 * is before both in a file, and is left out here, or else no change would get past it. What is
 * accepted is written again, to as many bytes, and read again.
 */
#include "data/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/nest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *promise)
{
    if (holds)
        return;
    fprintf(stderr, "cache_fuzz: %s: %s\n", promise, ls_error_report());
    abort();
}

static void check_structure(const uint8_t *data, size_t size)
{
    ls__bytes_in from = { data, data + size };
    ls_value *value = NULL, *again = NULL;
    if (ls__nest_get(&from, &value)) {
        require(ls_error() != LS_OK, "what is refused is refused with an error");
        return;
    }
    ls__bytes_out to = { 0 };
    ls__nest_put(&to, value);
    from = (ls__bytes_in){ to.at, to.at + to.used };
    require(ls__nest_get(&from, &again) == LS_OK && from.at == from.end, "it is written");
    require(ls_same_structure(value, again) == LS_OK, "it is the same");
    ls_value_drop(value);
    ls_value_drop(again);
    ls__bytes_out_free(&to);
}

/* The first byte of an input tells how many leaves and which positions. */
static void check_record(unsigned how, const uint8_t *data, size_t size)
{
    const ls__cache_head h = { .leaves = (int)(how & 3),
                               .words = 2,
                               .positions = how & 4 ? LS__CACHE_WORDS : LS__CACHE_MARKS };
    uint8_t *bytes = malloc(size + 8); /* of this size, so that a sanitizer sees its end */
    ls__chunk c = { 0 };
    ls__marks marks = { 0 };
    if (!bytes || ls__chunk_room(&c, 1, h.leaves, 1 + h.words))
        exit(2);
    bytes = realloc(bytes, size ? size : 1);
    memcpy(bytes, data, size);
    ls_status st = ls__record_read(&h, bytes, size, 5, NULL, &c, &marks);
    require((st == LS_OK) == (c.n == 1), "an element is there or not");
    require(ls_error_pending() == LS_OK, "whoever keeps the record says what is wrong");
    if (!st) {
        const ls__mark *mark = ls__marks_find(&marks, 6);
        require(ls__record_size(&h, &c, 0, mark) == size, "it is written to as many bytes");
        uint8_t *again = malloc(size);
        if (!again)
            exit(2);
        ls__record_write(&h, &c, 0, mark, again);
        ls__chunk_clear(&c);
        require(!ls__record_read(&h, again, size, 5, NULL, &c, &marks), "it is read again");
        ls__chunk_clear(&c);
        free(again);
    }
    ls__marks_clear(&marks);
    ls__chunk_free(&c);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    LS_FRAME {
        if (data[0] & 8)
            check_structure(data + 1, size - 1);
        else
            check_record(data[0], data + 1, size - 1);
    }
    return 0;
}
