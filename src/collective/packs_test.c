/*
 * Packs: each rule by its table, whole plans by hand, and for thousands of random lists that every
 * element is in exactly one pack.
 */
#include "collective/packs.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int clean(void **state)
{
    (void)state;
    ls_error();
    return 0;
}

/* The last call was refused, and said so; takes the error. */
static void failed(void)
{
    assert_int_equal(ls_error_pending(), LS_INVALID);
    assert_true(strlen(ls_error_text()) > 0);
    ls_error();
}

/* ---- by number --------------------------------------------------------------------------- */

static void ten_in_three_are_three_three_and_four(void **state)
{
    (void)state;
    assert_int_equal(ls__pack_by_number(10, 3, 0), 3);
    assert_int_equal(ls__pack_by_number(10, 3, 1), 3);
    assert_int_equal(ls__pack_by_number(10, 3, 2), 4);
    assert_int_equal(ls__pack_by_number(10, 1, 0), 10);
    assert_int_equal(ls__pack_by_number(12, 4, 3), 3);
    /* More packs than elements: all in the last. */
    assert_int_equal(ls__pack_by_number(2, 3, 1), 0);
    assert_int_equal(ls__pack_by_number(2, 3, 2), 2);
    assert_int_equal(ls__pack_by_number(INT64_MAX, 2, 1), INT64_MAX - INT64_MAX / 2);
}

/* ---- by size --------------------------------------------------------------------------------- */

static void by_size(int n, const int64_t *bytes, int64_t per_pack, int packs, const int *sizes)
{
    int got[8], made = -1;
    assert_int_equal(ls__pack_by_size(n, bytes, per_pack, got, &made), LS_OK);
    assert_int_equal(made, packs);
    for (int i = 0; i < packs; i++)
        assert_int_equal(got[i], sizes[i]);
}

static void a_pack_is_closed_when_it_is_larger(void **state)
{
    (void)state;
    static const int64_t bytes[] = { 128, 32, 800, 4 };
    by_size(4, bytes, 200, 2, (int[]){ 3, 1 });
    by_size(4, bytes, 159, 3, (int[]){ 2, 1, 1 });
    by_size(4, bytes, 160, 2, (int[]){ 3, 1 }); /* as large as asked: goes on */
    by_size(4, bytes, 1, 4, (int[]){ 1, 1, 1, 1 });
    by_size(4, bytes, INT64_MAX, 1, (int[]){ 4 });
    by_size(0, NULL, 200, 0, NULL);
    static const int64_t huge[] = { INT64_MAX, INT64_MAX, 5 };
    by_size(3, huge, 1, 3, (int[]){ 1, 1, 1 });
    by_size(3, huge, INT64_MAX, 2, (int[]){ 2, 1 });
    static const int64_t none[] = { 0, 0, 300, 0, 0 };
    by_size(5, none, 200, 2, (int[]){ 3, 2 });
}

static void no_size_or_an_unknown_one_is_one_pack(void **state)
{
    (void)state;
    static const int64_t bytes[] = { 128, 32, 800, 4 }, unknown[] = { 128, 32, 800, 4, -1 };
    by_size(4, bytes, 0, 1, (int[]){ 4 });
    by_size(5, unknown, 200, 1, (int[]){ 5 });
}

static void a_size_below_zero_is_refused(void **state)
{
    (void)state;
    int sizes[1] = { 77 }, packs = 77;
    assert_int_equal(ls__pack_by_size(1, (int64_t[]){ 4 }, -1, sizes, &packs), LS_INVALID);
    assert_non_null(strstr(ls_error_text(), "-1"));
    assert_int_equal(packs, 77);
    failed();
}

/* ---- small tensors -------------------------------------------------------------------------- */

/* `what` has an s for a small tensor; `want` is "0 1 2|5|6", a bar between units. */
static void small(const char *what, int most, const char *want)
{
    bool is[32];
    int order[32], ends[32], n = (int)strlen(what);
    for (int i = 0; i < n; i++)
        is[i] = what[i] == 's';
    int units = ls__pack_small(n, is, most, order, ends);
    char got[128] = "";
    for (int u = 0, at = 0; u < units; u++)
        for (; at < ends[u]; at++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d",
                     at == 0                  ? ""
                     : u && at == ends[u - 1] ? "|"
                                              : " ",
                     order[at]);
    assert_string_equal(got, want);
}

static void runs_of_small_ones_go_to_the_front(void **state)
{
    (void)state;
    small("", 2, "");
    small("L", 2, "0");
    small("LLssL", 2, "2 3|0|1|4");
    small("ssLsL", 2, "0 1|2|3|4"); /* one alone is like others */
    small("LssLLss", 2, "1 2|5 6|0|3|4");
    small("sLsLs", 2, "0|1|2|3|4");
}

