/*
 * The files: what is in them is a table below; the bytes are made here, checksums bit by bit, and
 * "compressed" ones hold stored blocks, which is all that a format asks for.
 */
#include "random_datasets/files.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rd_file files[RD_SETS][RD_FILES_OF_A_SET];
static const char letters[] = "pgzdtux";
static char directory[] = "/tmp/lockstep-datasets-XXXXXX", before[PATH_MAX];

static const char *extension(rd_set set)
{
    return set < RD_PLAIN_TEXT ? "rec" : set < RD_FIXED_BYTES ? "txt" : "bin";
}

ls_compression rd_compression_of(rd_set set)
{
    return set == RD_GZIP_RECORDS || set == RD_GZIP_TEXT ? LS_GZIP
           : set == RD_ZLIB_RECORDS                      ? LS_ZLIB
                                                         : LS_PLAIN;
}

char rd_letter_of(rd_set set)
{
    return letters[set];
}

/* ---- checksums ------------------------------------------------------------------------------ */

static uint32_t crc(uint32_t polynomial, const unsigned char *data, size_t bytes)
{
    uint32_t c = ~0u;
    for (size_t i = 0; i < bytes; i++) {
        c ^= data[i];
        for (int k = 0; k < 8; k++)
            c = (c >> 1) ^ (c & 1 ? polynomial : 0);
    }
    return ~c;
}

static uint32_t masked_crc32c(const unsigned char *data, size_t bytes)
{
    uint32_t c = crc(0x82f63b78u, data, bytes);
    return ((c >> 15) | (c << 17)) + 0xa282ead8u;
}

static uint32_t adler32(const unsigned char *data, size_t bytes)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < bytes; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char at[200000];
    size_t n;
} bytes;

static void put(bytes *b, const void *data, size_t n)
{
    if (b->n + n > sizeof b->at)
        abort();
    memcpy(b->at + b->n, data, n);
    b->n += n;
}

static void put_little(bytes *b, uint64_t value, int n)
{
    for (int i = 0; i < n; i++)
        put(b, &(unsigned char){ (unsigned char)(value >> (8 * i)) }, 1);
}

static void put_big(bytes *b, uint32_t value)
{
    for (int i = 3; i >= 0; i--)
        put(b, &(unsigned char){ (unsigned char)(value >> (8 * i)) }, 1);
}

static void put_record(bytes *b, const char *data, size_t n)
{
    size_t at = b->n;
    put_little(b, n, 8);
    put_little(b, masked_crc32c(b->at + at, 8), 4);
    put(b, data, n);
    put_little(b, masked_crc32c((const unsigned char *)data, n), 4);
}

/* Deflate without compression: blocks of at most 1,000 bytes. */
static void put_stored(bytes *to, const bytes *from)
{
    size_t at = 0;
    do {
        size_t n = from->n - at < 1000 ? from->n - at : 1000;
        put(to, &(unsigned char){ at + n == from->n }, 1);
        put_little(to, n, 2);
        put_little(to, ~n, 2);
        put(to, from->at + at, n);
        at += n;
    } while (at < from->n);
}

static void put_compressed(bytes *to, const bytes *from, ls_compression how)
{
    static const unsigned char gzip[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255 };
    if (how == LS_PLAIN) {
        put(to, from->at, from->n);
    } else if (how == LS_GZIP) {
        put(to, gzip, sizeof gzip);
        put_stored(to, from);
        put_little(to, crc(0xedb88320u, from->at, from->n), 4);
        put_little(to, from->n, 4);
    } else {
        put(to, "\x78\x01", 2);
        put_stored(to, from);
        put_big(to, adler32(from->at, from->n));
    }
}

static bool write_file(const char *name, const bytes *b, ls_compression how)
{
    static bytes packed;
    packed.n = 0;
    put_compressed(&packed, b, how);
    FILE *f = fopen(name, "wb");
    bool ok = f && fwrite(packed.at, 1, packed.n, f) == packed.n;
    return f && !fclose(f) && ok;
}

/* ---- what is in them ------------------------------------------------------------------------ */

static const int counts[RD_FILES_OF_A_SET] = { 3, 0, 5, 1, 4 };

static void note(rd_file *f, const char *data, int length)
{
    char *copy = malloc((size_t)(length < 0 ? 0 : length) + 1);
    if (!copy)
        abort();
    if (length > 0)
        memcpy(copy, data, (size_t)length);
    f->record[f->n++] = (rd_record){ copy, length };
}

/* Record 2 of file 2 is longer than buffers are; some are empty. */
static int make_record(rd_set set, int file, int i, char *to)
{
    int n = sprintf(to, "%c%dr%d", letters[set], file, i);
    if ((file + i) % 4 == 3)
        return 0;
    if (file == 2 && i == 2)
        for (; n < 70000; n++)
            to[n] = (char)('a' + n % 7);
    to[n] = '\0'; /* part of it */
    return n + (i % 2);
}

static void make_records(rd_set set, int file, bytes *b)
{
    static char record[80000];
    rd_file *f = &files[set][file];
    for (int i = 0; i < counts[file]; i++) {
        int n = make_record(set, file, i, record);
        put_record(b, record, (size_t)n);
        note(f, record, n);
    }
}

/* File 0: record 1's bytes are damaged. File 2: record 3's length is, so all behind it is lost.
 * File 4: ends inside of record 2. The others are whole. */
