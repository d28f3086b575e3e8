/*
 * Streams: every byte in its place whatever the pieces, plain, gzip and zlib; going to and fro;
 * files that end too early, are damaged or change; memory that grows with what is read only.
 */
#include "os/stream.h"

#include <sys/stat.h>

#include "os/file_test_support.h"

static int clean(void **state)
{
    (void)state;
    ls_error();
    empty_test_dir();
    return 0;
}

static void failed(ls_status want, const char *word)
{
    if (ls_error_pending() != want || !strstr(ls_error_text(), word))
        fail_msg("wanted %s with '%s', got %s", ls_status_name(want), word, ls_error_report());
    ls_error();
}

/* Bytes that tell their place. */
static unsigned char byte_at(uint64_t i)
{
    return (unsigned char)(i * 31 + (i >> 8) * 17 + (i >> 16));
}

enum { LONG = 900000 };

static bytes sample(size_t n)
{
    bytes b = { 0 };
    for (size_t i = 0; i < n; i++)
        add_number(&b, byte_at(i), 1);
    return b;
}

/* Writes the file as this kind; false where the build cannot read it. */
static bool put_as(ls__compression kind, const char *name, const bytes *b)
{
    bytes packed = { 0 };
    if (kind == LS__GZIP)
        add_gzip(&packed, b->at, b->n);
    else if (kind == LS__ZLIB)
        add_zlib(&packed, b->at, b->n);
    if (kind == LS__PLAIN)
        put_file(name, b->at, b->n);
    else
        put_file(name, packed.at, packed.n);
    free_bytes(&packed);
    return kind == LS__PLAIN || HAVE_ZLIB;
}

static void check_window(const ls__stream *s)
{
    uint64_t offset = ls__stream_offset(s);
    for (size_t i = 0; i < ls__stream_left(s); i++)
        if (s->at[i] != byte_at(offset + i))
            fail_msg("byte %llu is wrong", (unsigned long long)(offset + i));
}

static void pieces_of_any_size(void **state)
{
    (void)state;
    static const size_t pieces[] = { 1, 7, 4096, 100003, LS__STREAM_BYTES, 300000, LONG };
    bytes b = sample(LONG);
    ls__stream s = { 0 };
    int files = open_files();
    for (ls__compression kind = LS__PLAIN; kind <= LS__ZLIB; kind++) {
        if (!put_as(kind, "x", &b))
            continue;
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
            uint64_t at = 0;
            assert_int_equal(ls__stream_open(&s, in_dir("x"), kind), LS_OK);
            for (; ls__stream_fill(&s, pieces[k]) == LS_OK; at += pieces[k]) {
                assert_int_equal(ls__stream_offset(&s), at);
                assert_true(ls__stream_left(&s) >= pieces[k]);
                if (pieces[k] > 1000)
                    check_window(&s);
                assert_int_equal(s.at[0], byte_at(at));
                s.at += pieces[k];
            }
            assert_int_equal(ls__stream_fill(&s, pieces[k]), LS_END);
            assert_int_equal(at + ls__stream_left(&s), LONG);
            check_window(&s);
        }
    }
    ls__stream_free(&s);
    assert_int_equal(open_files(), files);
    assert_int_equal(ls_error_pending(), LS_OK);
    free_bytes(&b);
}

static void going_to_and_fro(void **state)
{
    (void)state;
    bytes b = sample(LONG);
    for (ls__compression kind = LS__PLAIN; kind <= LS__ZLIB; kind++) {
        ls__stream s = { 0 };
        uint64_t random = 1;
        if (!put_as(kind, "x", &b))
            continue;
        assert_int_equal(ls__stream_open(&s, in_dir("x"), kind), LS_OK);
        for (int turn = 0; turn < 60; turn++) {
            uint64_t to = turn == 0   ? LONG
                          : turn == 1 ? 0
                          : turn % 3
                              ? random_number(&random) % (LONG + 1)
                              : (ls__stream_offset(&s) + random_number(&random) % 1000) % LONG;
            assert_int_equal(ls__stream_seek(&s, to), LS_OK);
            assert_int_equal(ls__stream_offset(&s), to);
            size_t want = random_number(&random) % 5000;
            want = to + want > LONG ? (size_t)(LONG - to) : want;
            assert_int_equal(ls__stream_fill(&s, want), LS_OK);
            check_window(&s);
            s.at += want / 2;
        }
        assert_int_equal(ls__stream_seek(&s, LONG + 1), LS_CORRUPT);
        failed(LS_CORRUPT, in_dir("x"));
        assert_non_null(strstr(ls_error_text(), "900000"));
        assert_int_equal(ls__stream_seek(&s, 5), LS_OK); /* and is usable again */
        assert_int_equal(ls__stream_fill(&s, 100), LS_OK);
        check_window(&s);
        ls__stream_free(&s);
    }
    free_bytes(&b);
}

