/*
 * Stages that read files one after another, whose names are their input's elements, and give their
 * records: bytes[]. How records lie in a file is the framing's business.
 */
#ifndef LS__DATA_FILE_RECORDS_H
#define LS__DATA_FILE_RECORDS_H

#include "data/framing.h"
#include "data/iterator.h"

typedef struct ls__file_records {
    const char *who; /* "ls_tfrecords": begins errors; lasts */
    const ls__framing *framing;
    ls__frame_sizes sizes;
    ls__compression compression;
    bool skip_corrupt;
} ls__file_records;

/* They differ in name alone; options are an ls__file_records. */
extern const ls__stage ls__tfrecords_stage, ls__text_lines_stage, ls__fixed_records_stage;

#endif
