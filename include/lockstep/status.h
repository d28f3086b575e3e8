/*
 * status.h: what went wrong, and what to do about it.
 *
 * How to use it
 *
 * 1. A call that makes something returns a pointer, NULL when it failed; NULL
 *    given in gives NULL out. A call that does something returns ls_status.
 *    So a chain of maths needs one check, at its end:
 *
 *        ls_tensor *y = ls_relu(ls_matmul(x, w));
 *        if (!y)
 *            fprintf(stderr, "%s\n", ls_error_report());
 *
 * 2. The first failure on a thread is kept, with its code, text and hint,
 *    until somebody takes it with ls_error(). Later failures do not replace
 *    it: they are consequences. Taking it makes the thread clean again.
 *
 *        if (ls_error() == LS_SHAPE)          // taken: nothing is pending now
 *            puts(ls_error_text());           // still readable until the next
 *
 * 3. The library never prints to stdout, never exits and never aborts on what
 *    a user gives it. Failures are not logged: they are the caller's to report.
 *    What nobody asked for and somebody should know goes to the log callback
 *    (ls_log_set); until you set one, warnings go to stderr.
 *
 * All functions here may be called from any thread; errors belong to the
 * thread that made them.
 */
#ifndef LOCKSTEP_STATUS_H
#define LOCKSTEP_STATUS_H

#include <lockstep/export.h>

LS_BEGIN_DECLS

/* One list defines the codes: X(name, value, scope, text). The scope is the
 * largest thing the error ruins, that is, what a caller must rebuild. */
#define LS_STATUS_LIST(X)                                                \
    X(LS_OK, 0, CALL, "success")                                         \
    X(LS_INVALID, 1, CALL, "invalid argument")                           \
    X(LS_SHAPE, 2, CALL, "shape or dtype mismatch")                      \
    X(LS_STATE, 3, CALL, "not allowed in this context")                  \
    X(LS_END, 4, CALL, "no more elements")                               \
    X(LS_NOT_FOUND, 5, CALL, "not found")                                \
    X(LS_IO, 6, CALL, "the system refused")                              \
    X(LS_CORRUPT, 7, CALL, "damaged data")                               \
    X(LS_UNSUPPORTED, 8, CALL, "not available here")                     \
    X(LS_CANCELLED, 9, CALL, "another replica failed first")             \
    X(LS_NOT_FINITE, 11, CALL, "a value is not finite")                  \
    X(LS_NO_MEMORY, 10, PROCESS, "out of memory")                        \
    X(LS_PEER, 20, GENERATION, "a peer left")                            \
    X(LS_TIMEOUT, 21, GENERATION, "a peer did not answer in time")       \
    X(LS_DESYNC, 30, JOB, "workers issued different operations")

typedef enum ls_status {
#define LS__STATUS_ENUM(name, value, scope, text) name = value,
    LS_STATUS_LIST(LS__STATUS_ENUM)
#undef LS__STATUS_ENUM
} ls_status;

/* What a failure ruins, smallest first. */
typedef enum ls_scope {
    LS_SCOPE_CALL,       /* this call only: correct it and go on */
    LS_SCOPE_PROCESS,    /* this process: free something or start again */
    LS_SCOPE_GENERATION, /* the membership of the cluster: it re-forms */
    LS_SCOPE_JOB         /* the job: its workers disagree, start it again */
} ls_scope;

/* "LS_SHAPE"; "LS_?" for a number that is no code. Never NULL. */
LS_API const char *ls_status_name(ls_status status);

/* "shape or dtype mismatch". Never NULL. */
LS_API const char *ls_status_text(ls_status status);

LS_API ls_scope ls_status_scope(ls_status status);

/* Takes this thread's pending error: returns its code, or LS_OK when there is
 * none, and leaves the thread clean. */
LS_API ls_status ls_error(void);

/* The same without taking it. */
LS_API ls_status ls_error_pending(void);

/* What the pending error, or else the one taken last, says: what was given and
 * what was expected. "" when there was none. Valid until the next failure on
 * this thread. */
LS_API const char *ls_error_text(void);

/* What to do about it; "" when the text says it all. */
LS_API const char *ls_error_hint(void);

/* Takes the pending error and formats all of it as one string, for people:
 * "LS_SHAPE: matmul: ... (hint: ...)". "" when nothing was pending. One buffer a
 * thread: valid until the next report. Call it after the call that may have
 * failed, not as another argument of the same printf. */
LS_API const char *ls_error_report(void);

/* Logging: one callback for the whole process. */
typedef enum ls_log_level { LS_LOG_ERROR, LS_LOG_WARNING, LS_LOG_INFO, LS_LOG_DEBUG } ls_log_level;

typedef void (*ls_log_fn)(ls_log_level level, const char *message, void *user);

/* Sends messages of `most_detailed` and graver to `fn` (NULL: back to the default,
 * stderr, which shows LS_LOG_WARNING and graver whatever is given). `fn` may be called from any
 * thread, one call at a time; it must not log. */
LS_API void ls_log_set(ls_log_fn fn, void *user, ls_log_level most_detailed);

LS_END_DECLS

#endif
