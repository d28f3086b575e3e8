/*
 * Positions: noted after every element, they are the same bytes in every setting, and from each of them
 * a new iterator of the dataset, built anew, goes on exactly.
 */
#include <stdlib.h>
#include <string.h>

#include "random_datasets/check.h"

enum { MOST_BYTES = 16384, A_FEW = 7 };

typedef struct spot {
    size_t n;
    unsigned char *at;
} spot;

typedef struct spots {
    spot at[RD_LIMIT + 1];
} spots;

static void free_spots(spots *s)
{
    for (int i = 0; i <= RD_LIMIT; i++)
        free(s->at[i].at);
    *s = (spots){ 0 };
}

/* NULL, or why there is none. */
static const char *note(ls_iterator *it, spot *to)
{
    const char *wrong = NULL;
    LS_FRAME {
        ls_tensor *t = ls_position(it);
        if (!t)
            return rd_wrong("no position: %s", ls_error_report());
        if (ls_dtype_of(t) != LS_U8 || ls_rank(t) != 1 || ls_count(t) > MOST_BYTES)
            return rd_wrong("a position is %s", ls_describe(t));
        to->n = (size_t)ls_count(t);
        to->at = malloc(to->n + 1);
        if (!to->at || ls_copy_out(t, to->at, to->n))
            wrong = "a position that cannot be read";
    }
    return wrong;
}

static bool same(const spot *a, const spot *b)
{
    return a->n == b->n && !memcmp(a->at, b->at, a->n);
}

static ls_iterator *fresh(rd_case *c, int threads)
{
    return ls_iterate(rd_build(c->p, (rd_setting){ .threads = threads }));
}

static ls_status go(ls_iterator *it, const spot *to)
{
    return ls_seek(it, ls_from(LS_U8, LS_DIMS((int64_t)to->n), to->at));
}

/* ---- noting all of an epoch ----------------------------------------------------------------- */

static const char *note_all(rd_case *c, int epoch, int threads, spots *to)
{
    const rd_lines *want = &c->want[epoch];
    rd_lines got = { 0 };
    const char *wrong = NULL;
    ls_iterator *it = fresh(c, threads);
    if (!it || (epoch && ls_rewind(it)))
        wrong = rd_wrong("could not be opened: %s", ls_error_report());
    if (!wrong)
        wrong = note(it, &to->at[0]);
    for (int i = 0; i < want->n && !wrong; i++) {
        int before = got.elements;
        rd_lines_read(&got, it, 1);
        if (got.elements > before)
            wrong = note(it, &to->at[got.elements]);
    }
    if (!wrong)
        wrong = rd_lines_differ(want, 0, &got);
    ls_iterator_free(it);
    rd_lines_free(&got);
    return wrong;
}

/* Other threads run further ahead: that must not be seen. */
static const char *note_again(rd_case *c, int epoch, const spots *first)
{
    for (int threads = 1; threads < 3; threads++)
        LS_FRAME {
            spots others = { 0 };
            const char *wrong = note_all(c, epoch, threads, &others);
            for (int i = 0; i <= c->want[epoch].elements && !wrong; i++)
                if (!same(&first->at[i], &others.at[i]))
                    wrong = rd_wrong("the position after %d elements has other bytes", i);
            free_spots(&others);
            if (wrong)
                return rd_wrong("noting in setting %d: %s", threads, wrong);
        }
    return NULL;
}

/* ---- going on from each --------------------------------------------------------------------- */

/* From the position behind `at` elements, some lines or all; on the way, positions are those noted. */
static const char *go_on(rd_case *c, int epoch, const spots *s, int at, int most, ls_iterator *it)
{
    const rd_lines *want = &c->want[epoch];
    int from = rd_lines_after(want, at), left = want->n - from, to = at;
    rd_lines got = { 0 };
    spot here = { 0 };
    if (go(it, &s->at[at]))
        return rd_wrong("ls_seek: %s", ls_error_report());
    const char *wrong = note(it, &here);
    if (!wrong && !same(&here, &s->at[at]))
        wrong = "the position changes when it is restored";
    free(here.at);
    int first = (int)rd_case_draw(c, 4);
    if (!wrong)
        rd_lines_read(&got, it, first < left ? first : left);
    bool element = got.n > 0 && got.line[got.n - 1][0] != '!' && !rd_lines_ended(&got);
    if (!wrong && element) {
        here = (spot){ 0 };
        to = at + got.elements;
        wrong = note(it, &here);
        if (!wrong && !same(&here, &s->at[to]))
            wrong = rd_wrong(
                "the position after %d elements has other bytes than in a straight run", to);
        free(here.at);
    }
    if (!wrong) {
        int more = left - got.n < most ? left - got.n : most;
        rd_lines_read(&got, it, more);
        wrong = rd_lines_differ(want, from, &got);
    }
    rd_lines_free(&got);
    c->seen->positions++;
    return wrong ? rd_wrong("from element %d of epoch %d on: %s", at, epoch, wrong) : NULL;
}

static const char *restore_each(rd_case *c, int epoch, const spots *s)
{
    int elements = c->want[epoch].elements;
    for (int at = 0; at <= elements; at++)
        LS_FRAME {
            int threads = (int)rd_case_draw(c, 3);
            int most = rd_case_draw(c, 5) ? A_FEW : 2 * RD_LIMIT;
            ls_iterator *it = fresh(c, threads);
            const char *wrong = it ? go_on(c, epoch, s, at, most, it) : ls_error_report();
            ls_iterator_free(it);
            if (wrong)
                return rd_wrong("setting %d, restored %s", threads, wrong);
        }
    return NULL;
}

/* One iterator that jumps about, in both epochs. */
static const char *jump(rd_case *c, const spots *s)
{
    const char *wrong = NULL;
    ls_iterator *it = fresh(c, 1);
    for (int i = 0; i < 12 && !wrong; i++)
        LS_FRAME {
            int epoch = (int)rd_case_draw(c, (uint64_t)c->epochs);
            int at = (int)rd_case_draw(c, 1 + (uint64_t)c->want[epoch].elements);
            wrong = go_on(c, epoch, &s[epoch], at, A_FEW, it);
        }
    ls_iterator_free(it);
    return wrong ? rd_wrong("jumping, %s", wrong) : NULL;
}

const char *rd_check_positions(rd_case *c)
{
    spots s[RD_EPOCHS] = { 0 };
    const char *wrong = NULL;
    for (int epoch = 0; epoch < c->epochs && !wrong; epoch++) {
        LS_FRAME {
            wrong = note_all(c, epoch, 0, &s[epoch]);
        }
        if (!wrong)
            wrong = note_again(c, epoch, &s[epoch]);
        if (!wrong)
            wrong = restore_each(c, epoch, &s[epoch]);
    }
    if (!wrong)
        LS_FRAME {
            wrong = jump(c, s);
        }
    for (int epoch = 0; epoch < RD_EPOCHS; epoch++)
        free_spots(&s[epoch]);
    return wrong;
}
