/*
 * Calling callbacks. Each is called in an error scope of its own (rule H): what it leaves pending
 * fails the fit, with the callback's name in front; LS_END is no failure.
 */
#include <string.h>

#include "base/status.h"
#include "train/trainer.h"

void ls_callback_init(ls_callback *callback)
{
    if (callback)
        *callback = (ls_callback){ .size = sizeof *callback };
}

void ls_callback_free(ls_callback *callback)
{
    if (callback && callback->free)
        callback->free(callback->user);
}

static const char *name_of(const ls_callback *c)
{
    return c->name ? c->name : "callback";
}

ls_status ls__check_callbacks(const char *who, int count, ls_callback *const *callbacks)
{
    if (count < 0 || (count > 0 && !callbacks))
        return ls__fail(LS_INVALID, "%s: %d callbacks in %s", who, count,
                        callbacks ? "a list" : "NULL");
    for (int i = 0; i < count; i++) {
        const ls_callback *c = callbacks[i];
        if (!c)
            return ls_error_pending() ? ls_error_pending()
                                      : ls__fail(LS_INVALID, "%s: callback %d is NULL", who, i);
        if (c->size != sizeof *c)
            return ls__hint(ls__fail(LS_INVALID, "%s: callback %d has %zu bytes, wants %zu", who, i,
                                     c->size, sizeof *c),
                            "make it with LS_CALLBACK(...), or start from ls_callback_init");
        if (c->save && !c->name)
            return ls__fail(LS_INVALID, "%s: callback %d saves something, and has no name", who, i);
        for (int k = 0; c->save && k < i; k++)
            if (callbacks[k]->save && strcmp(callbacks[k]->name, c->name) == 0)
                return ls__fail(LS_INVALID,
                                "%s: callbacks %d and %d, which save, are both named '%s'", who, k,
                                i, c->name);
    }
    return LS_OK;
}

typedef ls_status (*called)(const ls_progress *p, void *user);

static called function_of(const ls_callback *c, ls__moment moment)
{
    switch (moment) {
    case LS__AT_BEGIN:
        return c->begin;
    case LS__AT_STEP:
        return c->step;
    case LS__AT_TEST_STEP:
        return c->test_step;
    case LS__AT_EPOCH:
        return c->epoch;
    case LS__AT_END:
        return c->end;
    }
    return NULL;
}

static ls_status call(const ls_callback *c, called fn, const ls_progress *p)
{
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = LS_OK;
    LS_FRAME
        st = fn(p, c->user);
    if (st == LS_END && !ls_error_pending()) {
        ls__error_scope_close(&scope, LS_OK, "%s", name_of(c));
        return LS_END;
    }
    if (st && !ls_error_pending())
        ls__fail(st, "it returned %s", ls_status_name(st));
    return ls__error_scope_close(&scope, st, "%s", name_of(c));
}

/* In which of the turns: what a later one saves is what those before it know. */
enum { TURNS = 3 };

static int turn_of(const ls_callback *c)
{
    return !c->last ? 0 : c->save ? 1 : 2;
}

ls_status ls__call_callbacks(const ls__audience *who, ls__moment moment, const ls_progress *p)
{
    ls_status result = LS_OK;
    for (int i = 0; i < TURNS * who->count; i++) {
        const ls_callback *c = who->callbacks[i % who->count];
        called fn = turn_of(c) == i / who->count ? function_of(c, moment) : NULL;
        ls_status st = fn ? call(c, fn, p) : LS_OK;
        const bool failed = st && st != LS_END;
        if (!result || (failed && result == LS_END))
            result = st;
        if (failed && moment != LS__AT_END)
            break;
    }
    return result;
}
