/*
 * Sharing out by files: which files a pipeline reads, what AUTO chooses and says, and what is refused.
 * Files are numbers, and file f has records 100 f, 100 f + 1, ...
 */
#include "data/autoshard.h"

#include "data/distribute_test_support.h"

static int64_t ten(int64_t file)
{
    (void)file;
    return 10;
}

static ls_dataset *ten_files(void)
{
    return read_files(ls_range(0, 10, 1), ten);
}

/* The files whose records are in it, in order, each whole. */
static void expect_files(ls_dataset *d, const char *want)
{
    char text[MOST_TEXT] = "";
    assert_non_null(d);
    ls_iterator *it = ls_iterate(d);
    ls_status st = LS_OK;
    for (int64_t i = 0; !st; i++)
        LS_FRAME {
            ls_value *x = NULL;
            st = ls_next(it, &x);
            if (st)
                break;
            int64_t record = ls_to_int(ls_leaf_tensor(x));
            assert_int_equal(record % 100, i % 10);
            if (i % 10 == 0)
                put_text(text, text[0] ? " %lld" : "%lld", (long long)(record / 100));
        }
    assert_int_equal(st, LS_END);
    assert_string_equal(text, want);
    ls_iterator_free(it);
}

static void t30_each_has_its_files(void **state)
{
    (void)state;
    LS_FRAME {
        expect_files(ls__shard_files("test", ten_files(), 5, 0), "0 5");
        expect_files(ls__shard_files("test", ten_files(), 5, 3), "3 8");
        expect_files(ls__shard_files("test", ten_files(), 3, 1), "1 4 7");
        expect_files(ls__shard_files("test", ten_files(), 1, 0), "0 1 2 3 4 5 6 7 8 9");
        expect_files(ls__shard_files("test", ten_files(), 10, 9), "9");
        expect_files(ls__shard_files("test", ten_files(), 500, 499), "");
        assert_int_equal(ls_error_pending(), LS_OK);
        assert_null(ls__shard_files("test", ten_files(), 500, 9));
        failed(LS_INVALID);
        assert_null(ls__shard_files("test", ten_files(), 2, 2));
        failed(LS_INVALID);
        assert_null(ls__shard_files("test", ten_files(), 2, -1));
        failed(LS_INVALID);
        assert_null(ls__shard_files("test", ls_range(0, 1024, 1), 2, 0));
        failed(LS_NOT_FOUND);
        /* no names at all: the end, for everybody */
        expect_files(ls__shard_files("test", read_files(ls_range(0, 0, 1), ten), 3, 0), "");
        assert_int_equal(ls_error_pending(), LS_OK);
    }
}

static int64_t counted(ls_dataset *names)
{
    ls_status st = LS_OK;
    int64_t n = -1;
    LS_FRAME {
        ls_dataset *d = ls__shard_files("test", read_files(names, ten), 4, 0);
        if (!d)
            st = ls_error_pending();
        else
            n = 0;
    }
    if (st)
        failed(LS_INVALID);
    return n;
}

/* Where their number is not known they are counted, up to P. */
static void names_are_counted_where_they_must_be(void **state)
{
    (void)state;
    LS_FRAME {
        assert_int_equal(counted(veiled(ls_range(0, 4, 1), &veil_stage)), 0);
        assert_int_equal(counted(veiled(ls_range(0, 3, 1), &veil_stage)), -1);
        assert_int_equal(counted(veiled(ls_range(0, 0, 1), &veil_stage)), 0);
        assert_int_equal(counted(veiled(ls_range(0, INT64_MAX, 1), &veil_stage)), 0);
    }
}

/* ---- trees --------------------------------------------------------------------------------------- */

/* Stages by their names alone, as autoshard.c looks at them. */
static const ls__stage files_like = STAGE_LIKE(.name = "files");
static const ls__stage interleave_like =
    STAGE_LIKE(.name = "interleave", .flags = LS__STAGE_OPAQUE);