/* Memory follows what is read: a wish that the file cannot fulfil costs no more than the file. */
static void memory_follows_the_file(void **state)
{
    (void)state;
    bytes b = sample(LONG);
    ls__stream s = { 0 };
    put_file("x", b.at, b.n);
    assert_int_equal(ls__stream_open(&s, in_dir("x"), LS__PLAIN), LS_OK);
    assert_int_equal(s.room, LS__STREAM_BYTES);
    assert_true(ls__stream_can_have(&s, LONG));
    assert_false(ls__stream_can_have(&s, LONG + 1));
    assert_int_equal(ls__stream_fill(&s, (size_t)1 << 50), LS_END);
    assert_int_equal(ls__stream_left(&s), LONG);
    assert_true(s.room <= 2 * LONG);
    assert_true(ls__stream_can_have(&s, LONG));
    assert_false(ls__stream_can_have(&s, LONG + 1));
    ls__stream_free(&s);
    free_bytes(&b);

    /* A buffer that grew large becomes small when the next need is small. */
    b = sample(6 << 20);
    put_file("x", b.at, b.n);
    assert_int_equal(ls__stream_open(&s, in_dir("x"), LS__PLAIN), LS_OK);
    assert_int_equal(ls__stream_fill(&s, 5 << 20), LS_OK);
    assert_true(s.room >= 5 << 20);
    s.at = s.end;
    assert_int_equal(ls__stream_fill(&s, 10), LS_OK);
    assert_int_equal(s.room, LS__STREAM_BYTES);
    check_window(&s);
    ls__stream_free(&s);
    free_bytes(&b);
}

/* What came before the damage is there; the failure is recorded when it is asked for. */
static void what_came_before_is_good(void **state)
{
    (void)state;
    if (!HAVE_ZLIB)
        skip();
    bytes b = sample(1000), packed = { 0 };
    ls__stream s = { 0 };
    add_gzip(&packed, b.at, b.n);
    put_file("x", packed.at, packed.n - 200);
    assert_int_equal(ls__stream_open(&s, in_dir("x"), LS__GZIP), LS_OK);
    assert_int_equal(ls__stream_fill(&s, 500), LS_OK);
    s.at += 500;
    assert_int_equal(ls__stream_fill(&s, 308), LS_OK);
    check_window(&s);
    s.at += 308;
    assert_int_equal(ls__stream_fill(&s, 1), LS_CORRUPT);
    assert_int_equal(ls_error_pending(), LS_OK);
    assert_int_equal(ls__stream_failure(&s), LS_CORRUPT);
    assert_non_null(strstr(ls_error_text(), "byte 808"));
    assert_non_null(strstr(ls_error_text(), "cut short"));
    assert_non_null(strstr(ls_error_hint(), "fetch the file again"));
    failed(LS_CORRUPT, in_dir("x"));

    /* Nothing came: it may be another kind of file. */
    put_file("y", "abc", 3);
    for (int kind = LS__GZIP; kind <= LS__ZLIB; kind++) {
        assert_int_equal(ls__stream_open(&s, in_dir("y"), (ls__compression)kind), LS_OK);
        assert_int_equal(ls__stream_fill(&s, 1), LS_CORRUPT);
        assert_int_equal(ls__stream_failure(&s), LS_CORRUPT);
        assert_non_null(strstr(ls_error_hint(), kind == LS__GZIP ? "gzip file" : "zlib file"));
        failed(LS_CORRUPT, in_dir("y"));
    }

    /* Back before the damage all is as it was. */
    bytes large = sample(LONG), cut = { 0 };
    add_gzip(&cut, large.at, large.n);
    put_file("x", cut.at, cut.n - 2000);
    assert_int_equal(ls__stream_open(&s, in_dir("x"), LS__GZIP), LS_OK);
    while (ls__stream_fill(&s, 1000) == LS_OK)
        s.at += 1000;
    assert_int_equal(ls__stream_fill(&s, 1000), LS_CORRUPT);
    assert_int_equal(ls__stream_seek(&s, 10), LS_OK);
    assert_int_equal(ls__stream_fill(&s, 300000), LS_OK);
    check_window(&s);
    free_bytes(&cut);
    free_bytes(&large);

    /* Wrong bytes do not end the file by accident: the sum at its end tells. */
    packed.at[500] ^= 4;
    put_file("x", packed.at, packed.n);
    assert_int_equal(ls__stream_open(&s, in_dir("x"), LS__GZIP), LS_OK);
    assert_int_equal(ls__stream_fill(&s, 1001), LS_CORRUPT);
    assert_int_equal(ls__stream_left(&s), 1000);
    ls__stream_failure(&s);
    failed(LS_CORRUPT, "incorrect data check");
    ls__stream_free(&s);
    free_bytes(&packed);
    free_bytes(&b);
}