static void a_run_has_up_to_two_more_than_its_number(void **state)
{
    (void)state;
    small("ssss", 2, "0 1 2 3");
    small("sssss", 2, "0 1 2 3|4"); /* the fifth is alone, and so behind */
    small("Lssssss", 2, "1 2 3 4|5 6|0");
    small("ssss", 1, "0 1 2|3");
    small("ssssss", 1, "0 1 2|3 4 5");
    small("sssss", INT_MAX, "0 1 2 3 4");
}

/* ---- plans ------------------------------------------------------------------------------------ */

/* A plan as text: "0[0,3) 1[0,2)|1[2,5)". */
static void plan(const ls__packing *p, int n, const int64_t *counts, const ls_dtype *dtypes,
                 const char *want)
{
    ls__packs packs;
    assert_int_equal(ls__packs_plan(p, n, counts, dtypes, &packs), LS_OK);
    char got[512] = "";
    for (int k = 0; k < packs.packs; k++)
        for (int i = ls__pack_begin(&packs, k); i < ls__pack_end(&packs, k); i++) {
            ls__pack_piece piece = ls__pack_get(&packs, i);
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d[%d,%d)",
                     i == 0                           ? ""
                     : i == ls__pack_begin(&packs, k) ? "|"
                                                      : " ",
                     piece.tensor, (int)piece.first, (int)(piece.first + piece.count));
        }
    ls__packs_free(&packs);
    assert_string_equal(got, want);
}

static const ls_dtype f32s[] = { LS_F32, LS_F32, LS_F32, LS_F32, LS_F32, LS_F32, LS_F32, LS_F32 };

static void plans_by_number_cut_tensors(void **state)
{
    (void)state;
    static const int64_t counts[] = { 4, 5, 1 }, holes[] = { 0, 4, 0, 5, 1, 0 };
    plan(&(ls__packing){ .num_packs = 3 }, 3, counts, f32s, "0[0,3)|0[3,4) 1[0,2)|1[2,5) 2[0,1)");
    plan(&(ls__packing){ .num_packs = 3 }, 6, holes, f32s, "1[0,3)|1[3,4) 3[0,2)|3[2,5) 4[0,1)");
    plan(&(ls__packing){ .num_packs = 10 }, 3, (int64_t[]){ 2, 0, 8 }, f32s,
         "0[0,1)|0[1,2)|2[0,1)|2[1,2)|2[2,3)|2[3,4)|2[4,5)|2[5,6)|2[6,7)|2[7,8)");
    plan(&(ls__packing){ .num_packs = 2 }, 1, (int64_t[]){ 7 }, f32s, "0[0,3)|0[3,7)");
    /* No pack is empty: more packs than elements are one. */
    plan(&(ls__packing){ .num_packs = 11 }, 3, counts, f32s, "0[0,4) 1[0,5) 2[0,1)");
    plan(&(ls__packing){ .num_packs = LS__MOST_PACKS }, 3, counts, f32s, "0[0,4) 1[0,5) 2[0,1)");
    plan(&(ls__packing){ .num_packs = 1 }, 3, counts, f32s, "0[0,4) 1[0,5) 2[0,1)");
    plan(&(ls__packing){ .num_packs = 3 }, 3, (int64_t[]){ 0, 0, 0 }, f32s, "");
}

static void plans_by_size_go_from_last_to_first(void **state)
{
    (void)state;
    static const int64_t counts[] = { 1, 200, 8, 32 }; /* 4, 800, 32, 128 bytes */
    plan(&(ls__packing){ .bytes_per_pack = 200 }, 4, counts, f32s,
         "3[0,32) 2[0,8) 1[0,200)|0[0,1)");
    plan(&(ls__packing){ .bytes_per_pack = 12 }, 3, (int64_t[]){ 4, 5, 1 }, f32s,
         "2[0,1) 1[0,5)|0[0,4)");
    /* Bytes, not elements. */
    static const ls_dtype mixed[] = { LS_F32, LS_F64, LS_U8 };
    plan(&(ls__packing){ .bytes_per_pack = 10 }, 3, (int64_t[]){ 1, 1, 3 }, mixed,
         "2[0,3) 1[0,1)|0[0,1)");
    /* A tensor without elements makes no pack. */
    plan(&(ls__packing){ .bytes_per_pack = 4 }, 4, (int64_t[]){ 0, 9, 0, 9 }, f32s,
         "3[0,9)|1[0,9)");
    plan(&(ls__packing){ .bytes_per_pack = INT64_MAX }, 2, counts, f32s, "0[0,1) 1[0,200)");
}