static const ls__stage opaque_like = STAGE_LIKE(.name = "opaque", .flags = LS__STAGE_OPAQUE);

/* The stages from the end to the source, of first inputs. */
static const char *chain_of(const ls_dataset *d)
{
    static char text[MOST_TEXT];
    text[0] = '\0';
    for (; d; d = d->n_inputs ? d->inputs[0] : NULL)
        snprintf(text + strlen(text), MOST_TEXT - strlen(text), "%s%s", text[0] ? " < " : "",
                 d->stage->name);
    return text;
}

static ls_value *same(ls_value *element, void *user)
{
    (void)user;
    return element;
}

static void shuffles_of_names_come_behind_the_shard(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *names = ls_shuffle(ls_range(0, 6, 1), 4, 9);
        ls_dataset *d = ls_batch(read_files(names, ten), 4);
        assert_string_equal(chain_of(ls__shard_files("test", d, 2, 1)),
                            "batch < fake_reader < shuffle < shard < range");
        names = ls_shuffle(ls_map(ls_shuffle(ls_range(0, 6, 1), 4, 9), LS_MAP(.fn = same)), 4, 9);
        d = read_files(names, ten);
        assert_string_equal(chain_of(ls__shard_files("test", d, 2, 1)),
                            "fake_reader < shuffle < shuffle < shard < map < range");
        /* which names the first three are depends on the shuffle: it stays */
        d = read_files(ls_take(ls_shuffle(ls_range(0, 6, 1), 4, 9), 3), ten);
        assert_string_equal(chain_of(ls__shard_files("test", d, 2, 1)),
                            "fake_reader < shard < take < shuffle < range");
    }
}

static void functions_of_names_read_files(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *names = ls_shuffle(veiled(ls_range(0, 6, 1), &files_like), 4, 9);
        ls_dataset *d = ls_batch(veiled(names, &interleave_like), 4);
        assert_string_equal(chain_of(ls__shard_files("test", d, 3, 2)),
                            "batch < interleave < shuffle < shard < files < range");
        /* of records: nobody knows what it reads */
        d = veiled(read_files(veiled(ls_range(0, 6, 1), &files_like), ten), &interleave_like);
        assert_null(ls__shard_files("test", d, 3, 2));
        failed(LS_NOT_FOUND);
        d = veiled(ls_range(0, 6, 1), &interleave_like);
        assert_null(ls__shard_files("test", d, 3, 2));
        failed(LS_NOT_FOUND);
    }
}

/* A dataset of two, such as zip and concatenate make. */
static ls_dataset *both(ls_dataset *a, ls_dataset *b)
{
    ls__dataset_draft draft = { .stage = &veil_stage,
                                .n_inputs = 2,
                                .inputs = (ls_dataset *[]){ a, b },
                                .cardinality = LS_UNKNOWN };
    draft.type = ls__type_unknown();
    return ls__dataset_new(&draft, "both");
}

static void all_inputs_are_shared_out(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d =
            ls__shard_files("test", both(ten_files(), read_files(ls_range(50, 54, 1), ten)), 4, 1);
        assert_non_null(d);
        expect_files(d->inputs[0], "1 5 9");
        expect_files(d->inputs[1], "51");
        assert_null(ls__shard_files("test", both(ten_files(), ls_range(0, 9, 1)), 4, 1));
        failed(LS_NOT_FOUND);
    }
}

/* ---- what is chosen ------------------------------------------------------------------------------- */

typedef struct heard {
    int lines;
    ls_log_level level;
    char text[512];
} heard;

static void listen_in(ls_log_level level, const char *message, void *user)
{
    heard *h = user;
    h->lines++;
    h->level = level;
    snprintf(h->text, sizeof h->text, "%s", message);
}

