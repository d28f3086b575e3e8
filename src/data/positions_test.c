/*
 * Positions of chains of stages, made at random: for every one of them, at every element and behind every
 * failure.
 */
#include "data/stage_test.h"

/* A chain in the making. */
typedef struct making {
    uint64_t draws;
    bool threads; /* some stages run ahead: in few chains, since it takes its time */
    bool fails;   /* functions fail */
    int made;     /* stages that make many elements of one */
} making;

enum { MOST_MADE = 2 };

/* Keeps about two of three, by what it is and by what is drawn. */
static bool keep_some(ls_value *v, void *user)
{
    (void)user;
    double drawn = ls_to_double(ls_random_uniform(LS_F32, 0, NULL, 0, 1));
    return hash_value(v) % 5 != 0 && drawn < 0.8;
}

/* A function that has it as its user fails at times. */
static int fails;

static ls_value *same(ls_value *v, void *user)
{
    if (!user || hash_value(v) % 6)
        return v;
    ls__fail(LS_IO, "same: fails");
    return NULL;
}

static ls_dataset *some_numbers(ls_value *v, void *user)
{
    const uint64_t h = hash_value(v);
    if (user && h % 7 == 0) {
        ls__fail(LS_IO, "some numbers: fails");
        return NULL;
    }
    ls_dataset *d = WATCH(.count = (int64_t)(h / 7 % 5), .heavy = h & 1024,
                          .fail_every = user && h % 3 == 0 ? 3 : 0);
    return h & 2048 ? ls_shuffle(d, 2, 5) : d;
}

/* Numbers from 0 on, of which every `fails`'th fails; it remembers where it is. */
typedef struct counting {
    int64_t at;
} counting;

static void *begin_counting(void *user, int64_t iteration)
{
    (void)user;
    (void)iteration;
    return calloc(1, sizeof(counting));
}

static ls_status count_on(void *state, ls_value **out)
{
    counting *c = state;
    if (c->at++ == 9)
        return LS_END;
    if (c->at % 4 == 0)
        return ls__fail(LS_IO, "count on: fails");
    *out = ls_leaf(ls_scalar_int(LS_I64, c->at));
    return LS_OK;
}

static ls_tensor *tell_count(void *state)
{
    return ls_from(LS_U8, LS_DIMS(sizeof(counting)), state);
}

static ls_status set_count(void *state, const ls_tensor *saved)
{
    memcpy(state, ls__data(saved), sizeof(counting));
    return LS_OK;
}

static ls_dataset *source(uint64_t *r)
{
    const int64_t n = (int64_t)(draw_number(r) % 14);
    switch (draw_number(r) % 6) {
    case 0:
        return ls_range(5, 5 + n, 1);
    case 1: {
        static const char *const words[14] = { "a", "bc", "",  "def", "g", "hi", "j",
                                               "a", "kl", "m", "nop", "",  "q",  "r" };
        return ls_slices(ls_leaf(ls_from_strings(1, &n, (const void *const *)words, NULL)));
    }
    case 2:
        return ls_generate(LS_GENERATOR(.open = begin_counting, .close = free, .next = count_on,
                                        .save = tell_count, .load = set_count));
    default:
        return WATCH(.count = n, .heavy = draw_number(r) % 2, .lasting = draw_number(r) % 3 == 0,
                     .unknown = draw_number(r) % 4 == 0,
                     .fail_every = draw_number(r) % 3 ? 0 : 2 + (int64_t)(draw_number(r) % 4));
    }
}

static ls_dataset *chain(making *m, int depth);

/* Many of each element; not of all too many. */
static ls_dataset *made_of(ls_dataset *d, making *m, int64_t small)
{
    uint64_t *r = &m->draws;
    void *user = m->fails ? &fails : NULL;
    if (m->made++ >= MOST_MADE)
        return d;
    if (draw_number(r) % 3 == 0)
        return ls_flat_map(d, some_numbers, user);
    return ls_interleave(d, LS_INTERLEAVE(.fn = some_numbers, .user = user, .cycle = (int)small,
                                          .block = 1 + (int64_t)(draw_number(r) % 3),
                                          .parallel = m->threads ? (int)(draw_number(r) % 3) : 0));
}

