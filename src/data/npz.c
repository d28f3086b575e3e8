/*
 * .npz: a zip of .npy arrays, read by libzip, as a dict by their names without ".npy".
 *
 * Invariant: sizes that an archive tells are believed only as far as it can hold them. A stored array
 * has as many bytes as lie there; a deflated one no more than 1032 times as many, which is
 * all that deflate can do; and all together no more than 1 GiB or 100 times the archive, whichever is
 * more. What comes out is counted, and must be what was told.
 */
#include <lockstep/data.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "data/npy.h"

#ifndef LS_HAVE_LIBZIP

ls_value *ls__npz_read(const char *path, uint64_t most)
{
    (void)most;
    ls__hint(ls__fail(LS_UNSUPPORTED, "ls_read_npz: '%s': this build has no libzip", path),
             "build with libzip-dev installed, or unpack the archive and use ls_read_npy");
    return NULL;
}

#else

#include <zip.h>

enum { MOST_NAME = 1024, MOST_DEFLATE = 1032 };

#define MOST_BYTES ((uint64_t)1 << 30)

typedef struct archive {
    const char *path;
    zip_t *zip;
    uint64_t bytes; /* of the file */
    uint64_t left;  /* that arrays may still have */
} archive;

typedef struct entry {
    zip_uint64_t index;
    char *key; /* of the innermost frame */
} entry;

/* ---- an array ----------------------------------------------------------------------------------- */

typedef struct packed {
    zip_file_t *file;
    const char *name; /* for errors */
} packed;

static ls_status read_packed(void *user, void *to, size_t bytes)
{
    const packed *p = user;
    for (size_t done = 0; done < bytes;) {
        zip_int64_t got = zip_fread(p->file, (char *)to + done, bytes - done);
        if (got < 0)
            return ls__fail(LS_CORRUPT, "%s: damaged: %s", p->name, zip_file_strerror(p->file));
        if (got == 0)
            return ls__fail(LS_CORRUPT, "%s: ends before all was there that the archive tells",
                            p->name);
        done += (size_t)got;
    }
    return LS_OK;
}

/* The checksum is looked at when the end is read. */
static ls_status read_end(const packed *p)
{
    char one;
    zip_int64_t got = zip_fread(p->file, &one, 1);
    if (got < 0)
        return ls__fail(LS_CORRUPT, "%s: damaged: %s", p->name, zip_file_strerror(p->file));
    if (got > 0)
        return ls__fail(LS_CORRUPT, "%s: goes on behind what the archive tells", p->name);
    return LS_OK;
}

static ls_status check_packing(const char *name, const zip_stat_t *s)
{
    const zip_uint64_t wanted = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if ((s->valid & wanted) != wanted)
        return ls__fail(LS_CORRUPT, "%s: the archive does not tell its size", name);
    if ((s->valid & ZIP_STAT_ENCRYPTION_METHOD) && s->encryption_method != ZIP_EM_NONE)
        return ls__fail(LS_UNSUPPORTED, "%s: is encrypted", name);
    if (s->comp_method != ZIP_CM_STORE && s->comp_method != ZIP_CM_DEFLATE)
        return ls__hint(
            ls__fail(LS_UNSUPPORTED, "%s: packed by method %d of zip", name, s->comp_method),
            "read are 0, stored, and 8, deflated: what numpy writes");
    return LS_OK;
}

static ls_status check_size(const char *name, archive *a, const zip_stat_t *s)
{
    ls_status st = check_packing(name, s);
    if (st)
        return st;
    const uint64_t times = s->comp_method == ZIP_CM_DEFLATE ? MOST_DEFLATE : 1;
    if (s->comp_size > a->bytes || s->size > s->comp_size * times)
        return ls__fail(LS_CORRUPT, "%s: %llu bytes out of %llu, in an archive of %llu", name,
                        (unsigned long long)s->size, (unsigned long long)s->comp_size,
                        (unsigned long long)a->bytes);
    if (s->size > a->left)
        return ls__hint(ls__fail(LS_UNSUPPORTED,
                                 "%s: its %llu bytes are more than an archive of %llu is unpacked "
                                 "to",
                                 name, (unsigned long long)s->size, (unsigned long long)a->bytes),
                        "the limit is 1 GiB or 100 times the archive: numpy.savez, which does not "
                        "deflate, stays below");
    a->left -= s->size;
    return LS_OK;
}

static ls_tensor *read_array(archive *a, zip_uint64_t index, const char *name)
{
    zip_stat_t s;
    if (zip_stat_index(a->zip, index, 0, &s)) {
        ls__fail(LS_CORRUPT, "%s: %s", name, zip_strerror(a->zip));
        return NULL;
    }
    if (check_size(name, a, &s))
        return NULL;
    packed p = { zip_fopen_index(a->zip, index, 0), name };
    if (!p.file) {
        ls__fail(LS_CORRUPT, "%s: %s", name, zip_strerror(a->zip));
        return NULL;
    }
    ls_tensor *t = ls__npy_read(&(ls__npy_input){ name, s.size, read_packed, &p });
    if (t && read_end(&p))
        t = NULL;
    zip_fclose(p.file);
    return t;
}

