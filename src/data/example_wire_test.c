/*
 * The reader of tf.train.Example against a second one, written differently: it copies, and joins
 * messages of one field literally, as protobuf says. Random examples in every encoding, then every
 * truncation and every flipped bit of some: both give the same values, or both refuse.
 */
#include "data/example_test_support.h"

/* ---- the second reader ------------------------------------------------------------------------- */

enum { MOST_FIELDS = 400, OTHER_KIND = -2, DAMAGED = -1 };

typedef struct field {
    uint64_t number, type, value; /* the value of a varint */
    size_t from, to;              /* the bytes of the others */
} field;

static bool slow_varint(const uint8_t *data, size_t size, size_t *at, uint64_t *out)
{
    *out = 0;
    for (unsigned i = 0; i < 10; i++) {
        if (*at + 1 > size)
            return false;
        uint8_t byte = data[(*at)++];
        *out += i == 9 ? (uint64_t)(byte & 1) << 63 : (uint64_t)(byte % 128) << (7 * i);
        if (byte / 128 == 0)
            return true;
    }
    return false;
}

static bool slow_field(const uint8_t *data, size_t size, size_t *at, int depth, field *f)
{
    size_t begin = *at;
    uint64_t tag, length;
    if (!slow_varint(data, size, at, &tag) || *at - begin > 5 || tag >= (1ull << 32) || tag < 8)
        return false;
    *f = (field){ .number = tag / 8, .type = tag % 8, .from = *at };
    switch (f->type) {
    case 0:
        f->to = *at;
        if (!slow_varint(data, size, &f->to, &f->value))
            return false;
        break;
    case 1:
    case 5:
        f->to = f->from + (f->type == 1 ? 8 : 4);
        break;
    case 2:
        if (!slow_varint(data, size, at, &length) || length > size)
            return false;
        f->from = *at;
        f->to = f->from + (size_t)length;
        break;
    case 3:
        for (f->to = *at;;) {
            field inside;
            if (f->to >= size || depth >= 100 ||
                !slow_field(data, size, &f->to, depth + 1, &inside))
                return false;
            if (inside.type == 4 && inside.number != f->number)
                return false;
            if (inside.type == 4)
                break;
        }
        break;
    case 4:
        f->to = *at; /* whether it may stand there, who asked knows */
        break;
    default:
        return false;
    }
    *at = f->to;
    return f->to <= size;
}

/* All fields of a message; DAMAGED. */
static int slow_fields(const uint8_t *data, size_t size, field *out)
{
    int n = 0;
    for (size_t at = 0; at < size; n++) {
        assert_true(n < MOST_FIELDS);
        if (!slow_field(data, size, &at, 1, &out[n]) || out[n].type == 4)
            return DAMAGED;
    }
    return n;
}

static void join(bytes *to, const uint8_t *message, const field *f)
{
    put(to, message + f->from, f->to - f->from);
}

/* Of a Feature: its kind (0: none), and in `list` the body of the list. */
static int slow_feature(const bytes *feature, bytes *list)
{
    field fields[MOST_FIELDS];
    int n = slow_fields(feature->at, feature->n, fields), kind = 0;
    for (int i = 0; i < n; i++) {
        if (fields[i].type != 2 || fields[i].number > 3)
            continue;
        if ((int)fields[i].number != kind)
            list->n = 0;
        kind = (int)fields[i].number;
        join(list, feature->at, &fields[i]);
    }
    return n < 0 ? DAMAGED : kind;
}

/* Whether a Feature is whole on its own: joined with another, its end might hide. */
static bool slow_entry(const uint8_t *data, size_t size, bytes *key, bytes *feature)
{
    field fields[MOST_FIELDS], inside[MOST_FIELDS];
    int n = slow_fields(data, size, fields);
    key->n = feature->n = 0;
    for (int i = 0; i < n; i++) {
        const field *f = &fields[i];
        if (f->type == 2 && f->number == 1) {
            key->n = 0;
            join(key, data, f);
        } else if (f->type == 2 && f->number == 2) {
            if (slow_fields(data + f->from, f->to - f->from, inside) < 0)
                return false;
            join(feature, data, f);
        }
    }
    return n >= 0;
}

