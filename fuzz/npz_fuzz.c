/* Fuzz target: bytes that say they are an archive of numpy's arrays. The limit is a small one, so that an
 * input is done in no time. */
#include "data/npy.h"
#include "file_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    LS_FRAME {
        ls_value *all = ls__npz_read(file_of(data, size), 1 << 20);
        if (!all)
            check_tensor(NULL);
        for (int i = 0; i < ls_length(all); i++)
            check_tensor(ls_item(all, i));
    }
    return 0;
}
