/*
 * Walking a serialised tf.train.Example. Invariant: the ends of messages lie in one another
 * (list_end <= feature_end <= entry_end <= features_end <= end), because each length was checked
 * against what was left of the message around it.
 */
#include "data/example_wire.h"

static const uint32_t message_1 = LS__WIRE_TAG(1, LS__WIRE_BYTES);
static const uint32_t message_2 = LS__WIRE_TAG(2, LS__WIRE_BYTES);

/* ---- entries --------------------------------------------------------------------------------- */

void ls__example_open(ls__example *e, const void *data, size_t length)
{
    const uint8_t *begin = data;
    *e = (ls__example){ .wire = { .at = begin }, .features_end = begin, .end = begin + length };
}

static bool is_list(uint32_t tag)
{
    return (tag & 7) == LS__WIRE_BYTES && tag >> 3 >= LS__BYTES_LIST && tag >> 3 <= LS__INT64_LIST;
}

/* A Feature, up to `end`: where its last kind begins. Another Feature in the entry may have come
 * before, and goes on here if its kind does. */
static bool walk_feature(ls__wire *w, const uint8_t *end, ls__list *list)
{
    while (w->at < end) {
        const uint8_t *begin = w->at;
        uint32_t tag;
        if (!ls__wire_tag(w, end, &tag))
            return false;
        if (is_list(tag) && tag >> 3 != list->kind) {
            list->kind = (ls__list_kind)(tag >> 3);
            list->at = begin;
            list->feature_end = end;
        }
        if (!ls__wire_skip(w, end, tag))
            return false;
    }
    return true;
}

static bool walk_entry(ls__wire *w, const uint8_t *end, ls__entry *out)
{
    *out = (ls__entry){ .key = w->at, .list = { .entry_end = end } };
    while (w->at < end) {
        uint32_t tag;
        const uint8_t *inner;
        if (!ls__wire_tag(w, end, &tag))
            return false;
        if (tag != message_1 && tag != message_2) {
            if (!ls__wire_skip(w, end, tag))
                return false;
            continue;
        }
        if (!ls__wire_length(w, end, &inner))
            return false;
        if (tag == message_1) {
            out->key = w->at;
            out->key_length = (size_t)(inner - w->at);
            w->at = inner;
        } else if (!walk_feature(w, inner, &out->list)) {
            return false;
        }
    }
    return true;
}

bool ls__example_next(ls__example *e, ls__entry *out)
{
    ls__wire *w = &e->wire;
    while (w->at < e->end) {
        bool inside = w->at < e->features_end;
        const uint8_t *end = inside ? e->features_end : e->end, *inner;
        uint32_t tag;
        if (!ls__wire_tag(w, end, &tag))
            return false;
        if (tag != message_1) {
            if (!ls__wire_skip(w, end, tag))
                return false;
        } else if (!ls__wire_length(w, end, &inner)) {
            return false;
        } else if (inside) {
            return walk_entry(w, inner, out);
        } else {
            e->features_end = inner;
        }
    }
    return false;
}

/* ---- values ---------------------------------------------------------------------------------- */

void ls__runs_open(ls__runs *r, const ls__list *list)
{
    *r = (ls__runs){ .wire = { .at = list->at },
                     .kind = list->kind,
                     .list_end = list->at,
                     .feature_end = list->feature_end,
                     .entry_end = list->kind ? list->entry_end : list->at };
}

/* A field of the list: true with a run, or with *at NULL for what nobody knows. */
static bool walk_value(ls__runs *r, uint32_t tag, const uint8_t **at, const uint8_t **end)
{
    ls__wire *w = &r->wire;
    *at = NULL;
    if (tag == message_1) {
        if (!ls__wire_length(w, r->list_end, end))
            return false;
        if (r->kind == LS__FLOAT_LIST && (*end - w->at) % 4 != 0)
            return ls__wire_bad(w, "packed floats do not fill their length");
        *at = w->at;
        w->at = *end;
        return true;
    }
    const uint8_t *begin = w->at;
    if (!ls__wire_skip(w, r->list_end, tag))
        return false;
    if ((r->kind == LS__FLOAT_LIST && tag == LS__WIRE_TAG(1, LS__WIRE_FIXED32)) ||
        (r->kind == LS__INT64_LIST && tag == LS__WIRE_TAG(1, LS__WIRE_VARINT))) {
        *at = begin;
        *end = w->at;
    }
    return true;
}

/* Goes on to the next list: in this Feature, else in the next of the entry. */
static bool walk_to_list(ls__runs *r)
{
    ls__wire *w = &r->wire;
    bool inside = w->at < r->feature_end;
    const uint8_t *end = inside ? r->feature_end : r->entry_end;
    uint32_t tag;
    if (!ls__wire_tag(w, end, &tag))
        return false;
    if (tag == (inside ? LS__WIRE_TAG(r->kind, LS__WIRE_BYTES) : message_2))
        return ls__wire_length(w, end, inside ? &r->list_end : &r->feature_end);
    return ls__wire_skip(w, end, tag);
}

bool ls__runs_next(ls__runs *r, const uint8_t **at, const uint8_t **end)
{
    ls__wire *w = &r->wire;
    while (w->at < r->entry_end) {
        uint32_t tag;
        if (w->at >= r->list_end) {
            if (!walk_to_list(r))
                return false;
        } else if (!ls__wire_tag(w, r->list_end, &tag) || !walk_value(r, tag, at, end)) {
            return false;
        } else if (*at) {
            return true;
        }
    }
    return false;
}