/* The kind of the feature under `key`, and its list. */
static int slow_example(const uint8_t *data, size_t size, const char *wanted, bytes *list)
{
    static field outer[MOST_FIELDS], entries[MOST_FIELDS];
    bytes key, feature;
    int kind = 0, n = slow_fields(data, size, outer);
    for (int i = 0; i < n; i++) {
        if (outer[i].type != 2 || outer[i].number != 1)
            continue;
        const uint8_t *features = data + outer[i].from;
        int m = slow_fields(features, outer[i].to - outer[i].from, entries);
        for (int j = 0; j < m; j++) {
            const field *e = &entries[j];
            if (e->type != 2 || e->number != 1)
                continue;
            if (!slow_entry(features + e->from, e->to - e->from, &key, &feature))
                return DAMAGED;
            if (key.n != strlen(wanted) || memcmp(key.at, wanted, key.n) != 0)
                continue;
            list->n = 0;
            kind = slow_feature(&feature, list);
        }
        if (m < 0)
            return DAMAGED;
    }
    return n < 0 ? DAMAGED : kind;
}

typedef struct answer {
    int count; /* or DAMAGED, or OTHER_KIND */
    int64_t ints[MOST_FIELDS];
    uint32_t floats[MOST_FIELDS]; /* their bits */
    struct {
        size_t from, to;
    } strings[MOST_FIELDS]; /* in list */
    bytes list;
} answer;

/* The values of a list, as those of `kind`. */
static void slow_values(int kind, answer *a)
{
    static field fields[MOST_FIELDS];
    const uint8_t *data = a->list.at;
    int n = slow_fields(data, a->list.n, fields);
    a->count = n < 0 ? DAMAGED : 0;
    for (int i = 0; i < n && a->count >= 0; i++) {
        const field *f = &fields[i];
        if (f->number != 1)
            continue;
        if (kind == 1 && f->type == 2) {
            a->strings[a->count].from = f->from;
            a->strings[a->count++].to = f->to;
        }
        if (kind == 2 && f->type == 2 && (f->to - f->from) % 4)
            a->count = DAMAGED;
        else if (kind == 2 && (f->type == 2 || f->type == 5))
            for (size_t at = f->from; at < f->to; at += 4)
                memcpy(&a->floats[a->count++], data + at, 4);
        if (kind == 3 && f->type == 0)
            a->ints[a->count++] = (int64_t)f->value;
        if (kind == 3 && f->type == 2)
            for (size_t at = f->from; at < f->to && a->count >= 0;) {
                uint64_t value;
                if (slow_varint(data, f->to, &at, &value))
                    a->ints[a->count++] = (int64_t)value;
                else
                    a->count = DAMAGED;
            }
        assert_true(a->count < MOST_FIELDS - 100);
    }
}

static void slow_parse(const uint8_t *data, size_t size, const char *key, int wanted, answer *a)
{
    a->list.n = 0;
    int kind = slow_example(data, size, key, &a->list);
    if (kind == DAMAGED || kind == 0)
        a->count = kind;
    else if (kind != wanted)
        a->count = OTHER_KIND;
    else
        slow_values(kind, a);
}

/* ---- both --------------------------------------------------------------------------------------- */

static const char *const keys[] = { "a", "bc", "" };
static const ls_dtype dtypes[] = { LS_BYTES, LS_F32, LS_I64 };

static bool same_strings(const answer *a, const ls_tensor *values)
{
    for (int i = 0; i < a->count; i++) {
        const void *data;
        size_t length, want = a->strings[i].to - a->strings[i].from;
        if (ls_string_at(values, i, &data, &length) || length != want ||
            memcmp(data, a->list.at + a->strings[i].from, length) != 0 ||
            ((const char *)data)[length] != '\0')
            return false;
    }
    return true;
}

static bool same_answer(const answer *a, const ls_value *v, int kind)
{
    if (a->count < 0)
        return !v && ls_error() == (a->count == DAMAGED ? LS_CORRUPT : LS_SHAPE);
    if (!v)
        return false;
    const ls_tensor *values = ls_leaf_tensor(ls_get(v, "values"));
    if (ls_to_int(ls_leaf_tensor(ls_get(v, "counts"))) != a->count || ls_count(values) != a->count)
        return false;
    if (kind == 1)
        return same_strings(a, values);
    return memcmp(ls_data(values), kind == 2 ? (const void *)a->floats : a->ints,
                  (size_t)a->count * (kind == 2 ? 4 : 8)) == 0;
}

