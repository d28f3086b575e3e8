/*
 * Datasets that end with a batch, distributed: which rows each replica gets in each step, with one
 * pipeline, and with two that share the data (each batch in parts, dealt out by turns); and the same
 * from any step on.
 */
#include <stdlib.h>
#include <string.h>

#include "random_datasets/check.h"
#include <lockstep/input.h>

enum { MOST_REPLICAS = 4 };

/* ---- the rules ------------------------------------------------------------------------------ */

/* Rows from `first` on, so many, of a batch. */
static rd_element *rows_of(rd_pool *pool, const rd_element *batch, int64_t first, int64_t count)
{
    rd_element *out = rd_room(pool, sizeof *out);
    *out = *batch;
    for (int i = 0; i < out->n; i++) {
        rd_tensor *t = &out->leaf[i];
        int64_t each = t->count / t->dims[0];
        t->cells += first * each;
        t->count = count * each;
        t->dims[0] = count;
    }
    return out;
}

/* Of B rows, if all are there: replicas in order, the first B mod N one more. */
static void split_by_replica(int64_t batch, int replicas, int64_t rows, int64_t *first,
                             int64_t *count)
{
    int64_t at = 0;
    for (int r = 0; r < replicas; r++) {
        int64_t room = batch / replicas + (r < batch % replicas);
        first[r] = at;
        count[r] = rows - at < room ? rows - at : room;
        at += count[r];
    }
}

/* Parts of ceil(rows / N); pipeline p of P takes parts p, p + P, ... */
static void split_by_turns(int pipelines, int replicas, int64_t rows, int64_t *first,
                           int64_t *count)
{
    int64_t each = (rows + replicas - 1) / replicas;
    int of_one = replicas / pipelines;
    for (int r = 0; r < replicas; r++) {
        int part = r / of_one + r % of_one * pipelines;
        first[r] = part * each < rows ? part * each : rows;
        count[r] = rows - first[r] < each ? rows - first[r] : each;
    }
}

/* The step as text: what replicas get, one behind another. */
static void predict(const rd_case *c, int replicas, int pipelines, const rd_element *batch,
                    rd_text *to)
{
    int64_t first[MOST_REPLICAS], count[MOST_REPLICAS], rows = batch->leaf[0].dims[0];
    rd_pool pool = { 0 };
    if (pipelines == 1)
        split_by_replica(c->p->root->a, replicas, rows, first, count);
    else
        split_by_turns(pipelines, replicas, rows, first, count);
    for (int r = 0; r < replicas; r++) {
        rd_print(to, r ? " | " : "");
        rd_print_element(to, rows_of(&pool, batch, first[r], count[r]));
    }
    rd_pool_free(&pool);
}

/* ---- what is -------------------------------------------------------------------------------- */

static const char *look(const rd_case *c, ls_iterator *it, int replicas, int pipelines, int step)
{
    const rd_lines *want = &c->want[0];
    bool end = step == want->elements;
    ls_value *v = NULL;
    ls_status st = ls_next(it, &v);
    if (st != (end ? LS_END : LS_OK))
        return rd_wrong("step %d: %s", step, st ? ls_error_report() : "no end");
    if (end)
        return NULL;
    rd_text is = { 0 }, should = { 0 };
    rd_pool pool = { 0 };
    const char *why, *wrong = NULL;
    for (int r = 0; r < replicas && !wrong; r++) {
        rd_element *e = rd_read(&pool, ls_select(v, r), &why);
        rd_print(&is, r ? " | " : "");
        if (e)
            rd_print_element(&is, e);
        else
            wrong = why;
    }
    predict(c, replicas, pipelines, want->element[rd_lines_after(want, step)], &should);
    if (!wrong && strcmp(is.at, should.at) != 0)
        wrong = rd_wrong("step %d:\n  wanted: %.1500s\n  got:    %.1500s", step, should.at, is.at);
    rd_text_free(&is);
    rd_text_free(&should);
    rd_pool_free(&pool);
    return wrong;
}

/* Straight on; at one step its position is taken over by another iterator. */
static const char *split(rd_case *c, int replicas, int pipelines, int ahead)
{
    const char *wrong = NULL;
    int steps = c->want[0].elements + rd_lines_ended(&c->want[0]);
    int turn = (int)rd_case_draw(c, 1 + (uint64_t)steps);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .replicas = replicas,
                                             .input_pipelines = pipelines, .prefetch = ahead));
    ls_auto_shard policy = pipelines > 1 ? LS_AUTO_SHARD_DATA : LS_AUTO_SHARD_AUTO;
    int threads = (int)rd_case_draw(c, 3);
    LS_FRAME {
        ls_iterator *it = NULL;
        for (int step = 0; step < steps && !wrong; step++)
            LS_FRAME {
                if (step == 0 || step == turn) {
                    ls_dataset *d = rd_build(c->p, (rd_setting){ .threads = threads });
                    ls_iterator *on = ls_iterate(ls_distribute(s, ls_with_auto_shard(d, policy)));
                    if (!on || (it && ls_seek(on, ls_position(it))))
                        wrong = rd_wrong("step %d: %s", step, ls_error_report());
                    ls_iterator_free(it);
                    it = on;
                }
                if (!wrong)
                    wrong = look(c, it, replicas, pipelines, step);
            }
        ls_iterator_free(it);
    }
    ls_strategy_free(s);
    c->seen->splits++;
    return wrong ? rd_wrong("%d replicas, %d pipelines, setting %d, %s", replicas, pipelines,
                            threads, wrong)
                 : NULL;
}

const char *rd_check_split(rd_case *c)
{
    const rd_node *root = c->p->root;
    if (root->code != RD_BATCH || root->fails)
        return NULL;
    const char *wrong = split(c, 1 + (int)rd_case_draw(c, 4), 1, (int)rd_case_draw(c, 4) - 1);
    if (!wrong)
        wrong = split(c, 2, 2, 0);
    if (!wrong)
        wrong = split(c, 4, 2, -1);
    return wrong;
}
