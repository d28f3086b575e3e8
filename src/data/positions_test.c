/*
 * Positions of chains of stages, made at random: for every one of them, at every element.
 */
#include "data/stage_test.h"

/* Keeps about two of three, by what it is and by what is drawn. */
static bool keep_some(ls_value *v, void *user)
{
    (void)user;
    double drawn = ls_to_double(ls_random_uniform(LS_F32, 0, NULL, 0, 1));
    return hash_value(v) % 5 != 0 && drawn < 0.8;
}

static ls_dataset *source(uint64_t *r)
{
    const int64_t n = (int64_t)(draw_number(r) % 14);
    switch (draw_number(r) % 5) {
    case 0:
        return ls_range(5, 5 + n, 1);
    case 1: {
        static const char *const words[14] = { "a", "bc", "",  "def", "g", "hi", "j",
                                               "a", "kl", "m", "nop", "",  "q",  "r" };
        return ls_slices(ls_leaf(ls_from_strings(1, &n, (const void *const *)words, NULL)));
    }
    default:
        return WATCH(.count = n, .heavy = draw_number(r) % 2, .lasting = draw_number(r) % 3 == 0,
                     .unknown = draw_number(r) % 4 == 0,
                     .fail_every = draw_number(r) % 3 ? 0 : 2 + (int64_t)(draw_number(r) % 4));
    }
}

static ls_dataset *chain(uint64_t *r, int depth);

static ls_dataset *stage(ls_dataset *d, uint64_t *r, int depth, bool *rows)
{
    const int64_t small = 1 + (int64_t)(draw_number(r) % 4);
    switch (draw_number(r) % 13) {
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
        ls_dataset *both[] = { d, depth > 0 ? chain(r, depth - 1) : ls_range(0, 9, 1) };
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
    default:
        *rows = !*rows;
        if (!*rows)
            return ls_unbatch(d);
        if (draw_number(r) % 2)
            return ls_padded_batch(d, small, LS_PADDED(.full = draw_number(r) % 2));
        return draw_number(r) % 2 ? ls_batch(d, small) : ls_batch_full(d, small);
    }
}

static ls_dataset *chain(uint64_t *r, int depth)
{
    bool rows = false;
    ls_dataset *d = source(r);
    for (uint64_t n = 1 + draw_number(r) % 4; n > 0; n--)
        d = stage(d, r, depth, &rows);
    return d;
}

static ls_dataset *build(uint64_t seed)
{
    uint64_t r = seed;
    return chain(&r, 1);
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
