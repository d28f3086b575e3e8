/*
 * The internal side of <lockstep/status.h>: how a function that decides an
 * error records it, and the error scopes in which user callbacks run.
 */
#ifndef LS__BASE_STATUS_H
#define LS__BASE_STATUS_H

#include <lockstep/status.h>
#include <stddef.h>

/* Records an error on this thread unless one is pending already (the first is
 * the cause, the rest are consequences) and returns `status`, so that the
 * place that decides reads: return ls__fail(LS_SHAPE, "matmul: ...", ...). */
ls_status ls__fail(ls_status status, const char *format, ...) LS_PRINTF(2, 3);

/* Adds what to do about it to the error just recorded; returns `status`. */
ls_status ls__hint(ls_status status, const char *format, ...) LS_PRINTF(2, 3);

/* Fails with LS_NO_MEMORY and says what the memory was for. */
ls_status ls__fail_memory(const char *what, size_t bytes);

/* LS_INVALID when options are not of the size they should have. */
ls_status ls__check_options_size(const char *who, size_t size, size_t want);

/* An error scope (DESIGN rule H): what runs inside starts clean, and an error
 * left unread when it ends fails the call that opened the scope.
 *
 *     ls__error_scope scope;
 *     ls__error_scope_open(&scope);
 *     ls_status st = user_callback(...);
 *     st = ls__error_scope_close(&scope, st, "kernel of '%s'", name);
 *
 * Close returns the error left inside, else `st`; either way, when it is a
 * failure, it is pending on this thread with the text in front that says where
 * it happened. An error that was pending before the scope stays the first. */
typedef struct ls__error_record {
    ls_status status;
    char text[512];
    char hint[256];
} ls__error_record;

typedef struct ls__error_scope {
    ls__error_record outer;
} ls__error_scope;

void ls__error_scope_open(ls__error_scope *scope);
ls_status ls__error_scope_close(ls__error_scope *scope, ls_status status, const char *where, ...)
    LS_PRINTF(3, 4);

/* Moves an error between threads: take it off one, put it on another. */
void ls__error_take(ls__error_record *out);
void ls__error_put(const ls__error_record *record);

#endif
