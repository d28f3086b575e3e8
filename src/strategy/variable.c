/*
 * Variables of one replica: a name and a cell.
 */
#include "strategy/variable.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dispatch/sink.h"
#include "ops/variable.h"
#include "tensor/tensor.h"

ls_status ls__check_variable(const char *who, const ls_variable *v)
{
    if (v)
        return LS_OK;
    if (ls_error_pending())
        return ls_error_pending();
    return ls__hint(ls__fail(LS_INVALID, "%s: the variable is NULL", who),
                    "ls_variable_new may have failed and its error been read");
}

ls_variable *ls_variable_new(const char *name, ls_tensor *initial, bool trainable)
{
    if (ls__check_tensor("ls_variable_new", "initial", initial))
        return NULL;
    if (!name || !name[0]) {
        ls__fail(LS_INVALID, "ls_variable_new: a variable of %s without a name",
                 ls_describe(initial));
        return NULL;
    }
    if (initial->spec.dtype == LS_BYTES) {
        ls__fail(LS_SHAPE, "ls_variable_new: '%s' of %s; variables hold numbers", name,
                 ls_describe(initial));
        return NULL;
    }
    if (initial->storage->symbol) {
        ls__hint(ls__fail(LS_STATE, "ls_variable_new: the initial value of '%s' is not known while "
                                    "the step is traced", name),
                 "make variables before the step, or of values from outside it");
        return NULL;
    }
    ls_variable *v = calloc(1, sizeof *v);
    char *copy = strdup(name);
    if (!v || !copy) {
        ls__fail_memory("ls_variable_new", sizeof *v);
        goto undo;
    }
    if (ls__cell_new(name, &initial->spec, &v->cell))
        goto undo;
    /* A variable made while a step is traced is made now, not by every replay. */
    ls__sink *sink = ls__sink_set(NULL);
    ls_status st = ls__cell_assign(v->cell, initial);
    ls__sink_set(sink);
    if (st)
        goto undo_cell;
    v->name = copy;
    v->trainable = trainable;
    return v;
undo_cell:
    ls__cell_unref(v->cell);
undo:
    free(copy);
    free(v);
    return NULL;
}

void ls_variable_free(ls_variable *v)
{
    if (!v)
        return;
    ls__cell_unref(v->cell);
    free(v->name);
    free(v);
}

const char *ls_variable_name(const ls_variable *v)
{
    return v ? v->name : NULL;
}

bool ls_variable_trainable(const ls_variable *v)
{
    return v && v->trainable;
}

void ls_variable_set_trainable(ls_variable *v, bool trainable)
{
    if (v)
        v->trainable = trainable;
}

ls_tensor *ls_read(ls_variable *v)
{
    return ls__check_variable("ls_read", v) ? NULL : ls__cell_read_op(v->cell);
}

/* An error of a write names the variable, not only its shape. */
static ls_status write(const char *who, ls_variable *v, ls_tensor *value,
                       ls_status (*fn)(ls__cell *, ls_tensor *))
{
    ls_status st = ls__check_variable(who, v);
    if (st)
        return st;
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    if (!value && scope.outer.status) { /* passed on, not replaced */
        ls__error_put(&scope.outer);
        return scope.outer.status;
    }
    return ls__error_scope_close(&scope, fn(v->cell, value), "%s: variable '%s'", who, v->name);
}

ls_status ls_assign(ls_variable *v, ls_tensor *value)
{
    return write("ls_assign", v, value, ls__cell_assign);
}

ls_status ls_assign_add(ls_variable *v, ls_tensor *value)
{
    return write("ls_assign_add", v, value, ls__cell_assign_add);
}

ls_status ls_assign_sub(ls_variable *v, ls_tensor *value)
{
    return write("ls_assign_sub", v, value, ls__cell_assign_sub);
}