static void expect_choice(ls_dataset *d, ls_auto_shard want, ls_log_level level, const char *line)
{
    heard h = { 0 };
    ls_auto_shard got = (ls_auto_shard)-1;
    ls_log_set(listen_in, &h, LS_LOG_DEBUG);
    assert_int_equal(ls__auto_shard_choose("who", d, 3, &got), LS_OK);
    ls_log_set(NULL, NULL, LS_LOG_WARNING);
    assert_int_equal(got, want);
    assert_int_equal(h.lines, 1);
    assert_int_equal(h.level, level);
    assert_string_equal(h.text, line);
}

static void one_line_says_what_was_chosen(void **state)
{
    (void)state;
    LS_FRAME {
        expect_choice(ls_batch(ten_files(), 4), LS_AUTO_SHARD_FILE, LS_LOG_INFO,
                      "who: 3 pipelines share the files (AUTO: FILE)");
        expect_choice(ls_with_auto_shard(ten_files(), LS_AUTO_SHARD_FILE), LS_AUTO_SHARD_FILE,
                      LS_LOG_INFO, "who: 3 pipelines share the files (FILE)");
        expect_choice(ls_batch(ls_range(0, 9, 1), 4), LS_AUTO_SHARD_DATA, LS_LOG_WARNING,
                      "who: 3 pipelines go through all data and keep their part (AUTO: DATA, since "
                      "'range 0 9 1' reads no files)");
        expect_choice(ls_with_auto_shard(ten_files(), LS_AUTO_SHARD_DATA), LS_AUTO_SHARD_DATA,
                      LS_LOG_INFO,
                      "who: 3 pipelines go through all data and keep their part (DATA)");
        expect_choice(ls_with_auto_shard(ten_files(), LS_AUTO_SHARD_OFF), LS_AUTO_SHARD_OFF,
                      LS_LOG_INFO, "who: 3 pipelines use all data each (OFF)");
    }
}

static void auto_looks_through_stages(void **state)
{
    (void)state;
    LS_FRAME {
        expect_choice(veiled(ten_files(), &opaque_like), LS_AUTO_SHARD_DATA, LS_LOG_WARNING,
                      "who: 3 pipelines go through all data and keep their part (AUTO: DATA, since "
                      "'opaque' hides what is read)");
        /* the first hundred of all are not the first hundred of each... */
        expect_choice(ls_take(ten_files(), 7), LS_AUTO_SHARD_DATA, LS_LOG_WARNING,
                      "who: 3 pipelines go through all data and keep their part (AUTO: DATA, since "
                      "'take 7' counts elements)");
        /* ...but whoever wants it so can have it */
        expect_choice(ls_with_auto_shard(ls_take(ten_files(), 7), LS_AUTO_SHARD_FILE),
                      LS_AUTO_SHARD_FILE, LS_LOG_INFO, "who: 3 pipelines share the files (FILE)");
        /* nor is the n-th record of one's files on one side the n-th of those on the other */
        ls_dataset *pairs = ls_zip(2, (ls_dataset *[]){ ten_files(), ten_files() });
        expect_choice(pairs, LS_AUTO_SHARD_DATA, LS_LOG_WARNING,
                      "who: 3 pipelines go through all data and keep their part (AUTO: DATA, since "
                      "'zip' pairs elements)");
        expect_choice(ls_with_auto_shard(pairs, LS_AUTO_SHARD_FILE), LS_AUTO_SHARD_FILE,
                      LS_LOG_INFO, "who: 3 pipelines share the files (FILE)");
        ls_auto_shard got;
        ls_dataset *d = ls_enumerate(ten_files(), 0);
        assert_int_equal(
            ls__auto_shard_choose("who", ls_with_auto_shard(d, LS_AUTO_SHARD_FILE), 3, &got),
            LS_NOT_FOUND);
        failed(LS_NOT_FOUND);
    }
}

/* A generator that goes on where it is. */
static ls_status next_number(void *state, ls_value **out)
{
    int64_t *at = state;
    if (*at == 10)
        return LS_END;
    *out = ls_leaf(ls_scalar_int(LS_I64, (*at)++));
    return LS_OK;
}

static void *begin_anew(void *user, int64_t iteration)
{
    (void)iteration;
    return user;
}

