/*
 * The model: small, with everything in it that could tell one placement from another. Lookups with
 * repeated rows, dropout, batch norm with statistics of each replica's own, sync batch norm, a
 * table used twice, sizes that divide nothing, a second optimizer.
 *
 * The probe is trained by SGD with a loss that is linear in it, and a rate that is a power of two:
 * so train.c can say what it must be, whatever the library does.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "same_bits/same_bits.h"
#include "strategy/variable.h"
#include "train/optimizer.h"

enum { WIDTH = 7, HIDDEN = 19, BIG = 1103, LAST = 5 };

/* ---- variables --------------------------------------------------------------------------------- */

static ls_variable *trained(const char *name, ls_tensor *initial)
{
    return ls_variable_new(name, initial, true);
}

static ls_variable *own(const char *name, ls_aggregation how, ls_tensor *initial)
{
    return ls_variable_with(LS_VARIABLE(.synchronization = LS_SYNC_ON_READ, .aggregation = how),
                            name, initial);
}

static void make_variables(ls_variable **v)
{
    v[SB_TABLE] = trained("table", ls_truncated_normal(LS_F32, LS_DIMS(SB_WORDS, WIDTH), 0, 0.5));
    v[SB_GAIN] = trained("gain", ls_ones(LS_F64, LS_DIMS(SB_ITEMS, 1)));
    v[SB_W1] = trained("w1", ls_glorot_uniform(LS_F32, LS_DIMS(SB_ITEMS * WIDTH, HIDDEN)));
    v[SB_B1] = trained("bias1", ls_zeros(LS_F32, LS_DIMS(HIDDEN)));
    v[SB_SCALE] = trained("norm scale", ls_ones(LS_F32, LS_DIMS(HIDDEN)));
    v[SB_OFFSET] = trained("norm offset", ls_zeros(LS_F32, LS_DIMS(HIDDEN)));
    v[SB_W2] = trained("w2", ls_glorot_uniform(LS_F32, LS_DIMS(HIDDEN, BIG)));
    v[SB_W3] = trained("w3", ls_glorot_uniform(LS_F32, LS_DIMS(BIG, LAST)));
    v[SB_TIED] = trained("tied", ls_glorot_uniform(LS_F32, LS_DIMS(SB_CLASSES, LAST)));
    v[SB_SYNC_SCALE] = trained("sync norm scale", ls_ones(LS_F32, LS_DIMS(LAST)));
    v[SB_SYNC_OFFSET] = trained("sync norm offset", ls_zeros(LS_F32, LS_DIMS(LAST)));
    v[SB_PROBE] = trained("probe", ls_zeros(LS_F32, LS_DIMS(SB_PROBES)));
    v[SB_MEAN] = own("mean", LS_AGGREGATE_MEAN, ls_zeros(LS_F32, LS_DIMS(HIDDEN)));
    v[SB_VARIANCE] = own("variance", LS_AGGREGATE_MEAN, ls_ones(LS_F32, LS_DIMS(HIDDEN)));
    v[SB_SEEN] = own("seen", LS_AGGREGATE_SUM, ls_zeros(LS_I64, LS_SCALAR));
    v[SB_SYNC_MEAN] = ls_variable_with(
        LS_VARIABLE(.aggregation = LS_AGGREGATE_ONLY_FIRST, .trainable = LS_FROZEN), "sync mean",
        ls_zeros(LS_F32, LS_DIMS(LAST)));
}

bool sb_model_make(sb_model *m, ls_strategy *s)
{
    ls_random_seed((uint64_t)m->setting->seed);
    LS_FRAME
        LS_SCOPE (s)
            make_variables(m->v);
    m->first = sb_recipe(m->setting->recipe, m->setting->steps);
    m->second = ls_sgd(LS_SGD(.rate = 0.25));
    bool ok = m->first && m->second;
    for (int i = 0; i < SB_VARIABLES; i++)
        ok = ok && m->v[i];
    return ok;
}

void sb_model_free(sb_model *m)
{
    ls_optimizer_free(m->first);
    ls_optimizer_free(m->second);
    for (int i = 0; i < SB_VARIABLES; i++)
        ls_variable_free(m->v[i]);
}

/* ---- the step ---------------------------------------------------------------------------------- */

static ls_tensor *read(const sb_model *m, sb_name name)
{
    return ls_read(m->v[name]);
}

/* v follows x: 0.75 v + 0.25 x. */
static void follow(ls_variable *v, ls_tensor *x)
{
    ls_assign_add(v, ls_scale(ls_sub(ls_stop_gradient(x), ls_read(v)), 0.25));
}

/* ids -> [rows, HIDDEN], with the statistics of this replica alone. */
static ls_tensor *bottom(const sb_model *m, ls_tensor *ids)
{
    int64_t rows = ls_dim(ids, 0);
    ls_tensor *gain = ls_cast(read(m, SB_GAIN), LS_F32);
    ls_tensor *words = ls_mul(ls_embedding(read(m, SB_TABLE), ids), gain);
    ls_tensor *x = ls_reshape(words, LS_DIMS(rows, SB_ITEMS * WIDTH));
    ls_tensor *h = ls_dense(x, read(m, SB_W1), read(m, SB_B1));
    ls_value *normal = ls_batch_norm(h, read(m, SB_SCALE), read(m, SB_OFFSET), 1e-3);
    if (rows) {
        follow(m->v[SB_MEAN], ls_item(normal, 1));
        follow(m->v[SB_VARIANCE], ls_item(normal, 2));
    }
    ls_assign_add(m->v[SB_SEEN], ls_scalar_int(LS_I64, rows));
    return ls_dropout(ls_tanh(ls_item(normal, 0)), 0.25);
}

