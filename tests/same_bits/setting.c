/*
 * Settings as text. One table has all fields; a new one is a line here and one in same_bits.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "same_bits/same_bits.h"

static const char *const kinds[] = { "traced", "exact", "eager", NULL };
static const char *const crosses[] = { "auto", "direct", "to-one", "hierarchical", NULL };
static const char *const failures[] = { "none", "early", "late", NULL };

typedef struct field {
    const char *name;
    size_t at;
    int low, high;
    const char *const *words; /* NULL: a number */
} field;

#define FIELD(name, low, high, words)                                                              \
    {                                                                                              \
#name, offsetof(sb_setting, name), low, high, words                                        \
    }
static const field fields[] = {
    FIELD(recipe, 0, SB_RECIPES - 1, sb_recipe_names),
    FIELD(replicas, 1, 64, NULL),
    FIELD(steps, 1, 100000, NULL),
    FIELD(seed, 0, 1 << 30, NULL),
    FIELD(kind, 0, 2, kinds),
    FIELD(devices, 1, 64, NULL),
    FIELD(cross, 0, 3, crosses),
    FIELD(packs, 0, 65536, NULL),
    FIELD(pack_bytes, 0, 1 << 30, NULL),
    FIELD(small_bytes, 0, 1 << 30, NULL),
    FIELD(small_group, 0, 1 << 30, NULL),
    FIELD(sequential, 0, 1, NULL),
    FIELD(move, 0, 64, NULL),
    FIELD(failure, 0, 2, failures),
};
enum { FIELDS = sizeof fields / sizeof *fields };

static int get(const sb_setting *s, const field *f)
{
    int value;
    memcpy(&value, (const char *)s + f->at, sizeof value);
    return value;
}

static void set(sb_setting *s, const field *f, int value)
{
    memcpy((char *)s + f->at, &value, sizeof value);
}

sb_setting sb_reference(int recipe, int replicas, int steps)
{
    return (sb_setting){ .recipe = recipe,
                         .replicas = replicas,
                         .steps = steps,
                         .seed = 1,
                         .devices = 1,
                         .cross = LS_CROSS_DEVICE_DIRECT };
}

sb_setting sb_reference_of(const sb_setting *s)
{
    sb_setting r = sb_reference(s->recipe, s->replicas, s->steps);
    r.seed = s->seed;
    r.kind = s->kind == SB_TRACED ? SB_TRACED : SB_EXACT;
    return r;
}

const char *sb_text(const sb_setting *s, char out[SB_TEXT])
{
    const sb_setting usual = sb_reference(-1, 0, 0);
    int at = 0;
    out[0] = 0;
    for (int i = 0; i < FIELDS && at < SB_TEXT; i++) {
        const field *f = &fields[i];
        int value = get(s, f);
        if (value == get(&usual, f))
            continue;
        const char *gap = at ? " " : "";
        size_t room = (size_t)(SB_TEXT - at);
        at += f->words ? snprintf(out + at, room, "%s%s=%s", gap, f->name, f->words[value])
                       : snprintf(out + at, room, "%s%s=%d", gap, f->name, value);
    }
    return out;
}

static const field *find(const char *argument, size_t length)
{
    for (int i = 0; i < FIELDS; i++)
        if (strlen(fields[i].name) == length && memcmp(fields[i].name, argument, length) == 0)
            return &fields[i];
    return NULL;
}

/* Whether the text is a value of the field. */
static bool read(const field *f, const char *text, int *out)
{
    for (int i = 0; f->words && f->words[i]; i++)
        if (strcmp(f->words[i], text) == 0) {
            *out = i;
            return true;
        }
    char *end;
    long value = strtol(text, &end, 10);
    *out = (int)value;
    return !f->words && end != text && !*end && value >= f->low && value <= f->high;
}

static void explain(const field *f, const char *argument, char *problem)
{
    int at = snprintf(problem, SB_TEXT, "'%.60s': there is ", argument);
    if (!f)
        for (int i = 0; i < FIELDS; i++)
            at += snprintf(problem + at, (size_t)(SB_TEXT - at), "%s%s", i ? ", " : "",
                           fields[i].name);
    else if (!f->words)
        snprintf(problem + at, (size_t)(SB_TEXT - at), "%s=%d to %d", f->name, f->low, f->high);
    else
        for (int i = 0; f->words[i] && at < SB_TEXT; i++)
            at +=
                snprintf(problem + at, (size_t)(SB_TEXT - at), "%s%s", i ? ", " : "", f->words[i]);
}

bool sb_parse(int count, char *const *arguments, sb_setting *out, char problem[SB_TEXT])
{
    sb_setting s = sb_reference(0, 5, 200);
    for (int i = 0; i < count; i++) {
        size_t length = strcspn(arguments[i], "=");
        const field *f = find(arguments[i], length);
        int value;
        if (!f || !arguments[i][length] || !read(f, arguments[i] + length + 1, &value)) {
            explain(f, arguments[i], problem);
            return false;
        }
        set(&s, f, value);
    }
    *out = s;
    return true;
}

void sb_set_packing(sb_setting *s, int i)
{
    static const struct {
        int packs, pack_bytes, small_bytes, small_group;
    } all[SB_PACKINGS] = {
        { .packs = 0 },
        { .packs = 1 },
        { .packs = 3 },
        { .packs = 7 },
        { .packs = 1000 },
        { .pack_bytes = 1 },
        { .pack_bytes = 100 },
        { .pack_bytes = 4096 },
        { .pack_bytes = 1 << 20, .small_bytes = 200, .small_group = 3 },
        { .small_bytes = 4096, .small_group = 2 },
    };
    s->packs = all[i % SB_PACKINGS].packs;
    s->pack_bytes = all[i % SB_PACKINGS].pack_bytes;
    s->small_bytes = all[i % SB_PACKINGS].small_bytes;
    s->small_group = all[i % SB_PACKINGS].small_group;
}
