/*
 * TFRecord files by name or pattern, and how many records are in them.
 */
#ifndef LOCKSTEP_CLI_RECORD_FILES_H
#define LOCKSTEP_CLI_RECORD_FILES_H

#include <lockstep/data.h>

#include "cli.h"

typedef struct record_file {
    char *name;
    int64_t records;
    int64_t bytes; /* of all records; of a compressed file unpacked ones */
    bool gzip;
} record_file;

/* Starts as zeros. */
typedef struct record_files {
    record_file *at;
    int count;
} record_files;

/* Names and patterns with commas between them, each pattern's in alphabetic order. Lengths of records are
 * looked at, not what is in them. `hint` says what else may be given. EXIT_DONE, or the exit status of what was told; free it in any
 * case. */
int record_files_find(const cli *c, const char *spec, const char *hint, record_files *out);
void record_files_free(record_files *files);

/* Records and bytes of files [begin, end). */
record_file record_files_sum(const record_files *files, int begin, int end);

/* What is in them: bytes[]. NULL: an error is pending. */
ls_dataset *record_files_read(const record_files *files, int begin, int end);

#endif