static void plans_with_small_tensors(void **state)
{
    (void)state;
    static const int64_t counts[] = { 100, 2, 3, 100, 1 };
    ls__packing p = { .small_bytes = 12, .small_group = 8 };
    plan(&p, 5, counts, f32s, "1[0,2) 2[0,3)|0[0,100)|3[0,100)|4[0,1)");
    p.small_bytes = 11; /* 3 f32 are 12 bytes */
    plan(&p, 5, counts, f32s, "0[0,100)|1[0,2)|2[0,3)|3[0,100)|4[0,1)");
    /* Only f32 counts as small. */
    static const ls_dtype mixed[] = { LS_F32, LS_F32, LS_I32, LS_F32, LS_F32 };
    p.small_bytes = 12;
    plan(&p, 5, counts, mixed, "0[0,100)|1[0,2)|2[0,3)|3[0,100)|4[0,1)");
    /* Neighbours are those with elements. */
    plan(&p, 5, (int64_t[]){ 100, 2, 0, 3, 100 }, f32s, "1[0,2) 3[0,3)|0[0,100)|4[0,100)");
    /* Then runs are grouped like tensors. */
    p.bytes_per_pack = 403;
    plan(&p, 5, counts, f32s, "4[0,1) 3[0,100)|0[0,100) 1[0,2) 2[0,3)");
    p.bytes_per_pack = 0;
    p.num_packs = 2;
    plan(&p, 5, counts, f32s, "1[0,2) 2[0,3) 0[0,98)|0[98,100) 3[0,100) 4[0,1)");
    /* A limit beyond every size. */
    p = (ls__packing){ .small_bytes = INT64_MAX, .small_group = INT_MAX };
    plan(&p, 3, counts, f32s, "0[0,100) 1[0,2) 2[0,3)");
}

static void one_pack_costs_no_memory(void **state)
{
    (void)state;
    static const int64_t counts[] = { 4, 5, 1 };
    static const ls__packing ones[] = {
        { .num_packs = 0 }, { .num_packs = 1 }, { .num_packs = 11 }, { .bytes_per_pack = 40 }
    };
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        ls__packs packs;
        assert_int_equal(ls__packs_plan(&ones[i], 3, counts, f32s, &packs), LS_OK);
        assert_int_equal(packs.packs, 1);
        assert_int_equal(packs.pieces, 3);
        assert_null(packs.list);
        ls__packs_free(&packs);
    }
    plan(&ones[0], 3, counts, f32s, "0[0,4) 1[0,5) 2[0,1)");
    plan(&ones[0], 3, (int64_t[]){ 4, 0, 1 }, f32s, "0[0,4) 2[0,1)");
    plan(&ones[0], 0, NULL, NULL, "");
    plan(&ones[0], 1, (int64_t[]){ 0 }, f32s, "");
}

/* ---- silly sizes -------------------------------------------------------------------------------- */

static void refused(ls__packing p, const char *text)
{
    ls__packs packs = { .packs = 77 };
    assert_int_equal(ls__packs_plan(&p, 1, (int64_t[]){ 4 }, f32s, &packs), LS_INVALID);
    assert_int_equal(packs.packs, 77);
    assert_non_null(strstr(ls_error_text(), text));
    assert_true(strlen(ls_error_hint()) > 0);
    failed();
}

static void options_that_make_no_sense(void **state)
{
    (void)state;
    refused((ls__packing){ .num_packs = -1 }, "num_packs -1");
    refused((ls__packing){ .num_packs = INT_MIN }, "num_packs -2147483648");
    refused((ls__packing){ .num_packs = LS__MOST_PACKS + 1 }, "num_packs 65537");
    refused((ls__packing){ .num_packs = INT_MAX }, "num_packs 2147483647");
    refused((ls__packing){ .bytes_per_pack = -1 }, "bytes_per_pack -1");
    refused((ls__packing){ .bytes_per_pack = INT64_MIN }, "bytes_per_pack -9223372036854775808");
    refused((ls__packing){ .num_packs = 2, .bytes_per_pack = 100 },
            "num_packs 2 and bytes_per_pack 100");
    refused((ls__packing){ .small_bytes = 100 }, "small_bytes 100, small_group 0");
    refused((ls__packing){ .small_group = 3 }, "small_bytes 0, small_group 3");
    refused((ls__packing){ .small_bytes = -1, .small_group = 3 }, "small_bytes -1");
    refused((ls__packing){ .small_bytes = 1, .small_group = -3 }, "small_group -3");
}

