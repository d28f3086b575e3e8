/* Fuzz target: bytes that say they are a JPEG (image_fuzz.h). */
#include "image_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = copy_of(data, size);
    if (bytes)
        try_channels(ls__decode_jpeg, bytes, size, 3);
    free(bytes);
    return 0;
}
