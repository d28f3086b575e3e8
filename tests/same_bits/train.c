/*
 * A training in one setting. What the contract says outright (the order of sums over replicas, the
 * probe) is checked here at every step; all else is written down, for who compares.
 */
#include <stdio.h>
#include <string.h>

#include "same_bits/same_bits.h"
#include "strategy/strategy.h"

enum { MOST_REPLICAS = 64, MOST_NAMES = 16 * MOST_REPLICAS };

typedef struct training {
    const sb_setting *setting;
    ls_strategy *s;
    sb_model model;
    ls_function *update, *part, *late;
    float probe[SB_PROBES]; /* what it must be */
    sb_record *out;
    char *problem;
} training;

static const char *device_list(int devices, char out[MOST_NAMES])
{
    for (int d = 0, at = 0; d < devices; d++)
        at += snprintf(out + at, (size_t)(MOST_NAMES - at), "%s/cpu:%d", d ? "," : "", d);
    return out;
}

static ls_function *traced(const sb_setting *s, ls_step step, const char *name, sb_model *model)
{
    static const char may_change_bits[] = "fuse-pool,fuse-attention,fuse-conv,fuse-conv-pool,pack,layout";
    if (s->kind == SB_EAGER)
        return NULL;
    return ls_trace_with(
        LS_TRACE(.name = name, .off = s->kind == SB_EXACT ? may_change_bits : NULL), step, model);
}

static bool begin(training *t)
{
    const sb_setting *s = t->setting;
    char devices[MOST_NAMES];
    t->s = ls_mirrored(LS_MIRRORED(.devices = device_list(s->devices, devices),
                                   .replicas = s->replicas,
                                   .cross_device = (ls_cross_device)s->cross, .num_packs = s->packs,
                                   .bytes_per_pack = s->pack_bytes, .small_bytes = s->small_bytes,
                                   .small_group = s->small_group, .sequential = s->sequential));
    if (!t->s || !sb_model_make(&t->model, t->s))
        return false;
    t->update = traced(s, sb_update_step, "update", &t->model);
    t->part = traced(s, sb_part_step, "part", &t->model);
    t->late = traced(s, sb_late_step, "late", &t->model);
    return s->kind == SB_EAGER || (t->update && t->part && t->late);
}

static void end(training *t)
{
    ls_function_free(t->update);
    ls_function_free(t->part);
    ls_function_free(t->late);
    sb_model_free(&t->model);
    ls_strategy_free(t->s);
}

static bool wrong(const training *t, int step, const char *what)
{
    snprintf(t->problem, SB_TEXT, "step %d: %s", step, what);
    return false;
}

/* ---- steps -------------------------------------------------------------------------------------- */

static bool only_adds_up(const sb_setting *s, int step)
{
    return sb_accumulates(s->recipe) && step % 3 != 2;
}

static ls_value *run(training *t, sb_batch_of *batch_of)
{
    bool part = only_adds_up(t->setting, batch_of->step), late = batch_of->failure == SB_LATE;
    ls_step step = late ? sb_late_step : part ? sb_part_step : sb_update_step;
    ls_function *f = late ? t->late : part ? t->part : t->update;
    ls_value *batch = ls_distribute_values(t->s, sb_batch, batch_of);
    return t->setting->kind == SB_EAGER ? ls_run_eager(t->s, step, &t->model, batch)
                                        : ls_run(t->s, f, batch);
}

/* A step that fails must leave nothing behind; the steps after it show whether it did. */
static bool fail_once(training *t, int step)
{
    int v = t->setting->replicas, bad = step / 4 % v;
    if (!sb_rows(step, bad, v))
        bad = 0;
    if (t->setting->failure == SB_LATE && only_adds_up(t->setting, step))
        return true; /* no update waits then: tracing one would be another program */
    ls_value *got = run(t, &(sb_batch_of){ t->setting, step, t->setting->failure, bad });
    if (got)
        return wrong(t, step, "a step with a bad batch did not fail");
    return ls_error() == LS_INVALID || wrong(t, step, ls_error_text());
}

/* Losses into the record; their sum and mean are known, and so is the probe. */
static bool note(training *t, int step, ls_value *results)
{
    int v = t->setting->replicas;
    float losses[MOST_REPLICAS + 2], tree[MOST_REPLICAS];
    for (int r = 0; r < v; r++) {
        ls_value *mine = ls_select(results, r);
        losses[r] = tree[r] = ls_to_float(ls_item(mine, 0));
        losses[v] = ls_to_float(ls_item(mine, 1));
        losses[v + 1] = ls_to_float(ls_item(mine, 2));
    }
    char name[32];
    snprintf(name, sizeof name, "losses of step %d", step);
    sb_add(t->out, name, LS_F32, losses, (size_t)(v + 2) * sizeof *losses);
    float sum = sb_tree(tree, v), mean = sum / (float)v;
    if (memcmp(&sum, &losses[v], sizeof sum) != 0 ||
        memcmp(&mean, &losses[v + 1], sizeof mean) != 0)
        return wrong(t, step, "sum or mean of the losses are not those of the tree");
    float got[SB_PROBES];
    for (int i = 0; i < SB_PROBES; i++) {
        float slopes[SB_PROBES];
        for (int r = 0; r < v; r++) {
            sb_slopes(t->setting->seed, step, r, slopes);
            tree[r] = slopes[i];
        }
        t->probe[i] -= 0.25f * sb_tree(tree, v);
    }
    if (ls_copy_out(ls_read(t->model.v[SB_PROBE]), got, sizeof got))
        return false;
    return memcmp(got, t->probe, sizeof got) == 0 ||
           wrong(t, step, "the probe is not what sums in the order of the tree make of it");
}

static bool go(training *t)
{
    const sb_setting *s = t->setting;
    char devices[MOST_NAMES];
    bool ok = true;
    for (int step = 0; ok && step < s->steps; step++)
        LS_FRAME {
            if (s->move && step == s->steps / 3)
                ok = ls__strategy_place(t->s, device_list(s->move, devices)) == LS_OK;
            if (s->move && step == s->steps - s->steps / 3)
                ok = ls__strategy_place(t->s, device_list(s->devices, devices)) == LS_OK;
            if (ok && s->failure && step % 4 == 2)
                ok = fail_once(t, step);
            ls_value *results = ok ? run(t, &(sb_batch_of){ .setting = s, .step = step }) : NULL;
            ok = results && note(t, step, results);
        }
    return ok;
}

bool sb_train(const sb_setting *s, sb_record *out, char problem[SB_TEXT])
{
    training t = { .setting = s, .model = { .setting = s }, .out = out, .problem = problem };
    *out = (sb_record){ 0 };
    problem[0] = 0;
    bool ok = begin(&t) && go(&t);
    if (ok)
        sb_model_record(&t.model, t.s, out);
    if (out->failed)
        ok = false;
    if (!ok && !problem[0])
        snprintf(problem, SB_TEXT, "%s", ls_error_report());
    end(&t);
    ls_error();
    if (!ok)
        sb_record_free(out);
    return ok;
}

bool sb_check(const sb_setting *s, const sb_record *want, char problem[SB_TEXT])
{
    sb_record got;
    if (!sb_train(s, &got, problem))
        return false;
    bool same = sb_same(want, &got, problem);
    sb_record_free(&got);
    return same;
}