/* Names that are there once are not counted, nor dealt out among iterators. */
static void one_state_is_for_one_iterator(void **state)
{
    (void)state;
    LS_FRAME {
        int64_t at = 0;
        ls_auto_shard got;
        ls_dataset *d =
            ls_generate(LS_GENERATOR(.user = &at, .next = next_number, .spec = "i64[]"));
        ls_dataset *read = read_files(ls_shuffle(d, 2, 1), ten);
        expect_choice(read, LS_AUTO_SHARD_DATA, LS_LOG_WARNING,
                      "who: 3 pipelines go through all data and keep their part (AUTO: DATA, since "
                      "'generate' gives each name once)");
        assert_null(ls__shard_files("test", read, 3, 0));
        failed(LS_NOT_FOUND);
        ls_dataset *off = ls_with_auto_shard(ls_batch(d, 2), LS_AUTO_SHARD_OFF);
        assert_int_equal(ls__auto_shard_choose("who", off, 3, &got), LS_INVALID);
        assert_non_null(strstr(ls_error_hint(), ".open"));
        failed(LS_INVALID);
        assert_int_equal(at, 0); /* all are still there */
        d = ls_generate(
            LS_GENERATOR(.user = &at, .next = next_number, .open = begin_anew, .spec = "i64[]"));
        expect_choice(read_files(d, ten), LS_AUTO_SHARD_FILE, LS_LOG_INFO,
                      "who: 3 pipelines share the files (AUTO: FILE)");
    }
}

static void policies_travel(void **state)
{
    (void)state;
    LS_FRAME {
        ls_dataset *d = ls_range(0, 5, 1);
        assert_int_equal(ls__auto_shard_policy(d), LS_AUTO_SHARD_AUTO);
        ls_dataset *off = ls_with_auto_shard(d, LS_AUTO_SHARD_OFF);
        assert_int_equal(ls__auto_shard_policy(ls_batch(off, 2)), LS_AUTO_SHARD_OFF);
        assert_int_equal(ls__auto_shard_policy(both(d, off)), LS_AUTO_SHARD_OFF);
        assert_int_equal(ls__auto_shard_policy(ls_with_auto_shard(off, LS_AUTO_SHARD_DATA)),
                         LS_AUTO_SHARD_DATA);
        assert_string_equal(ls_dataset_text(off), "i64[]");
        assert_int_equal(ls_cardinality(off), 5);
        expect_steps(ls_batch(off, 2), 1, "[0 1][2 3][4]"); /* it changes no element */
        assert_null(ls_with_auto_shard(d, (ls_auto_shard)4));
        failed(LS_INVALID);
        assert_null(ls_with_auto_shard(NULL, LS_AUTO_SHARD_OFF));
        failed(LS_INVALID);
    }
    assert_string_equal(ls_auto_shard_name(LS_AUTO_SHARD_AUTO), "AUTO");
    assert_string_equal(ls_auto_shard_name(LS_AUTO_SHARD_FILE), "FILE");
    assert_string_equal(ls_auto_shard_name(LS_AUTO_SHARD_DATA), "DATA");
    assert_string_equal(ls_auto_shard_name(LS_AUTO_SHARD_OFF), "OFF");
    assert_string_equal(ls_auto_shard_name((ls_auto_shard)17), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(t30_each_has_its_files, clean),
        cmocka_unit_test_setup(names_are_counted_where_they_must_be, clean),
        cmocka_unit_test_setup(shuffles_of_names_come_behind_the_shard, clean),
        cmocka_unit_test_setup(functions_of_names_read_files, clean),
        cmocka_unit_test_setup(all_inputs_are_shared_out, clean),
        cmocka_unit_test_setup(one_line_says_what_was_chosen, clean),
        cmocka_unit_test_setup(auto_looks_through_stages, clean),
        cmocka_unit_test_setup(one_state_is_for_one_iterator, clean),
        cmocka_unit_test_setup(policies_travel, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