static void make_damaged(int file, bytes *b)
{
    rd_file *f = &files[RD_DAMAGED_RECORDS][file];
    size_t starts[RD_RECORDS_OF_A_FILE];
    char record[32];
    for (int i = 0; i < counts[file]; i++) {
        starts[i] = b->n;
        int n = snprintf(record, sizeof record, "d%dr%d-whole", file, i);
        put_record(b, record, (size_t)n);
        bool damaged = (file == 0 && i == 1) || (file == 2 && i == 3) || (file == 4 && i == 2);
        if (!(file == 2 && i > 3) && !(file == 4 && i > 2))
            note(f, record, damaged ? -1 : n);
    }
    if (file == 0)
        b->at[starts[1] + 15] ^= 4;
    if (file == 2)
        b->at[starts[3] + 1] ^= 64;
    if (file == 4)
        b->n = starts[2] + 16;
}

static void make_text(int file, bytes *b)
{
    static const struct {
        const char *line, *end;
    } lines[RD_FILES_OF_A_SET][RD_RECORDS_OF_A_FILE] = {
        { { "one", "\n" }, { "", "\n" }, { "three", "\r\n" }, { "four", "" } },
        { { "", "" } }, /* an empty file */
        { { "", "\r\n" }, { "a\rb", "\n" }, { "long", "\n" }, { " c ", "\r\n" }, { "d", "\n" } },
        { { "x", "\n" } },
        { { "tail", "\n" }, { "", "\n" }, { "", "\n" }, { "\r", "\n" } },
    };
    for (int set = RD_PLAIN_TEXT; set <= RD_GZIP_TEXT; set++)
        files[set][file].n = 0;
    for (int i = 0; i < RD_RECORDS_OF_A_FILE && lines[file][i].line; i++) {
        const char *line = lines[file][i].line;
        static char text[80000];
        int n = sprintf(text, "%s", line);
        if (!strcmp(line, "long"))
            for (; n < 70000; n++)
                text[n] = (char)('a' + n % 5);
        put(b, text, (size_t)n);
        put(b, lines[file][i].end, strlen(lines[file][i].end));
        if (n && text[n - 1] == '\r') /* "\r" and "\n" are one end */
            n--;
        for (int set = RD_PLAIN_TEXT; set <= RD_GZIP_TEXT && (n || *lines[file][i].end); set++)
            note(&files[set][file], text, n);
    }
}

static void make_fixed(int file, bytes *b)
{
    rd_file *f = &files[RD_FIXED_BYTES][file];
    int n = 3 + 24 * (counts[file] % 4);
    for (int i = 0; i < n; i++)
        put(b, &(char){ (char)('A' + (i * 7 + file) % 26) }, 1);
    note(f, (const char *)b->at, n);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool make_set(rd_set set)
{
    static bytes b;
    bool ok = true;
    for (int i = 0; i < RD_FILES_OF_A_SET; i++) {
        b.n = 0;
        if (set == RD_DAMAGED_RECORDS)
            make_damaged(i, &b);
        else if (set < RD_PLAIN_TEXT)
            make_records(set, i, &b);
        else if (set == RD_FIXED_BYTES)
            make_fixed(i, &b);
        else if (set == RD_PLAIN_TEXT)
            make_text(i, &b);
        snprintf(files[set][i].name, sizeof files[set][i].name, "%c%d.%s", letters[set], i,
                 extension(set));
        if (set != RD_GZIP_TEXT)
            ok = write_file(files[set][i].name, &b, rd_compression_of(set)) && ok;
        if (set == RD_PLAIN_TEXT) { /* the same bytes */
            char name[16];
            snprintf(name, sizeof name, "%c%d.txt", letters[RD_GZIP_TEXT], i);
            ok = write_file(name, &b, LS_GZIP) && ok;
        }
    }
    return ok;
}

bool rd_files_begin(void)
{
    bool ok = getcwd(before, sizeof before) && mkdtemp(directory) && !chdir(directory);
    for (int set = 0; set < RD_SETS && ok; set++)
        ok = make_set((rd_set)set);
    return ok;
}

void rd_files_end(void)
{
    for (int set = 0; set < RD_SETS; set++)
        for (int i = 0; i < RD_FILES_OF_A_SET; i++) {
            remove(files[set][i].name);
            for (int k = 0; k < files[set][i].n; k++)
                free((void *)(uintptr_t)files[set][i].record[k].data);
            files[set][i].n = 0;
        }
    if (chdir(before) || rmdir(directory))
        fprintf(stderr, "%s is left\n", directory);
}

const rd_file *rd_file_of(rd_set set, int i)
{
    return &files[set][i];
}

const rd_file *rd_file_named(const char *name, int length, rd_set *set)
{
    for (int s = 0; s < RD_SETS; s++)
        for (int i = 0; i < RD_FILES_OF_A_SET; i++)
            if ((int)strlen(files[s][i].name) == length &&
                !memcmp(files[s][i].name, name, (size_t)length)) {
                *set = (rd_set)s;
                return &files[s][i];
            }
    return NULL;
}

int rd_files_matching(const char *pattern, const rd_file *out[RD_FILES_OF_A_SET])
{
    int set = (int)(strchr(letters, pattern[0]) - letters), n = 0;
    int first = 0, last = RD_FILES_OF_A_SET - 1;
    if (pattern[1] == '[')
        first = pattern[2] - '0', last = pattern[4] - '0';
    else if (pattern[1] >= '0' && pattern[1] <= '9')
        first = last = pattern[1] - '0';
    for (int i = first; i <= last; i++)
        out[n++] = &files[set][i];
    return n;
}
