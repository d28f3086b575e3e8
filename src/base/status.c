/*
 * One error record per thread. Invariant: while `pending` is set, code, text
 * and hint are those of the first failure; once taken, the text stays readable
 * until the next failure overwrites it.
 */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local ls__error_record error;
static _Thread_local int pending;
/* ls__hint belongs to the failure recorded just before it, not to an older one. */
static _Thread_local int hint_wanted;

const char *ls_status_name(ls_status status)
{
    switch (status) {
#define NAME_CASE(name, value, scope, text)                                                        \
    case name:                                                                                     \
        return #name;
        LS_STATUS_LIST(NAME_CASE)
#undef NAME_CASE
    }
    return "LS_?";
}

const char *ls_status_text(ls_status status)
{
    switch (status) {
#define TEXT_CASE(name, value, scope, text)                                                        \
    case name:                                                                                     \
        return text;
        LS_STATUS_LIST(TEXT_CASE)
#undef TEXT_CASE
    }
    return "unknown status";
}

ls_scope ls_status_scope(ls_status status)
{
    switch (status) {
#define SCOPE_CASE(name, value, scope, text)                                                       \
    case name:                                                                                     \
        return LS_SCOPE_##scope;
        LS_STATUS_LIST(SCOPE_CASE)
#undef SCOPE_CASE
    }
    return LS_SCOPE_CALL;
}

ls_status ls__fail(ls_status status, const char *format, ...)
{
    hint_wanted = !pending;
    if (pending)
        return status;
    va_list args;
    va_start(args, format);
    vsnprintf(error.text, sizeof error.text, format, args);
    va_end(args);
    error.status = status;
    error.hint[0] = '\0';
    pending = 1;
    return status;
}

ls_status ls__hint(ls_status status, const char *format, ...)
{
    if (!hint_wanted)
        return status;
    hint_wanted = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(error.hint, sizeof error.hint, format, args);
    va_end(args);
    return status;
}

ls_status ls__fail_memory(const char *what, size_t bytes)
{
    return ls__hint(ls__fail(LS_NO_MEMORY, "%s: no memory for %zu bytes", what, bytes),
                    "close frames earlier, use smaller batches, or a machine with more memory");
}

ls_status ls__check_options_size(const char *who, size_t size, size_t want)
{
    if (size == want)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "%s: options of %zu bytes, wants %zu", who, size, want),
                    "fill options with the macro, or with the _init function first");
}

ls_status ls_error(void)
{
    if (!pending)
        return LS_OK;
    pending = 0;
    return error.status;
}

ls_status ls_error_pending(void)
{
    return pending ? error.status : LS_OK;
}

const char *ls_error_text(void)
{
    return error.text;
}

const char *ls_error_hint(void)
{
    return error.hint;
}

const char *ls_error_report(void)
{
    static _Thread_local char report[sizeof error.text + sizeof error.hint + 64];
    if (!pending)
        return "";
    const char *open = error.hint[0] ? " (hint: " : "";
    const char *close = error.hint[0] ? ")" : "";
    snprintf(report, sizeof report, "%s: %s%s%s%s", ls_status_name(error.status), error.text, open,
             error.hint, close);
    pending = 0;
    return report;
}

void ls__error_take(ls__error_record *out)
{
    if (pending)
        *out = error;
    else
        *out = (ls__error_record){ .status = LS_OK };
    pending = 0;
}

void ls__error_put(const ls__error_record *record)
{
    if (record->status == LS_OK || pending)
        return;
    error = *record;
    pending = 1;
}

void ls__error_scope_open(ls__error_scope *scope)
{
    ls__error_take(&scope->outer);
}

ls_status ls__error_scope_close(ls__error_scope *scope, ls_status status, const char *where, ...)
{
    if (pending)
        status = error.status;
    else if (status != LS_OK)
        ls__fail(status, "%s", ls_status_text(status));

    if (status != LS_OK) {
        char place[128];
        va_list args;
        va_start(args, where);
        vsnprintf(place, sizeof place, where, args);
        va_end(args);
        char inner[sizeof error.text];
        memcpy(inner, error.text, sizeof inner);
        snprintf(error.text, sizeof error.text, "%s: %.*s", place,
                 (int)(sizeof error.text - sizeof place - 3), inner);
    }
    if (scope->outer.status != LS_OK) { /* the older error is the first one */
        error = scope->outer;
        pending = 1;
    }
    return status;
}