static ls_status read_to_end(const char *name, ls__compression kind, size_t *bytes_read)
{
    ls__stream s = { 0 };
    ls_status st = ls__stream_open(&s, in_dir(name), kind);
    if (!st)
        st = ls__stream_fill(&s, 1 << 20);
    *bytes_read = ls__stream_left(&s);
    if (s.file.open)
        check_window(&s);
    ls__stream_free(&s);
    return st;
}

static void members_and_what_follows(void **state)
{
    (void)state;
    if (!HAVE_ZLIB)
        skip();
    bytes b = sample(1000), packed = { 0 };
    size_t got;
    add_gzip(&packed, b.at, 400);
    add_gzip(&packed, b.at, 0);
    add_gzip(&packed, b.at + 400, 600);
    put_file("x", packed.at, packed.n);
    assert_int_equal(read_to_end("x", LS__GZIP, &got), LS_END);
    assert_int_equal(got, 1000);
    assert_int_equal(read_to_end("x", LS__BY_MAGIC, &got), LS_END);
    assert_int_equal(got, 1000);
    assert_int_equal(read_to_end("x", LS__ZLIB, &got), LS_CORRUPT);
    add_bytes(&packed, "x", 1);
    put_file("x", packed.at, packed.n);
    assert_int_equal(read_to_end("x", LS__GZIP, &got), LS_CORRUPT);
    assert_int_equal(got, 1000);

    packed.n = 0;
    add_zlib(&packed, b.at, 1000);
    put_file("x", packed.at, packed.n);
    assert_int_equal(read_to_end("x", LS__ZLIB, &got), LS_END);
    assert_int_equal(got, 1000);
    assert_int_equal(read_to_end("x", LS__GZIP, &got), LS_CORRUPT);
    add_bytes(&packed, "x", 1);
    put_file("x", packed.at, packed.n);
    assert_int_equal(read_to_end("x", LS__ZLIB, &got), LS_CORRUPT);
    assert_int_equal(got, 1000);

    put_file("x", "", 0); /* no packed file is empty */
    assert_int_equal(read_to_end("x", LS__GZIP, &got), LS_CORRUPT);
    assert_int_equal(read_to_end("x", LS__ZLIB, &got), LS_CORRUPT);
    assert_int_equal(read_to_end("x", LS__PLAIN, &got), LS_END);
    assert_int_equal(ls_error_pending(), LS_OK);
    free_bytes(&packed);
    free_bytes(&b);
}

