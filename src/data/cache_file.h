/*
 * The file of ls_cache, in the byte order of the machine that wrote it:
 *
 *     "LSCACHE1"  byte order (4)  version (4)
 *     up to 512 records (cache_record.c), then their page: where each begins and the last ends (8 each),
 *         the page's crc (4), how many records (4)
 *     the same again, as often as it takes
 *     where each page is (8 each)
 *     the foot: what is in the head of the cache
 *     where the list of pages is (8), where the foot is (8), how many records (8)
 *     the crc of all since the list of pages (4)  0 (4)  "LSCACHE1"
 *
 * A record begins with the crc of the rest of it. So any element is found with one look at a page, and
 * one that is damaged does not lose those around it.
 */
#ifndef LS__DATA_CACHE_FILE_H
#define LS__DATA_CACHE_FILE_H

#include <stdint.h>

#define LS__CACHE_MAGIC "LSCACHE1"

enum {
    LS__CACHE_ORDER = 0x01020304,
    LS__CACHE_VERSION = 1,
    LS__CACHE_FRONT = 16,
    LS__CACHE_TAIL = 40,
    LS__CACHE_GROUP = 512
};

typedef struct ls__cache_tail {
    uint64_t pages_at, foot_at, n;
    uint32_t crc, zero;
    char magic[8];
} ls__cache_tail;
_Static_assert(sizeof(ls__cache_tail) == LS__CACHE_TAIL, "as it lies in the file");

#endif
