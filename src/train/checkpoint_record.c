/*
 * What a checkpoint says of itself, in the notes of its file. Invariant: a file is taken for a checkpoint
 * when it says so and has checksums of ours: any damage is then noticed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "kernels/math_profile.h"
#include "strategy/strategy.h"
#include "tensor/tensor.h"
#include "train/checkpoint.h"

/* Of the file's contents: another one is read by a later Lockstep alone. */
#define FORMAT "1"

const char *ls_math_profile(void)
{
    return ls__math_profile();
}

char *ls__as_utf8(const char *text)
{
    char *copy = ls__frame_string(text);
    for (char *at = copy; at && *at;) {
        size_t length = ls__utf8_next(at);
        if (length == 0)
            *at = '?';
        at += length ? length : 1;
    }
    return copy;
}

/* ---- writing ------------------------------------------------------------------------------------- */

static const char *decimal(uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return ls__frame_string(text);
}

static int pipelines_of(const ls_strategy *s)
{
    return s->pipelines > 0 ? s->pipelines : 1;
}

int ls__checkpoint_notes(const ls_checkpoint *c, ls_note notes[LS__CHECKPOINT_NOTES])
{
    const ls_strategy *s = ls__checkpoint_strategy(c);
    const ls_note all[LS__CHECKPOINT_NOTES] = {
        { "lockstep.checkpoint", FORMAT },
        { "lockstep.version", LS_VERSION },
        { "lockstep.profile", ls_math_profile() },
        { "lockstep.replicas", decimal((uint64_t)s->replicas) },
        { "lockstep.pipelines", decimal((uint64_t)pipelines_of(s)) },
        { "lockstep.seed", decimal(c->seed) },
        { "lockstep.steps", decimal((uint64_t)ls_steps(s)) },
        { "lockstep.same_bits", ls_same_bits(s) ? "true" : "false" },
        { "lockstep.model", c->model ? ls__as_utf8(c->model) : NULL },
        { "lockstep.command", c->command ? ls__as_utf8(c->command) : NULL },
        { "lockstep.data", c->data ? ls__as_utf8(c->data) : NULL },
    };
    int n = 0;
    for (int i = 0; i < LS__CHECKPOINT_NOTES; i++) {
        const bool missing =
            (i == 8 && !c->model) || (i == 9 && !c->command) || (i == 10 && !c->data);
        if (!missing && !all[i].text)
            return 0;
        if (!missing)
            notes[n++] = all[i];
    }
    return n;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static ls_status bad_note(const char *path, const char *key, const char *text)
{
    return ls__fail(LS_CORRUPT, "'%s' is damaged: its note '%s' is %s%.40s", path, key,
                    text ? "" : "missing", text ? text : "");
}

/* A copy of the innermost frame; of one that must be there. */
static ls_status read_text(const ls__safetensors *f, const char *key, const char **out)
{
    const char *text = ls__safetensors_note_of(f, key);
    if (!text)
        return bad_note(f->path, key, NULL);
    *out = ls__frame_string(text);
    return *out ? LS_OK : LS_NO_MEMORY;
}

static ls_status read_number(const ls__safetensors *f, const char *key, uint64_t least,
                             uint64_t most, uint64_t *out)
{
    const char *text = ls__safetensors_note_of(f, key);
    char *end = NULL;
    errno = 0;
    *out = text && text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    if (!end || *end || errno || *out < least || *out > most)
        return bad_note(f->path, key, text);
    return LS_OK;
}

static ls_status check_format(const ls__safetensors *f)
{
    const char *format = ls__safetensors_note_of(f, "lockstep.checkpoint");
    if (!f->header.summed || !format)
        return ls__hint(ls__fail(LS_CORRUPT, "'%s' is no checkpoint of Lockstep's", f->path),
                        "it may be a file of weights: ls_safetensors_read and ls_variables_restore "
                        "(lockstep train --init) take those");
    if (strcmp(format, FORMAT) == 0)
        return LS_OK;
    return ls__hint(ls__fail(LS_UNSUPPORTED,
                             "'%s' is a checkpoint of format %.20s; read is " FORMAT, f->path,
                             format),
                    "read it with the Lockstep that wrote it: %.40s",
                    ls__safetensors_note_of(f, "lockstep.version")
                        ? ls__safetensors_note_of(f, "lockstep.version")
                        : "?");
}

static ls_status read_record(const ls__safetensors *f, ls_checkpoint_record *out)
{
    uint64_t replicas = 0, pipelines = 0, steps = 0;
    const char *same = NULL;
    ls_status st = read_text(f, "lockstep.version", &out->version);
    if (!st)
        st = read_text(f, "lockstep.profile", &out->profile);
    if (!st && ls__safetensors_note_of(f, "lockstep.model"))
        st = read_text(f, "lockstep.model", &out->model);
    if (!st && ls__safetensors_note_of(f, "lockstep.command"))
        st = read_text(f, "lockstep.command", &out->command);
    if (!st && ls__safetensors_note_of(f, "lockstep.data"))
        st = read_text(f, "lockstep.data", &out->data);
    if (!st)
        st = read_number(f, "lockstep.replicas", 1, INT32_MAX, &replicas);
    if (!st)
        st = read_number(f, "lockstep.pipelines", 1, INT32_MAX, &pipelines);
    if (!st)
        st = read_number(f, "lockstep.seed", 0, UINT64_MAX, &out->seed);
    if (!st)
        st = read_number(f, "lockstep.steps", 0, (uint64_t)1 << 62, &steps);
    if (!st)
        st = read_text(f, "lockstep.same_bits", &same);
    out->replicas = (int)replicas;
    out->pipelines = (int)pipelines;
    out->steps = (int64_t)steps;
    out->same_bits = same && strcmp(same, "true") == 0;
    return st;
}

ls_status ls__checkpoint_open(const char *who, const char *path, ls__safetensors *file,
                              ls_checkpoint_record *record)
{
    ls_checkpoint_record r = { .size = sizeof r };
    ls_status st = ls__safetensors_open(who, path, file);
    if (!st)
        st = check_format(file);
    if (!st)
        st = read_record(file, &r);
    if (!st)
        *record = r;
    return st;
}

ls_status ls_checkpoint_look(const char *path, ls_checkpoint_record *out)
{
    const char *who = "ls_checkpoint_look";
    if (!out || out->size != sizeof *out)
        return ls__hint(ls__fail(LS_INVALID, "%s: a record of %zu bytes, wants %zu", who,
                                 out ? out->size : 0, sizeof *out),
                        "ls_checkpoint_record r = { .size = sizeof r };");
    ls__safetensors file;
    ls_status st = ls__checkpoint_open(who, path, &file, out);
    ls__safetensors_close(&file);
    return st;
}
