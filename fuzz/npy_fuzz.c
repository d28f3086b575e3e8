/* Fuzz target: bytes that say they are an array of numpy's. */
#include "file_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    LS_FRAME
        check_tensor(ls_read_npy(file_of(data, size)));
    return 0;
}
