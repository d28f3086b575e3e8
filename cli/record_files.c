/*
 * Which TFRecord files there are, and how many records they have: a record is its length, a checksum,
 * the bytes and another checksum, so of plain files only the lengths are read. They are believed no
 * further than the file is long; checksums are the library's to verify, when it reads.
 */
#include "record_files.h"

#include <errno.h>
#include <fcntl.h>
#include <lockstep/value.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data_source.h"

enum { MOST_PATTERNS = 256, HEADER = 12, FOOTER = 4 };

/* ---- counting ----------------------------------------------------------------------------------- */

static uint64_t length_of(const unsigned char *header)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | header[i];
    return n;
}

static int count_plain(const cli *c, record_file *f, int fd, int64_t size, const char *hint)
{
    for (int64_t at = 0; at < size; f->records++) {
        unsigned char header[HEADER];
        const int64_t left = size - at - HEADER - FOOTER;
        const bool there = left >= 0 && pread(fd, header, HEADER, at) == HEADER;
        const uint64_t length = there ? length_of(header) : 0;
        if (!there || length > (uint64_t)left) {
            if (f->records == 0)
                return cli_error(c, EXIT_USAGE, LS_CORRUPT, hint, "'%s' is no TFRecord file",
                                 f->name);
            return cli_error(c, EXIT_USAGE, LS_CORRUPT, "write it again",
                             "'%s' is damaged or cut off: %lld bytes, and behind %lld records, at "
                             "byte %lld, none begins",
                             f->name, (long long)size, (long long)f->records, (long long)at);
        }
        f->bytes += (int64_t)length;
        at += HEADER + FOOTER + (int64_t)length;
    }
    return EXIT_DONE;
}

/* By reading it. */
static int count_gzip(const cli *c, record_file *f)
{
    const record_files one = { f, 1 };
    LS_FOR_EACH (record, record_files_read(&one, 0, 1)) {
        const void *data;
        size_t bytes;
        if (ls_string_at(ls_leaf_tensor(record), 0, &data, &bytes))
            break;
        f->records++;
        f->bytes += (int64_t)bytes;
    }
    return ls_error_pending() ? data_failed(c) : EXIT_DONE;
}

static int count(const cli *c, record_file *f, const char *hint)
{
    unsigned char magic[2] = { 0, 0 };
    struct stat s;
    int fd = open(f->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &s)) {
        int why = errno;
        if (fd >= 0)
            close(fd);
        return cli_error(c, EXIT_USAGE, LS_IO, "", "cannot read '%s': %s", f->name, strerror(why));
    }
    f->gzip = pread(fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
    int status = f->gzip ? count_gzip(c, f) : count_plain(c, f, fd, s.st_size, hint);
    close(fd);
    return status;
}

/* ---- names -------------------------------------------------------------------------------------- */

static bool add(record_files *files, const void *name, size_t bytes)
{
    record_file *more = realloc(files->at, sizeof *more * (size_t)(files->count + 1));
    if (!more)
        return false;
    files->at = more;
    char *copy = strndup(name, bytes);
    if (copy)
        files->at[files->count++] = (record_file){ .name = copy };
    return copy != NULL;
}

/* The names that patterns stand for. */
static int find(const cli *c, int n, const char *const *patterns, const char *hint,
                record_files *out)
{
    bool memory = true;
    LS_FOR_EACH (name, ls_files(n, patterns)) {
        const void *data;
        size_t bytes;
        if (ls_string_at(ls_leaf_tensor(name), 0, &data, &bytes))
            break;
        memory = add(out, data, bytes);
        if (!memory)
            break;
    }
    if (!memory)
        return cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "out of memory");
    if (ls_error_pending() != LS_NOT_FOUND)
        return ls_error_pending() ? data_failed(c) : EXIT_DONE;
    ls_error();
    return cli_error(c, EXIT_USAGE, LS_NOT_FOUND, hint, "%s", cli_error_text());
}

int record_files_find(const cli *c, const char *spec, const char *hint, record_files *out)
{
    char *copy = strdup(spec), *rest = copy;
    const char *patterns[MOST_PATTERNS];
    int n = 0;
    for (char *name; copy && (name = strsep(&rest, ",")) && n < MOST_PATTERNS;)
        if (name[0])
            patterns[n++] = name;
    int status = EXIT_DONE;
    if (!copy)
        status = cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "out of memory");
    else if (rest || n == 0)
        status = cli_error(c, EXIT_USAGE, LS_INVALID, "a pattern, 'train-*', names many",
                           "'%.40s' is not a list of 1 to %d names of files", spec, MOST_PATTERNS);
    else
        status = find(c, n, patterns, hint, out);
    free(copy);
    for (int i = 0; i < out->count && status == EXIT_DONE; i++) {
        status = count(c, &out->at[i], hint);
        if (status == EXIT_DONE && out->at[i].gzip != out->at[0].gzip)
            status =
                cli_error(c, EXIT_USAGE, LS_INVALID, "compress all of them, or none",
                          "'%s' is compressed, '%s' is not", out->at[out->at[0].gzip ? 0 : i].name,
                          out->at[out->at[0].gzip ? i : 0].name);
    }
    return status;
}

void record_files_free(record_files *files)
{
    for (int i = 0; i < files->count; i++)
        free(files->at[i].name);
    free(files->at);
    *files = (record_files){ 0 };
}

/* ---- reading ------------------------------------------------------------------------------------ */

record_file record_files_sum(const record_files *files, int begin, int end)
{
    record_file sum = { .name = NULL };
    for (int i = begin; i < end; i++) {
        sum.records += files->at[i].records;
        sum.bytes += files->at[i].bytes;
    }
    return sum;
}

ls_dataset *record_files_read(const record_files *files, int begin, int end)
{
    const char **names = calloc((size_t)(end - begin) + 1, sizeof *names);
    if (!names)
        return NULL;
    for (int i = begin; i < end; i++)
        names[i - begin] = files->at[i].name;
    ls_dataset *d =
        ls_tfrecords(ls_files(end - begin, names),
                     LS_RECORDS(.compression = files->at[begin].gzip ? LS_GZIP : LS_PLAIN));
    free(names);
    return d;
}
