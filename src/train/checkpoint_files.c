/*
 * Checkpoints in a directory: DIRECTORY/step-NNNNNNNNN.safetensors. Invariant: only files of such names,
 * and the parts of such that nobody writes any more, are ever removed, and none before a later one
 * is on the disk.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "os/directory.h"
#include "os/writer.h"
#include "tensor/tensor.h"
#include "train/checkpoint.h"

#define END ".safetensors"
#define PART ".part"

/* ---- names --------------------------------------------------------------------------------------- */

char *ls__checkpoint_path(const char *directory, int64_t step)
{
    const size_t room = strlen(directory) + 64;
    char *path = ls__frame_alloc(room);
    if (path)
        snprintf(path, room, "%s/step-%09lld" END, directory, (long long)step);
    return path;
}

/* The step of a name without `end`; -1: it is none. */
static int64_t step_of(const char *name, const char *end)
{
    enum { LEAST = 9, MOST = 18 };
    if (strncmp(name, "step-", 5) != 0)
        return -1;
    const size_t digits = strspn(name + 5, "0123456789");
    if (digits < LEAST || digits > MOST || strcmp(name + 5 + digits, end) != 0 ||
        (digits > LEAST && name[5] == '0'))
        return -1;
    return strtoll(name + 5, NULL, 10);
}

typedef struct steps {
    int count;
    int64_t *at; /* of the innermost frame, the latest first */
} steps;

static int latest_first(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x == y ? 0 : x > y ? -1 : 1;
}

static ls_status list(const char *who, const char *directory, const char *end, steps *out)
{
    ls__names names = { 0 };
    *out = (steps){ 0 };
    ls_status st = ls__list_directory(who, directory, &names);
    if (!st && !(out->at = ls__frame_alloc((names.count + 1) * sizeof *out->at)))
        st = LS_NO_MEMORY;
    for (size_t i = 0; i < names.count && !st; i++) {
        int64_t step = step_of(names.at[i], end);
        if (step >= 0)
            out->at[out->count++] = step;
    }
    ls__names_free(&names);
    if (out->count > 0)
        qsort(out->at, (size_t)out->count, sizeof *out->at, latest_first);
    return st;
}

/* ---- removing ------------------------------------------------------------------------------------ */

/* What cannot be done here is no reason to fail. */
static void warn(ls_status st)
{
    if (st)
        ls__log(LS_LOG_WARNING, "%s", ls_error_text());
    ls_error();
}

static void clean(const char *directory)
{
    steps parts;
    warn(list("checkpoints", directory, END PART, &parts));
    for (int i = 0; i < parts.count; i++) {
        char *path = ls__checkpoint_path(directory, parts.at[i]);
        if (path && ls__writer_clean(path))
            ls__log(LS_LOG_INFO, "removed '%s" PART "', which was left half written", path);
    }
}

static void prune(const char *directory, int64_t step, int keep)
{
    steps all;
    int kept = 0;
    warn(list("checkpoints", directory, END, &all));
    for (int i = 0; i < all.count; i++) {
        if (all.at[i] > step || kept++ < keep)
            continue;
        char *path = ls__checkpoint_path(directory, all.at[i]);
        if (path)
            warn(ls__remove_file("checkpoints", path));
    }
}

void ls__checkpoint_clean(const char *directory)
{
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    LS_FRAME
        clean(directory);
    ls__error_scope_close(&scope, LS_OK, "checkpoints");
}

void ls__checkpoint_prune(const char *directory, int64_t step, int keep)
{
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    LS_FRAME
        prune(directory, step, keep);
    ls__error_scope_close(&scope, LS_OK, "checkpoints");
}

/* ---- the newest ---------------------------------------------------------------------------------- */

static ls_status is_whole(const char *who, const char *path)
{
    ls_status st = LS_OK;
    LS_FRAME {
        ls_checkpoint_record record;
        ls__safetensors file;
        st = ls__checkpoint_open(who, path, &file, &record);
        if (!st)
            st = ls__safetensors_check(&file);
        ls__safetensors_close(&file);
    }
    return st;
}

/* One that is damaged, no checkpoint, or was removed meanwhile, is a warning; any other failure may be of a
 * good one. */
static ls_status look(const char *who, const char *path, bool *good)
{
    const ls_status st = is_whole(who, path);
    *good = !st;
    if (st != LS_CORRUPT && st != LS_INVALID && ls__path_kind_of(path) == LS__A_FILE)
        return st;
    ls_error();
    ls__log(LS_LOG_WARNING, "%s; looking for an older checkpoint", ls_error_text());
    return LS_OK;
}

static ls_status find_newest(const char *who, const char *directory, const char **out)
{
    steps all;
    ls_status st = list(who, directory, END, &all);
    for (int i = 0; i < all.count && !st; i++) {
        bool good = false;
        *out = ls__checkpoint_path(directory, all.at[i]);
        st = *out ? look(who, *out, &good) : LS_NO_MEMORY;
        if (good)
            return LS_OK;
    }
    if (st)
        return st;
    if (all.count == 0)
        return ls__hint(ls__fail(LS_NOT_FOUND, "%s: no checkpoint in '%s'", who, directory),
                        "their names are step-NNNNNNNNN" END);
    return ls__hint(ls__fail(LS_CORRUPT, "%s: all %d checkpoints in '%s' are damaged", who,
                             all.count, directory),
                    "begin anew in another directory");
}

ls_status ls_checkpoint_newest(const char *path, char *out, size_t room)
{
    const char *who = "ls_checkpoint_newest";
    ls_status st = LS_OK;
    if (!path || !out)
        return ls__fail(LS_INVALID, "%s: %s is NULL", who, path ? "out" : "the path");
    LS_FRAME {
        const char *found = path;
        if (ls__path_kind_of(path) == LS__A_DIRECTORY)
            st = find_newest(who, path, &found);
        else
            st = is_whole(who, path);
        if (!st && strlen(found) >= room)
            st = ls__fail(LS_INVALID, "%s: room for %zu bytes, the path has %zu", who, room,
                          strlen(found) + 1);
        if (!st)
            strcpy(out, found);
    }
    return st;
}
