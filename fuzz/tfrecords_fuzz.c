/*
 * Fuzz target: bytes that say they are a TFRecord file. What a plain reading finds is given, no more and
 * no less; what is damaged is told once, and left out when that is wanted. Packed files end, one way or
 * the other.
 *
 * Where the first byte says so, the checksums of lengths, or all of them, are put right first: or
 * else few changes would get past them.
 */
#include "data/crc32c.h"
#include "records_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 12, TAIL = 4 };

static uint32_t masked(const uint8_t *at, size_t bytes)
{
    return ls__crc32c_masked(ls__crc32c(0, at, bytes));
}

static void sign(uint8_t *at, size_t size, bool all)
{
    while (size >= HEAD) {
        uint64_t length;
        uint32_t sum = masked(at, 8);
        memcpy(&length, at, 8);
        memcpy(at + 8, &sum, 4);
        if (size - HEAD < TAIL || length > size - HEAD - TAIL)
            return;
        sum = masked(at + HEAD, length);
        if (all)
            memcpy(at + HEAD + length, &sum, 4);
        at += HEAD + length + TAIL;
        size -= HEAD + length + TAIL;
    }
}

static void read_plainly(const uint8_t *at, size_t size, expected *e)
{
    e->known = true;
    while (size > 0) {
        uint64_t length = 0;
        uint32_t sum = 0;
        if (size >= HEAD) {
            memcpy(&length, at, 8);
            memcpy(&sum, at + 8, 4);
        }
        if (size < HEAD + TAIL || sum != masked(at, 8) || length > size - HEAD - TAIL) {
            expect(e, NULL, DAMAGED);
            return;
        }
        memcpy(&sum, at + HEAD + length, 4);
        expect(e, at + HEAD, sum == masked(at + HEAD, length) ? length : DAMAGED);
        at += HEAD + length + TAIL;
        size -= HEAD + length + TAIL;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static expected e;
    char path[64];
    if (size < 2)
        return 0;
    e.n = 0;
    e.known = false;
    ls_compression kind = (ls_compression)(data[0] % 3);
    uint8_t *bytes = malloc(size);
    memcpy(bytes, data + 2, size - 2);
    if (kind == LS_PLAIN) {
        if (data[0] / 3 % 3 != 0)
            sign(bytes, size - 2, data[0] / 3 % 3 == 2);
        read_plainly(bytes, size - 2, &e);
    }
    int file = make_file(bytes, size - 2, path);
    LS_FRAME {
        ls_dataset *d = ls_tfrecords(LS_FILES(path), LS_RECORDS(.compression = kind));
        if (d) {
            check_records(d, &e, data[1]);
            check_skipping(
                ls_tfrecords(LS_FILES(path), LS_RECORDS(.compression = kind, .skip_corrupt = true)),
                &e);
        } else {
            require(ls_error() == LS_UNSUPPORTED, "only zlib may be missing");
        }
    }
    close(file);
    free(bytes);
    return 0;
}
