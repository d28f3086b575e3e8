/*
 * What fuzz targets of readers of files share: the input as a file in memory, which has a path.
 */
#ifndef LS__FUZZ_FILE_FUZZ_H
#define LS__FUZZ_FILE_FUZZ_H

#include <lockstep/data.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool holds, const char *promise)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s: %s\n", promise, ls_error_report());
    abort();
}

/* Of the last input: there is one file, which every input is written to. */
static inline const char *file_of(const uint8_t *data, size_t size)
{
    static char path[64];
    static int file = -1;
    if (file < 0) {
        file = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    if (file < 0 || ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size) {
        perror("fuzz: a file in memory");
        exit(2);
    }
    return path;
}

/* Refused with an error, or read without one: then every byte is there. */
static inline void check_tensor(const ls_tensor *t)
{
    static volatile unsigned char sink;
    if (!t) {
        require(ls_error() != LS_OK, "what is refused is refused with an error");
        return;
    }
    require(ls_error_pending() == LS_OK, "what is read leaves no error");
    const unsigned char *at = ls_data(t);
    for (size_t i = 0; i < ls_size_in_bytes(t); i++)
        sink = sink ^ at[i];
}

#endif