static int values_seen, refusals_seen;

static void compare(const uint8_t *data, size_t size, const char *what, int number)
{
    static answer a;
    LS_FRAME {
        ls_tensor *t = exact_string(data, size);
        for (int k = 0; k < 9; k++) {
            ls_feature f = { .key = keys[k / 3], .dtype = dtypes[k % 3], .variable = true };
            ls_value *v = ls_parse_examples(t, 1, &f);
            slow_parse(data, size, f.key, k % 3 + 1, &a);
            if (!same_answer(&a, v ? ls_get(v, f.key) : NULL, k % 3 + 1))
                fail_msg("%s %d, '%s' as %s: wanted %d values, got %s", what, number, f.key,
                         ls_dtype_name(f.dtype), a.count, v ? "others" : ls_error_report());
            values_seen += a.count > 0;
            refusals_seen += a.count < 0;
        }
    }
}

/* ---- random examples ------------------------------------------------------------------------------ */

static void put_any_length(bytes *b, uint64_t *s, uint32_t number, const bytes *inner)
{
    put_padded(b, number << 3 | 2, below(s, 8) ? 1 : 1 + below(s, 5));
    put_padded(b, inner->n, below(s, 8) ? 1 : 1 + below(s, 10));
    put(b, inner->at, inner->n);
}

/* What no reader knows: other numbers, or a known number with another type. */
static void put_unknown(bytes *b, uint64_t *s, int depth)
{
    static const uint32_t numbers[] = { 4, 5, 15, 16, 2047, 2048, (1u << 29) - 1 };
    static const uint32_t types[] = { 0, 1, 2, 3, 5 };
    uint32_t number = numbers[below(s, 7)], type = types[below(s, depth > 3 ? 3 : 5)];
    uint64_t noise[2] = { draw(s), draw(s) };
    if (below(s, 4) == 0) {
        number = 1 + (uint32_t)below(s, 3);
        type = below(s, 2) ? 1 : 3;
    }
    put_tag(b, number, type);
    if (type == 0)
        put_padded(b, noise[0] >> below(s, 64), 1 + below(s, 10));
    else if (type == 1)
        put(b, noise, 8);
    else if (type == 5)
        put(b, noise, 4);
    else if (type == 2)
        put_varint(b, (uint64_t)below(s, 12)), put(b, noise, b->at[b->n - 1]);
    if (type != 3)
        return;
    for (int i = below(s, 3); i > 0; i--)
        put_unknown(b, s, depth + 1);
    put_tag(b, number, 4);
}

static void put_random_list(bytes *b, uint64_t *s, int kind)
{
    for (int i = below(s, 5); i > 0; i--) {
        uint64_t noise[3] = { draw(s), draw(s) >> below(s, 64), draw(s) };
        bytes run = { .n = 0 };
        if (below(s, 6) == 0)
            put_unknown(b, s, 0);
        if (kind == 1) {
            put(&run, noise, (size_t)below(s, 20));
            put_any_length(b, s, 1, &run);
        } else if (kind == 2 && below(s, 2)) {
            put(&run, noise, 4 * (size_t)below(s, 5));
            put_any_length(b, s, 1, &run);
        } else if (kind == 2) {
            put_tag(b, 1, 5);
            put(b, noise, 4);
        } else if (below(s, 2)) {
            for (int j = below(s, 5); j > 0; j--)
                put_padded(&run, draw(s) >> below(s, 64), 1 + below(s, 10));
            put_any_length(b, s, 1, &run);
        } else {
            put_tag(b, 1, 0);
            put_padded(b, noise[1], 1 + below(s, 10));
        }
    }
}

static void put_random_feature(bytes *b, uint64_t *s)
{
    int kind = 1 + below(s, 3);
    for (int i = below(s, 4); i > 0; i--) {
        bytes list = { .n = 0 };
        if (below(s, 8) == 0)
            put_unknown(b, s, 0);
        put_random_list(&list, s, kind);
        put_any_length(b, s, (uint32_t)kind, &list);
        if (below(s, 3) == 0)
            kind = 1 + below(s, 3);
    }
}