/* ---- all of them ---------------------------------------------------------------------------------- */

static ls_status take_key(const archive *a, zip_uint64_t index, entry *out)
{
    const char *name = zip_get_name(a->zip, index, 0);
    size_t n = name ? strlen(name) : 0;
    if (n > MOST_NAME || n < 4 || strcmp(name + n - 4, ".npy") != 0)
        return ls__hint(ls__fail(LS_CORRUPT,
                                 "ls_read_npz: '%s' has '%.100s' in it, which is no .npy", a->path,
                                 name ? name : "?"),
                        "archives that numpy.savez writes have nothing else in them");
    out->index = index;
    out->key = ls__frame_string(name);
    if (!out->key)
        return ls_error_pending();
    out->key[n - 4] = '\0';
    return LS_OK;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->key, ((const entry *)b)->key);
}

/* Sorted, so that the dict is made in one go. */
static ls_status take_keys(const archive *a, int n, entry *out)
{
    ls_status st = LS_OK;
    for (int i = 0; i < n && !st; i++)
        st = take_key(a, (zip_uint64_t)i, &out[i]);
    if (st)
        return st;
    qsort(out, (size_t)n, sizeof *out, by_key);
    for (int i = 1; i < n && !st; i++)
        if (by_key(&out[i - 1], &out[i]) == 0)
            st = ls__fail(LS_CORRUPT, "ls_read_npz: '%s' has '%.100s' twice", a->path, out[i].key);
    return st;
}

static ls_value *read_arrays(archive *a)
{
    zip_int64_t n = zip_get_num_entries(a->zip, 0);
    if (n < 0 || n > INT32_MAX / 2) {
        ls__fail(LS_CORRUPT, "ls_read_npz: '%s' has %lld entries", a->path, (long long)n);
        return NULL;
    }
    entry *entries = ls__frame_alloc(((size_t)n + 1) * sizeof *entries);
    const char **keys = ls__frame_alloc(((size_t)n + 1) * sizeof *keys);
    ls_value **items = ls__frame_alloc(((size_t)n + 1) * sizeof *items);
    if (!entries || !keys || !items || take_keys(a, (int)n, entries))
        return NULL;
    for (int i = 0; i < (int)n; i++) {
        char name[600];
        snprintf(name, sizeof name, "ls_read_npz: '%.250s': '%.100s'", a->path, entries[i].key);
        ls_tensor *t = read_array(a, entries[i].index, name);
        keys[i] = entries[i].key;
        items[i] = t ? ls_leaf(t) : NULL;
        if (!items[i])
            return NULL;
    }
    return ls_dict((int)n, keys, items);
}

/* ---- the archive ----------------------------------------------------------------------------------- */

static ls_status open_failed(const char *path, int code)
{
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    ls_status st = LS_CORRUPT;
    if (code == ZIP_ER_NOENT)
        st = LS_NOT_FOUND;
    else if (code == ZIP_ER_OPEN || code == ZIP_ER_READ || code == ZIP_ER_SEEK ||
             code == ZIP_ER_OPNOTSUPP)
        st = LS_IO;
    else if (code == ZIP_ER_MEMORY)
        st = LS_NO_MEMORY;
    ls__fail(st, "ls_read_npz: cannot open '%s': %s", path, zip_error_strerror(&error));
    zip_error_fini(&error);
    return st;
}

static ls_status measure(archive *a)
{
    FILE *f = fopen(a->path, "rbe");
    off_t end = f && !fseeko(f, 0, SEEK_END) ? ftello(f) : -1;
    if (f)
        fclose(f);
    if (end < 0)
        return ls__fail(LS_IO, "ls_read_npz: cannot tell how long '%s' is", a->path);
    a->bytes = (uint64_t)end;
    return LS_OK;
}

ls_value *ls__npz_read(const char *path, uint64_t most)
{
    int code = 0;
    archive a = { .path = path, .zip = zip_open(path, ZIP_RDONLY, &code), .left = most };
    if (!a.zip) {
        open_failed(path, code);
        return NULL;
    }
    ls_value *all = NULL;
    if (!measure(&a)) {
        const uint64_t by_size = a.bytes > UINT64_MAX / 100 ? UINT64_MAX : a.bytes * 100;
        if (!most)
            a.left = by_size > MOST_BYTES ? by_size : MOST_BYTES;
        LS_FRAME { /* what was read before a failure goes at once */
            ls_value *arrays = read_arrays(&a);
            all = arrays ? ls_value_hand_up(arrays) : NULL;
        }
    }
    zip_discard(a.zip);
    return all;
}

#endif

ls_value *ls_read_npz(const char *path)
{
    if (!path) {
        ls__fail(LS_INVALID, "ls_read_npz: the path is NULL");
        return NULL;
    }
    return ls__npz_read(path, 0);
}
