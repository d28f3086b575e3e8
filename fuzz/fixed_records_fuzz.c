/*
 * Fuzz target: bytes as records of a fixed length, with a header and a footer, plain or packed. What
 * does not fit is told, after what does.
 */
#include "records_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_plainly(const uint8_t *at, size_t size, const ls_records_options *o, expected *e)
{
    const size_t around = (size_t)(o->header_bytes + o->footer_bytes);
    const size_t record = (size_t)o->record_bytes;
    size_t body = size > around ? size - around : 0;
    e->known = true;
    for (at += o->header_bytes; body >= record; at += record, body -= record)
        expect(e, at, record);
    if (size < around || body > 0)
        expect(e, NULL, DAMAGED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static expected e;
    char path[64];
    if (size < 2)
        return 0;
    e.n = 0;
    e.known = false;
    ls_records_options *o =
        LS_RECORDS(.compression = (ls_compression)(data[0] % 3), .record_bytes = data[1] % 37 + 1,
                   .header_bytes = data[0] / 3 % 8, .footer_bytes = data[0] / 24);
    if (o->compression == LS_PLAIN)
        read_plainly(data + 2, size - 2, o, &e);
    int file = make_file(data + 2, size - 2, path);
    LS_FRAME {
        ls_dataset *d = ls_fixed_records(LS_FILES(path), o);
        if (d)
            check_records(d, &e, data[1] / 37);
        else
            require(ls_error() == LS_UNSUPPORTED, "only zlib may be missing");
    }
    close(file);
    return 0;
}