static ls_dataset *stage(ls_dataset *d, making *m, int depth, bool *rows)
{
    uint64_t *r = &m->draws;
    const int64_t small = 1 + (int64_t)(draw_number(r) % 4);
    switch (draw_number(r) % 20) {
    case 0:
    case 1:
        return ls_shuffle(d, 1 + (int64_t)(draw_number(r) % 9), draw_number(r));
    case 2:
        return ls_shuffle_once(d, 1 + (int64_t)(draw_number(r) % 9), draw_number(r));
    case 3:
        return ls_repeat(d, small - 1);
    case 4:
        return ls_shard(d, small, (int64_t)(draw_number(r) % (uint64_t)small));
    case 5:
        return ls_concatenate(d, ls_skip(d, small));
    case 6:
        return ls_concatenate(ls_shuffle(d, small, 1), d);
    case 7: {
        ls_dataset *both[] = { d, depth > 0 ? chain(m, depth - 1) : ls_range(0, 9, 1) };
        *rows = false;
        return ls_zip(2, both);
    }
    case 8:
        *rows = false;
        return ls_enumerate(d, -3);
    case 9:
        return ls_filter(d, keep_some, NULL);
    case 10:
        return draw_number(r) % 2 ? ls_take(d, 2 * small) : ls_skip(d, small);
    case 11:
    case 12:
        return ls_map(d, LS_MAP(.fn = same, .user = m->fails ? &fails : NULL,
                                .parallel = m->threads ? (int)(draw_number(r) % 4) : 0));
    case 13:
        return ls_prefetch(d, m->threads ? small : 0);
    case 14:
    case 15:
        *rows = false;
        return made_of(d, m, small);
    case 16:
        return ls_cache(d, NULL);
    default:
        *rows = !*rows;
        if (!*rows)
            return ls_unbatch(d);
        if (draw_number(r) % 2)
            return ls_padded_batch(d, small, LS_PADDED(.full = draw_number(r) % 2));
        return draw_number(r) % 2 ? ls_batch(d, small) : ls_batch_full(d, small);
    }
}

static ls_dataset *chain(making *m, int depth)
{
    bool rows = false;
    ls_dataset *d = source(&m->draws);
    for (uint64_t n = 1 + draw_number(&m->draws) % 4; n > 0; n--)
        d = stage(d, m, depth, &rows);
    return d;
}

static ls_dataset *build(uint64_t seed)
{
    making m = { .draws = seed, .threads = seed % 16 == 0, .fails = seed % 3 == 0 };
    return chain(&m, 1);
}

/* ---- trying --------------------------------------------------------------------------------------- */

static uint64_t trying;
static bool done;

static void tell(const ls_dataset *d)
{
    print_message("%s(", d->text);
    for (int i = 0; i < d->n_inputs; i++)
        tell(d->inputs[i]);
    print_message(")");
}

/* What failed. */
static int tell_chain(void **state)
{
    (void)state;
    ls_error();
    LS_FRAME {
        if (!done) {
            print_message("seed %llu: ", (unsigned long long)trying);
            tell(build(trying));
            print_message("\n");
        }
    }
    return 0;
}

static void random_chains(void **state)
{
    (void)state;
    enum { CHAINS = 400 };
    int most = 0, with_some = 0;
    for (trying = 0; trying < CHAINS; trying++) {
        int elements = check_positions(build, trying, trying % 3);
        most = elements > most ? elements : most;
        with_some += elements > 3;
    }
    assert_true(most > 50 && with_some > CHAINS / 3); /* else it tried nothing */
    done = true;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup_teardown(random_chains, clean,
                                                                        tell_chain) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
