/* Fuzz target: bytes that say they are a file of tensors. */
#include <lockstep/safetensors.h>
#include <string.h>

#include "file_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = file_of(data, size);
    LS_FRAME {
        ls_value *all = ls_safetensors_read(path);
        if (!all)
            check_tensor(NULL);
        size_t bytes = 0;
        for (int i = 0; all && i < ls_length(all); i++) {
            check_tensor(ls_item(all, i));
            bytes += ls_size_in_bytes(ls_item(all, i));
        }
        require(bytes <= 4 * size, "a tensor has no more than its file, widened");
        const char *note = ls_safetensors_note(path, "k");
        require(!note || strlen(note) < size, "a note is a part of the header");
        ls_error();
    }
    return 0;
}
