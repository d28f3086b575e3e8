/*
 * Positions that lie: bytes of a real one, changed, with a checksum that is right again. Where such a
 * position leads to does not matter; but ls_seek and what is read from there end, with elements or
 * with an error, and touch nothing that is not theirs (sanitizers tell). The datasets are random ones
 * (random_datasets/program.h). Seeds that failed are done again by
 *
 *     data_lying_positions_test SEED [COUNT]
 */
#include <stdio.h>
#include <stdlib.h>

#include "data/data_support.h"
#include "random_datasets/check.h"

enum { LIES = 24, HEAD = 20, TAIL = 4, MOST = 4096 };

static uint64_t first_seed = 1, state;
static int datasets = RD_DATASETS;

static uint64_t draw(uint64_t below)
{
    state = rd_mix(state, 3);
    return state % below;
}

/* What the last four bytes hold: CRC-32C of those before. */
static void seal(unsigned char *at, size_t n)
{
    uint32_t c = ~0u;
    for (size_t i = 0; i < n - TAIL; i++) {
        c ^= at[i];
        for (int k = 0; k < 8; k++)
            c = (c >> 1) ^ (c & 1 ? 0x82f63b78u : 0);
    }
    for (int i = 0; i < TAIL; i++)
        at[n - TAIL + (size_t)i] = (unsigned char)(~c >> (8 * i));
}

/* Changes, adds or takes some bytes behind the head; returns how many there are then. */
static size_t lie(unsigned char *at, size_t n)
{
    static const unsigned char often[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0xfe };
    for (uint64_t times = 1 + draw(3); times > 0 && n > HEAD + TAIL; times--) {
        size_t i = HEAD + (size_t)draw(n - HEAD - TAIL);
        switch (draw(5)) {
        case 0:
            memmove(at + i, at + i + 1, n - i - 1);
            n--;
            break;
        case 1:
            memmove(at + i + 1, at + i, n - i);
            at[i] = often[draw(sizeof often)];
            n++;
            break;
        case 2:
            at[i] ^= (unsigned char)(1 << draw(8));
            break;
        default:
            at[i] = draw(2) ? often[draw(sizeof often)] : (unsigned char)draw(256);
        }
    }
    seal(at, n);
    return n;
}

static bool is_status(ls_status st)
{
    return st == LS_OK || st == LS_END || strcmp(ls_status_name(st), "LS_?") != 0;
}

static const char *follow(rd_program *p, unsigned char *at, size_t n)
{
    const char *wrong = NULL;
    LS_FRAME {
        ls_iterator *it = ls_iterate(rd_build(p, (rd_setting){ .threads = (int)draw(3) }));
        ls_status st = ls_seek(it, ls_from(LS_U8, LS_DIMS((int64_t)n), at));
        if (st != ls_error())
            wrong = "ls_seek says another status than its error";
        else if (st && st != LS_CORRUPT && st != LS_INVALID)
            wrong = rd_wrong("ls_seek: %s", ls_error_text());
        for (int i = 0; i < 12 && !st && !wrong; i++)
            LS_FRAME {
                ls_value *v = NULL;
                st = ls_next(it, &v);
                if (!is_status(st))
                    wrong = "ls_next says no status";
                if (st && st != LS_END)
                    ls_error();
                else if (!st && !ls_position(it))
                    wrong = rd_wrong("no position any more: %s", ls_error_text());
                ls_error();
            }
        ls_iterator_free(it);
    }
    return wrong;
}

/* Who lies may come to where a filter keeps nothing, for ever. */
static bool may_go_on_for_ever(const rd_program *p)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (p->nodes[i]->code == RD_REPEAT && p->nodes[i]->a < 0)
            return true;
    return false;
}

static const char *check(uint64_t seed)
{
    rd_program *p = rd_make(seed);
    struct rd_memory *memory = rd_memory_new();
    rd_lines lines = { 0 };
    const char *wrong = NULL;
    state = seed;
    bool fit =
        !p->compressed && !may_go_on_for_ever(p) && rd_predict(p, memory, NULL, 0, &lines, &wrong);
    int elements = lines.elements;
    rd_lines_free(&lines);
    rd_memory_free(memory);
    wrong = NULL;
    for (int i = 0; i < LIES && fit && !wrong; i++)
        LS_FRAME {
            static unsigned char bytes[MOST + 16];
            ls_iterator *it = ls_iterate(rd_build(p, (rd_setting){ 0 }));
            rd_lines_read(&lines, it, (int)draw(1 + (uint64_t)elements));
            rd_lines_free(&lines);
            ls_tensor *t = ls_position(it);
            size_t n = (size_t)ls_count(t);
            if (!t)
                wrong = rd_wrong("no position: %s", ls_error_report());
            else if (n <= MOST && ls_copy_out(t, bytes, n) == LS_OK)
                wrong = follow(p, bytes, lie(bytes, n));
            ls_iterator_free(it);
        }
    rd_free(p);
    rd_remove_caches();
    return wrong;
}

static void positions_that_lie(void **unused)
{
    (void)unused;
    int bad = 0;
    for (int i = 0; i < datasets && bad < 5; i++) {
        uint64_t seed = first_seed + (uint64_t)i;
        rd_watch(seed, RD_SECONDS);
        const char *wrong = check(seed);
        if (!wrong)
            continue;
        print_error("dataset %llu: %s\nagain: data_lying_positions_test %llu\n",
                    (unsigned long long)seed, wrong, (unsigned long long)seed);
        bad++;
    }
    rd_watch(0, 0);
    assert_int_equal(bad, 0);
}

static int begin(void **unused)
{
    (void)unused;
    return rd_files_begin() ? 0 : -1;
}

static int end(void **unused)
{
    (void)unused;
    rd_files_end();
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup(positions_that_lie, clean) };
    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
        datasets = argc > 2 ? atoi(argv[2]) : 1;
    }
    return cmocka_run_group_tests(tests, begin, end);
}