static void put_random_entry(bytes *b, uint64_t *s)
{
    bytes entry = { .n = 0 };
    int keys_left = below(s, 12) ? 1 : below(s, 3), values = below(s, 6) ? 1 : below(s, 4);
    while (keys_left > 0 || values > 0) {
        bytes part = { .n = 0 };
        bool key = values == 0 || (keys_left > 0 && below(s, 3));
        if (below(s, 10) == 0)
            put_unknown(&entry, s, 0);
        if (key) {
            const char *name = below(s, 5) ? keys[below(s, 3)] : "nobody asks for it";
            put(&part, name, strlen(name));
            keys_left--;
        } else {
            put_random_feature(&part, s);
            values--;
        }
        put_any_length(&entry, s, key ? 1 : 2, &part);
    }
    put_any_length(b, s, 1, &entry);
}

static void random_example(bytes *b, uint64_t seed)
{
    uint64_t s = seed;
    b->n = 0;
    for (int i = below(&s, 8) ? 1 : below(&s, 4); i > 0; i--) {
        bytes features = { .n = 0 };
        if (below(&s, 8) == 0)
            put_unknown(b, &s, 0);
        for (int j = below(&s, 6); j > 0; j--) {
            put_random_entry(&features, &s);
            if (below(&s, 8) == 0)
                put_unknown(&features, &s, 0);
        }
        put_any_length(b, &s, 1, &features);
    }
}

/* ---- the tests --------------------------------------------------------------------------------------- */

static void any_encoding(void **state)
{
    static bytes b;
    (void)state;
    values_seen = refusals_seen = 0;
    for (int i = 0; i < 8000; i++) {
        random_example(&b, (uint64_t)i);
        compare(b.at, b.n, "example", i);
    }
    assert_true(values_seen > 5000 &&
                refusals_seen > 5000); /* the generator makes what is to be tested */
    assert_int_equal(ls_error_pending(), LS_OK);
}

/* Some small examples, from those that have something in them. */
static bool worth_damaging(const bytes *b)
{
    return b->n > 40 && b->n < 160;
}

static void every_truncation(void **state)
{
    static bytes b;
    (void)state;
    values_seen = refusals_seen = 0;
    for (int i = 0, done = 0; done < 60; i++) {
        random_example(&b, (uint64_t)i);
        if (!worth_damaging(&b))
            continue;
        for (size_t n = 0; n < b.n; n++)
            compare(b.at, n, "cut to", (int)n);
        done++;
    }
    assert_true(refusals_seen > 10000);
}

static void every_flipped_bit(void **state)
{
    static bytes b;
    (void)state;
    values_seen = refusals_seen = 0;
    for (int i = 5000, done = 0; done < 12; i++) {
        random_example(&b, (uint64_t)i);
        if (!worth_damaging(&b))
            continue;
        for (size_t bit = 0; bit < 8 * b.n; bit++) {
            b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
            compare(b.at, b.n, "with bit flipped", (int)bit);
            b.at[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        done++;
    }
    assert_true(refusals_seen > 10000 && values_seen > 1000);
}

/* Groups as deep as protobuf takes them, and deeper. */
static void deep_groups(void **state)
{
    (void)state;
    for (int depth = 1; depth <= 2000; depth += depth < 95 || depth > 105 ? 94 : 1) {
        static bytes b;
        bytes features = { .n = 0 }, one = int_feature(1, (int64_t[]){ 7 });
        put_entry(&features, "a", &one);
        b.n = 0;
        put_message(&b, 1, &features);
        for (int i = 0; i < depth; i++)
            put_tag(&b, 9, 3);
        for (int i = 0; i < depth; i++)
            put_tag(&b, 9, 4);
        LS_FRAME {
            ls_value *v = ls_parse_examples(exact_string(b.at, b.n), 1,
                                            &(ls_feature){ .key = "a", .dtype = LS_I64 });
            if (depth > 100)
                failed(LS_CORRUPT);
            else
                assert_int_equal(ls_to_int(ls_leaf_tensor(ls_get(v, "a"))), 7);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(any_encoding, clean),
        cmocka_unit_test_setup(every_truncation, clean),
        cmocka_unit_test_setup(every_flipped_bit, clean),
        cmocka_unit_test_setup(deep_groups, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