static void every_cut_and_every_flipped_bit(void **state)
{
    (void)state;
    if (!HAVE_ZLIB)
        skip();
    bytes b = sample(40);
    for (ls__compression kind = LS__GZIP; kind <= LS__ZLIB; kind++) {
        bytes packed = { 0 };
        size_t got;
        if (kind == LS__GZIP)
            add_gzip(&packed, b.at, b.n);
        else
            add_zlib(&packed, b.at, b.n);
        for (size_t cut = 0; cut < packed.n; cut++) {
            put_file("x", packed.at, cut);
            assert_int_equal(read_to_end("x", kind, &got), LS_CORRUPT);
        }
        for (size_t bit = 0; bit < 8 * packed.n; bit++) {
            ls__stream s = { 0 };
            packed.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
            put_file("x", packed.at, packed.n);
            assert_int_equal(ls__stream_open(&s, in_dir("x"), kind), LS_OK);
            if (ls__stream_fill(&s, 1000) == LS_END) { /* a bit that means nothing: the time... */
                assert_int_equal(ls__stream_left(&s), b.n);
                assert_memory_equal(s.at, b.at, b.n);
            }
            ls__stream_free(&s);
            packed.at[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        free_bytes(&packed);
    }
    assert_int_equal(ls_error_pending(), LS_OK);
    free_bytes(&b);
}

static void files_that_change(void **state)
{
    (void)state;
    bytes b = sample(LONG);
    ls__stream s = { 0 };
    put_file("x", b.at, b.n);
    assert_int_equal(ls__stream_open(&s, in_dir("x"), LS__PLAIN), LS_OK);
    assert_int_equal(ls__stream_fill(&s, 10), LS_OK);
    assert_int_equal(truncate(in_dir("x"), 300000), 0);
    assert_int_equal(ls__stream_fill(&s, LONG), LS_END);
    assert_int_equal(ls__stream_left(&s), 300000);
    check_window(&s);
    ls__stream_free(&s);
    free_bytes(&b);
}

/* A pipe is read along, and does not go back. */
static void pipes(void **state)
{
    (void)state;
    int ends[2];
    char path[64];
    bytes b = sample(20000);
    ls__stream s = { 0 };
    assert_int_equal(pipe(ends), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    assert_int_equal(write(ends[1], b.at, b.n), b.n);
    close(ends[1]);
    assert_int_equal(ls__stream_open(&s, path, LS__BY_MAGIC), LS_OK);
    close(ends[0]);
    assert_true(ls__stream_can_have(&s, (uint64_t)1 << 60));
    assert_int_equal(ls__stream_seek(&s, 5000), LS_OK);
    assert_int_equal(ls__stream_fill(&s, 15000), LS_OK);
    check_window(&s);
    s.at = s.end;
    assert_int_equal(ls__stream_fill(&s, 1), LS_END);
    s.at = s.end = s.buffer; /* as if the beginning had left the buffer */
    assert_int_equal(ls__stream_seek(&s, 100), LS_IO);
    failed(LS_IO, "go back");
    ls__stream_free(&s);
    free_bytes(&b);
}

static void no_files(void **state)
{
    (void)state;
    ls__stream s = { 0 };
    int files = open_files();
    assert_int_equal(ls__stream_open(&s, in_dir("nothing"), LS__PLAIN), LS_NOT_FOUND);
    failed(LS_NOT_FOUND, in_dir("nothing"));
    assert_int_equal(ls__stream_open(&s, in_dir("nothing/at/all"), LS__GZIP), LS_NOT_FOUND);
    failed(LS_NOT_FOUND, "nothing/at/all");
    assert_int_equal(ls__stream_open(&s, test_dir, LS__PLAIN), LS_IO);
    failed(LS_IO, test_dir);
    assert_int_equal(ls__stream_open(&s, NULL, LS__PLAIN), LS_INVALID);
    failed(LS_INVALID, "NULL");
    put_file("x", "abc", 3);
    if (!HAVE_ZLIB) {
        assert_int_equal(ls__stream_open(&s, in_dir("x"), LS__ZLIB), LS_UNSUPPORTED);
        assert_non_null(strstr(ls_error_hint(), "zlib1g-dev"));
        failed(LS_UNSUPPORTED, "zlib");
    }
    assert_int_equal(ls__stream_open(&s, in_dir("x"), LS__PLAIN), LS_OK);
    assert_int_equal(ls__stream_fill(&s, 3), LS_OK);
    assert_memory_equal(s.at, "abc", 3);
    ls__stream_free(&s);
    assert_int_equal(open_files(), files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(pieces_of_any_size, clean),
        cmocka_unit_test_setup(going_to_and_fro, clean),
        cmocka_unit_test_setup(memory_follows_the_file, clean),
        cmocka_unit_test_setup(what_came_before_is_good, clean),
        cmocka_unit_test_setup(members_and_what_follows, clean),
        cmocka_unit_test_setup(every_cut_and_every_flipped_bit, clean),
        cmocka_unit_test_setup(files_that_change, clean),
        cmocka_unit_test_setup(pipes, clean),
        cmocka_unit_test_setup(no_files, clean),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
