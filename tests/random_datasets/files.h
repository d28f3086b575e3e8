/*
 * Files for random datasets, written byte by byte as the formats say, without the library: TFRecord
 * files (plain, gzip, zlib; some damaged), text, records of a fixed length. They lie in a
 * directory of their own, which becomes the working directory, so that names are the same in
 * every run.
 */
#ifndef LS__TESTS_RANDOM_DATASETS_FILES_H
#define LS__TESTS_RANDOM_DATASETS_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include <lockstep/data.h>

enum { RD_FILES_OF_A_SET = 5, RD_RECORDS_OF_A_FILE = 8 };

typedef enum rd_set {
    RD_PLAIN_RECORDS,
    RD_GZIP_RECORDS,
    RD_ZLIB_RECORDS,
    RD_DAMAGED_RECORDS,
    RD_PLAIN_TEXT,
    RD_GZIP_TEXT,
    RD_FIXED_BYTES, /* 3 bytes that are no record, and a multiple of 24 that are */
    RD_SETS
} rd_set;

/* What a reader finds: a record, or damage. */
typedef struct rd_record {
    const char *data;
    int length; /* -1: damaged */
} rd_record;

typedef struct rd_file {
    char name[16]; /* "p3.rec": letter of the set, number */
    int n;         /* records or lines; of RD_FIXED_BYTES: 1, all bytes */
    rd_record record[RD_RECORDS_OF_A_FILE];
} rd_file;

/* Called before and after all else. Whether all could be written. */
bool rd_files_begin(void);
void rd_files_end(void);

const rd_file *rd_file_of(rd_set set, int i);
const rd_file *rd_file_named(const char *name, int length, rd_set *set); /* NULL: none */
ls_compression rd_compression_of(rd_set set);
char rd_letter_of(rd_set set);

/* The files that a pattern of theirs ("p*.rec", "p?.rec", "p[1-3].rec", "p2.rec") names, in alphabetic
 * order; returns how many. */
int rd_files_matching(const char *pattern, const rd_file *out[RD_FILES_OF_A_SET]);

#endif
