/*
 * The tensors of a checkpoint, and the digests of them. Invariant: nothing in them depends on the
 * placement, and nothing is copied: they are looked at where they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "base/status.h"
#include "strategy/strategy.h"
#include "strategy/variable.h"
#include "tensor/tensor.h"
#include "tensor/value.h"
#include "train/checkpoint.h"
#include "train/entries.h"

/* ---- what is given ------------------------------------------------------------------------------- */

ls_strategy *ls__checkpoint_strategy(const ls_checkpoint *c)
{
    return c->strategy ? c->strategy : ls_default_strategy();
}

static ls_status check_extra(const char *who, const ls_value *extra)
{
    ls_status st = ls__check_value(who, extra);
    if (!st && ls_kind_of(extra) != LS_DICT)
        st = ls__hint(ls__fail(LS_INVALID, "%s: `extra` is no dict", who),
                      "give a dict from names to tensors");
    return st;
}

ls_status ls__checkpoint_check(const char *who, const ls_checkpoint *c)
{
    if (!c || c->size != sizeof *c)
        return ls__hint(ls__fail(LS_INVALID, "%s: a checkpoint of %zu bytes, wants %zu", who,
                                 c ? c->size : 0, sizeof *c),
                        "ls_checkpoint c = { .size = sizeof c, ... }");
    if (c->n_variables < 0 || (c->n_variables > 0 && !c->variables))
        return ls__fail(LS_INVALID, "%s: %d variables in %s", who, c->n_variables,
                        c->variables ? "a list" : "NULL");
    if (c->n_optimizers < 0 || (c->n_optimizers > 0 && !c->optimizers))
        return ls__fail(LS_INVALID, "%s: %d optimizers in %s", who, c->n_optimizers,
                        c->optimizers ? "a list" : "NULL");
    return ls__check_strategy(who, ls__checkpoint_strategy(c));
}

/* ---- together ------------------------------------------------------------------------------------ */

static bool is_own(const char *key)
{
    return strncmp(key, LS__CHECKPOINT_OWN, sizeof LS__CHECKPOINT_OWN - 1) == 0;
}

/* A key that is no variable's name is that of a replica's copy. */
static ls_status add_variables(const char *who, ls__entries *e, const ls_checkpoint *c)
{
    const ls_value *all = ls_variables_save(c->n_variables, c->variables);
    ls_status st = all ? LS_OK : ls_error_pending();
    for (int i = 0; !st && i < ls_length(all); i++) {
        const char *key = ls_key(all, i);
        bool named = false;
        if (is_own(key))
            return ls__hint(ls__fail(LS_INVALID, "%s: a variable '%s'", who, key),
                            "names that begin with '" LS__CHECKPOINT_OWN "' are the checkpoint's "
                            "own");
        for (int v = 0; v < c->n_variables && !named; v++)
            named = strcmp(c->variables[v]->name, key) == 0;
        st = ls__entries_add(e, ls_child(all, i), "%s%s", named ? "" : LS__CHECKPOINT_COPIES, key);
    }
    return st;
}

static ls_status add_optimizers(ls__entries *e, const ls_checkpoint *c)
{
    ls_status st = LS_OK;
    for (int i = 0; i < c->n_optimizers && !st; i++) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "%s%d/", LS__CHECKPOINT_OPTIMIZERS, i);
        st = ls__entries_add_all(e, prefix,
                                 ls_optimizer_save(c->optimizers[i], c->n_variables, c->variables));
    }
    return st;
}

ls_value *ls__checkpoint_state(const char *who, const ls_checkpoint *c)
{
    ls__entries e = { 0 };
    ls_status st = ls__checkpoint_check(who, c);
    if (!st)
        st = add_variables(who, &e, c);
    if (!st)
        st = add_optimizers(&e, c);
    if (!st && c->input) {
        ls_tensor *position = ls_position(c->input);
        st = position ? ls__entries_add(&e, ls_leaf(position), LS__CHECKPOINT_INPUT)
                      : ls_error_pending();
    }
    if (!st && c->extra)
        st = check_extra(who, c->extra);
    if (!st && c->extra)
        st = ls__entries_add_all(&e, LS__CHECKPOINT_EXTRA, c->extra);
    return st ? NULL : ls__entries_dict(&e);
}