static void tensors_that_cannot_be(void **state)
{
    (void)state;
    static const ls__packing p = { .num_packs = 2 };
    static const int64_t bad[][2] = {
        { 1, -1 }, { 1, INT64_MAX }, { 1, INT64_MAX / 4 + 1 }, { INT64_MAX / 8, INT64_MAX / 4 }
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ls__packs packs = { .packs = 77 };
        assert_int_equal(ls__packs_plan(&p, 2, bad[i], f32s, &packs), LS_INVALID);
        assert_int_equal(packs.packs, 77);
        failed();
    }
    /* As large as can be is planned: nothing is touched but sizes. */
    plan(&(ls__packing){ .bytes_per_pack = 1 }, 1, (int64_t[]){ 7 }, f32s, "0[0,7)");
    ls__packs packs;
    static const int64_t large[] = { INT64_MAX / 8, INT64_MAX / 8 };
    assert_int_equal(ls__packs_plan(&p, 2, large, f32s, &packs), LS_OK);
    assert_int_equal(packs.packs, 2);
    assert_true(ls__pack_get(&packs, 1).count == INT64_MAX / 8);
    ls__packs_free(&packs);
}

/* ---- any sizes ----------------------------------------------------------------------------------- */

static uint32_t random_below(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*seed >> 8) * n >> 24);
}

enum { MOST = 12, LONGEST = 40 };

static void check_partition(const ls__packs *packs, int n, const int64_t *counts)
{
    unsigned char seen[MOST][LONGEST] = { { 0 } };
    int at = 0;
    for (int k = 0; k < packs->packs; k++) {
        assert_int_equal(ls__pack_begin(packs, k), at);
        assert_true(ls__pack_end(packs, k) > at); /* no empty pack */
        for (; at < ls__pack_end(packs, k); at++) {
            ls__pack_piece piece = ls__pack_get(packs, at);
            assert_in_range(piece.tensor, 0, n - 1);
            assert_true(piece.count > 0 && piece.first >= 0 &&
                        piece.first + piece.count <= counts[piece.tensor]);
            for (int64_t e = 0; e < piece.count; e++)
                seen[piece.tensor][piece.first + e]++;
        }
    }
    assert_int_equal(at, packs->pieces);
    for (int i = 0; i < n; i++)
        for (int64_t e = 0; e < LONGEST; e++)
            assert_int_equal(seen[i][e], e < counts[i]);
}

static void every_element_is_in_one_pack(void **state)
{
    (void)state;
    static const ls_dtype kinds[] = { LS_F32, LS_F32, LS_F64, LS_I32, LS_U8 };
    uint32_t seed = 6;
    for (int turn = 0; turn < 20000; turn++) {
        int64_t counts[MOST];
        ls_dtype dtypes[MOST];
        int n = (int)random_below(&seed, MOST + 1);
        for (int i = 0; i < n; i++) {
            counts[i] =
                random_below(&seed, 3) ? random_below(&seed, LONGEST + 1) : random_below(&seed, 3);
            dtypes[i] = kinds[random_below(&seed, 5)];
        }
        ls__packing p = { .num_packs = 0 };
        uint32_t way = random_below(&seed, 3);
        if (way == 0)
            p.num_packs = (int)random_below(&seed, 60);
        if (way == 1)
            p.bytes_per_pack = random_below(&seed, 400);
        if (random_below(&seed, 2)) {
            p.small_bytes = 1 + random_below(&seed, 160);
            p.small_group = 1 + (int)random_below(&seed, 4);
        }
        ls__packs packs;
        assert_int_equal(ls__packs_plan(&p, n, counts, dtypes, &packs), LS_OK);
        check_partition(&packs, n, counts);
        ls__packs_free(&packs);
        assert_int_equal(packs.packs, 0);
    }
    ls__packs_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ten_in_three_are_three_three_and_four, clean),
        cmocka_unit_test_setup(a_pack_is_closed_when_it_is_larger, clean),
        cmocka_unit_test_setup(no_size_or_an_unknown_one_is_one_pack, clean),
        cmocka_unit_test_setup(a_size_below_zero_is_refused, clean),
        cmocka_unit_test_setup(runs_of_small_ones_go_to_the_front, clean),
        cmocka_unit_test_setup(a_run_has_up_to_two_more_than_its_number, clean),
        cmocka_unit_test_setup(plans_by_number_cut_tensors, clean),
        cmocka_unit_test_setup(plans_by_size_go_from_last_to_first, clean),
        cmocka_unit_test_setup(plans_with_small_tensors, clean),
        cmocka_unit_test_setup(one_pack_costs_no_memory, clean),
        cmocka_unit_test_setup(options_that_make_no_sense, clean),
        cmocka_unit_test_setup(tensors_that_cannot_be, clean),
        cmocka_unit_test_setup(every_element_is_in_one_pack, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