/* [rows, HIDDEN] -> one loss a row, with the statistics of all replicas. */
static ls_tensor *top(const sb_model *m, ls_tensor *h, ls_tensor *ids, ls_tensor *labels)
{
    h = ls_dropout(ls_relu(ls_matmul(h, read(m, SB_W2))), 0.5);
    h = ls_matmul(h, read(m, SB_W3));
    ls_tensor *first = ls_reshape(ls_slice(ids, 2, (int64_t[]){ 0, 0 }, (int64_t[]){ -1, 1 }),
                                  LS_DIMS(ls_dim(ids, 0)));
    ls_tensor *eleven = ls_scalar_int(LS_I32, SB_CLASSES);
    h = ls_add(h, ls_embedding(read(m, SB_TIED), ls_mod(first, eleven)));
    ls_value *normal = ls_sync_batch_norm(ls_get_replica_context(), h, read(m, SB_SYNC_SCALE),
                                          read(m, SB_SYNC_OFFSET), 1e-3);
    ls_tensor *mean = ls_item(normal, 1);
    ls_tensor *moved = ls_add(ls_scale(read(m, SB_SYNC_MEAN), 0.75), ls_scale(mean, 0.25));
    ls_assign(m->v[SB_SYNC_MEAN], ls_stop_gradient(moved));
    ls_tensor *logits = ls_matmul_t(ls_item(normal, 0), false, read(m, SB_TIED), true);
    return ls_sparse_softmax_xent(logits, labels);
}

static ls_value *step(ls_value *batch, sb_model *m, bool update)
{
    ls_replica *me = ls_get_replica_context();
    ls_tensor *ids = ls_item(batch, 0), *labels = ls_item(batch, 1), *slopes = ls_item(batch, 2);
    ls_tape *tape = ls_tape_open();
    ls_tensor *each = top(m, bottom(m, ids), ids, labels);
    ls_tensor *loss = ls_compute_average_loss(each, 5 * m->setting->replicas);
    ls_tensor *weight = ls_sum(ls_square(read(m, SB_W1)), LS_ALL_AXES, false);
    loss = ls_add(loss, ls_scale_regularization_loss(ls_scale(weight, 1e-3)));
    ls_tensor *line = ls_sum(ls_mul(read(m, SB_PROBE), slopes), LS_ALL_AXES, false);
    if (update)
        ls_minimize(m->first, tape, loss, SB_TRAINED, m->v);
    else
        ls_accumulate(m->first, tape, loss, SB_TRAINED, m->v);
    ls_minimize(m->second, tape, line, 1, &m->v[SB_PROBE]);
    ls_value *out[] = { ls_leaf(loss), ls_all_reduce(me, LS_SUM, ls_leaf(loss)),
                        ls_all_reduce(me, LS_MEAN, ls_leaf(loss)) };
    return ls_list(3, out);
}

ls_value *sb_update_step(ls_value *batch, void *model)
{
    return step(batch, model, true);
}

ls_value *sb_part_step(ls_value *batch, void *model)
{
    return step(batch, model, false);
}

ls_value *sb_late_step(ls_value *batch, void *model)
{
    sb_model *m = model;
    ls_value *losses = step(batch, m, true);
    ls_tensor *after = ls_gather(read(m, SB_GAIN), ls_item(batch, 3), 0);
    return ls_list(2, (ls_value *[]){ losses, ls_leaf(after) });
}

/* ---- what is left ------------------------------------------------------------------------------- */

/* Sums of gradients that wait for an update; no function of the library shows them. */
static void record_parts(ls_optimizer *o, ls_variable *v, int replicas, sb_record *out)
{
    uint64_t serial = ls__cell_serial(v->cells[0]);
    for (int r = 0; r < replicas; r++)
        for (const ls__part_sum *p = atomic_load(&o->sums); p; p = p->next)
            if (p->variable == serial && p->replica == r && p->cell) {
                char name[48];
                const ls_tensor *like = ls_read(v);
                snprintf(name, sizeof name, "%s/part %d", ls_variable_name(v), r);
                sb_add(out, name, ls_dtype_of(like), ls__cell_data(p->cell),
                       ls_size_in_bytes(like));
            }
}

static void record_optimizer(ls_optimizer *o, const char *which, int count, ls_variable *const *v,
                             int replicas, sb_record *out)
{
    char name[48];
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < ls_slot_count(o); k++) {
            snprintf(name, sizeof name, "%s/%s", ls_variable_name(v[i]), ls_slot_name(o, k));
            sb_add_tensor(out, name, ls_slot_read(o, v[i], k));
        }
        record_parts(o, v[i], replicas, out);
    }
    snprintf(name, sizeof name, "iterations of the %s", which);
    sb_add_int(out, name, ls_iterations(o));
    snprintf(name, sizeof name, "rate of the %s", which);
    double rate = ls_rate(o);
    sb_add(out, name, LS_F64, &rate, sizeof rate);
}

void sb_model_record(const sb_model *m, ls_strategy *s, sb_record *out)
{
    LS_FRAME
        LS_SCOPE (s) {
            ls_value *saved = ls_variables_save(SB_VARIABLES, m->v);
            for (int i = 0; saved && i < ls_length(saved); i++)
                sb_add_tensor(out, ls_key(saved, i), ls_item(saved, i));
            record_optimizer(m->first, "first", SB_TRAINED, m->v, m->setting->replicas, out);
            record_optimizer(m->second, "second", 1, &m->v[SB_PROBE], m->setting->replicas, out);
            sb_add_int(out, "steps", ls_steps(s));
            out->failed = out->failed || !saved;
        }
}
