/*
 * Fuzz target: bytes as a text, plain or packed. Its lines are those that a plain loop finds.
 */
#include "records_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_plainly(const uint8_t *at, size_t size, expected *e)
{
    e->known = true;
    while (size > 0) {
        size_t n = 0;
        while (n < size && at[n] != '\n')
            n++;
        bool ended = n < size;
        expect(e, at, ended && n > 0 && at[n - 1] == '\r' ? n - 1 : n);
        at += n + ended;
        size -= n + ended;
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
    if (kind == LS_PLAIN)
        read_plainly(data + 2, size - 2, &e);
    int file = make_file(data + 2, size - 2, path);
    LS_FRAME {
        ls_dataset *d = ls_text_lines(LS_FILES(path), LS_RECORDS(.compression = kind));
        if (d)
            check_records(d, &e, data[1]);
        else
            require(ls_error() == LS_UNSUPPORTED, "only zlib may be missing");
    }
    close(file);
    return 0;
}