/* ---- and apart ----------------------------------------------------------------------------------- */

ls_value *ls__checkpoint_part(const ls_value *state, const char *prefix)
{
    ls__entries e = { 0 };
    const size_t length = strlen(prefix);
    for (int i = 0; i < ls_length(state); i++)
        if (strncmp(ls_key(state, i), prefix, length) == 0 &&
            ls__entries_add(&e, ls_child(state, i), "%s", ls_key(state, i) + length))
            return NULL;
    return ls__entries_dict(&e);
}

ls_value *ls__checkpoint_variables(const ls_value *state)
{
    ls__entries e = { 0 };
    for (int i = 0; i < ls_length(state); i++)
        if (!is_own(ls_key(state, i)) &&
            ls__entries_add(&e, ls_child(state, i), "%s", ls_key(state, i)))
            return NULL;
    if (ls__entries_add_all(&e, "", ls__checkpoint_part(state, LS__CHECKPOINT_COPIES)))
        return NULL;
    return ls__entries_dict(&e);
}

/* ---- digests ------------------------------------------------------------------------------------- */

static void hash_number(ls__sha256 *s, int64_t number)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)number >> (8 * i));
    ls__sha256_add(s, bytes, 8);
}

static void hash_cell(ls__sha256 *s, const ls__cell *cell)
{
    ls__sha256_add(s, ls__cell_data(cell), ls__spec_bytes(ls__cell_spec(cell)));
}

ls_status ls_weights_digest(int count, ls_variable *const *variables, char out[LS_DIGEST_MAX])
{
    const char *who = "ls_weights_digest";
    ls_status st = LS_OK;
    ls__sha256 s;
    if (!out || count < 0 || (count > 0 && !variables))
        return ls__fail(LS_INVALID, "%s: %d variables in %s, to %s", who, count,
                        variables ? "a list" : "NULL", out ? "a text" : "NULL");
    LS_FRAME /* where it may be saved, it may be looked at */
        if (!ls_variables_save(0, NULL))
            st = ls_error_pending();
    ls__sha256_begin(&s);
    for (int i = 0; i < count && !st; i++) {
        st = ls__check_variable(who, variables[i]);
        for (int k = 0; !st && variables[i]->trainable && k < variables[i]->n_cells; k++)
            hash_cell(&s, variables[i]->cells[k]);
    }
    if (!st)
        ls__sha256_end(&s, out);
    return st;
}

static ls_status hash_entry(const char *who, ls__sha256 *s, const char *key, const ls_value *item)
{
    const ls_tensor *t = ls_kind_of(item) == LS_LEAF ? ls_leaf_tensor(item) : NULL;
    if (!t || !ls__is_dense(t))
        return ls_error_pending()
                   ? ls_error_pending()
                   : ls__fail(LS_SHAPE, "%s: '%s' is no dense tensor of numbers", who, key);
    ls__sha256_add(s, key, strlen(key) + 1);
    hash_number(s, t->spec.dtype);
    hash_number(s, t->spec.rank);
    for (int i = 0; i < t->spec.rank; i++)
        hash_number(s, t->spec.dims[i]);
    ls__sha256_add(s, ls__data(t), ls__spec_bytes(&t->spec));
    return LS_OK;
}

ls_status ls_state_digest(const ls_checkpoint *c, char out[LS_DIGEST_MAX])
{
    const char *who = "ls_state_digest";
    ls_status st = LS_OK;
    if (!out)
        return ls__fail(LS_INVALID, "%s: out is NULL", who);
    LS_FRAME {
        ls__sha256 s;
        const ls_value *state = ls__checkpoint_state(who, c);
        st = state ? LS_OK : ls_error_pending();
        ls__sha256_begin(&s);
        for (int i = 0; !st && i < ls_length(state); i++)
            st = hash_entry(who, &s, ls_key(state, i), ls_child(state, i));
        if (!st) {
            hash_number(&s, ls_steps(ls__checkpoint_strategy(c)));
            ls__sha256_end(&s, out);
        }
    }
    return st;
}
