/*
 * function.h: traced functions: record a step once, compile it, replay it.
 *
 * How to use it
 *
 * 1. Write the step as an ordinary C function of a value:
 *
 *        static ls_value *train_step(ls_value *batch, void *user)
 *        {
 *            model *m = user;
 *            ls_tape *tape = ls_tape_open();
 *            ls_tensor *loss = loss_of(m, ls_item(batch, 0), ls_item(batch, 1));
 *            ls_minimize(m->adam, tape, loss, m->count, m->variables);
 *            return ls_leaf(loss);
 *        }
 *
 * 2. Trace it, and call it as often as you like:
 *
 *        ls_function *step = ls_trace(train_step, &m);
 *        for each batch: LS_FRAME
 *            loss = ls_to_float(ls_leaf_tensor(ls_function_call(step, batch)));
 *        ls_function_free(step);
 *
 * The first call with arguments of some structure, dtypes and shapes runs the C
 * function on symbols: operators are recorded instead of run, gradients and
 * updates with them. What was recorded is compiled, and every call with such
 * arguments replays it: no C function, no allocation (once a thread has run some
 * hundred frames), no lock. The results are those of running the function itself, up to
 * the order in which fused operators add; with .off = "all" they have the same bits.
 *
 * What belongs to a replay, and what to the trace: arguments, the contents of variables, the
 * optimizer's rate and iteration, the seed and step of random draws are looked at
 * by every replay. Everything else is looked at once, while tracing: C control flow,
 * C numbers, which variables are trainable, initial values that are drawn, and tensors
 * from outside that the function uses (they are constants of the program). An `if` on a
 * value cannot be recorded, so reading a value while tracing (ls_to_float, ls_data,
 * ls_iterations...) is an error (LS_STATE) that says so; use ls_where, or return the value
 * and decide outside. Setting the seed or the step of draws inside is refused, too.
 *
 * An error left unread in the function, or a frame left open, fails the call that
 * traces. A replay that fails (a label out of range, say) says at which operator of the
 * step, and leaves every variable as it was. What nobody uses is not computed
 * (unless the pass `dead` is off), and so cannot fail.
 *
 * An argument is a value of its own: if it is what ls_read gave for a variable, or one
 * tensor given twice, the step does not know. Read variables inside the step to
 * differentiate with respect to them. Strings are neither arguments nor results.
 *
 * A traced function called while another is traced becomes part of that one.
 * Called while a tape is open on this thread it runs eagerly, so that gradients
 * flow through it. Called in one of several replicas of an eager run (strategy.h), it runs
 * untraced, as part of that replica's step. One call of a function at a time: LS_STATE for
 * the other.
 */
#ifndef LOCKSTEP_FUNCTION_H
#define LOCKSTEP_FUNCTION_H

#include <lockstep/value.h>

LS_BEGIN_DECLS

typedef struct ls_function ls_function;

/* A step: gets the arguments of the call, returns the results (ls_list(0, NULL) for none);
 * NULL is the pending error. */
typedef ls_value *(*ls_step)(ls_value *arguments, void *user);

/* Zero means default. */
typedef struct ls_trace_options {
    size_t size;
    const char *name; /* in errors, warnings and dumps ("step") */
    int cache;        /* programs kept (16; at most 4096): the one used least recently goes */
    const char *off;  /* passes that are not run, "fuse-conv,layout", or "all" (none). There are dead,
                       * common, writes-last, fuse-pool, fuse-loss, fuse-attention, fuse-heads,
                       * fuse-conv, fuse-conv-pool, fuse-matmul, pack, layout, fuse-chain, fuse-update,
                       * products, early, buckets, memory */
} ls_trace_options;
LS_API void ls_trace_init(ls_trace_options *options);
#ifndef __cplusplus
#define LS_TRACE(...) (&(ls_trace_options){ .size = sizeof(ls_trace_options), __VA_ARGS__ })
#endif

/* Nothing runs yet. NULL on failure. Yours until ls_function_free, which takes NULL. */
LS_API ls_function *ls_trace(ls_step step, void *user);
LS_API ls_function *ls_trace_with(const ls_trace_options *options, ls_step step, void *user);
LS_API void ls_function_free(ls_function *function);

/* Replays the step on these arguments, tracing it first if it must. The results
 * belong to the innermost frame. */
LS_API ls_value *ls_function_call(ls_function *function, ls_value *arguments);

/* ---- looking inside ---------------------------------------------------------- */

/* How many programs were made so far: one per structure, dtypes and shapes of arguments,
 * device, strategy, kernel threads, numeric check. Many more than your data has shapes means that
 * the cache churns (a warning says so, too). */
LS_API int64_t ls_function_traces(const ls_function *function);

/* Of the program last called. */
typedef struct ls_function_figures {
    size_t size;            /* sizeof this; set it before the call */
    int64_t operators;      /* recorded */
    int64_t instructions;   /* of a replay, after compiling */
    size_t arena_bytes;     /* memory for what a replay computes */
    size_t arena_least;     /* no plan for these instructions can do with less */
    size_t constant_bytes;
    size_t packed_bytes;    /* weights kept in another layout */
} ls_function_figures;
LS_API ls_status ls_function_look(const ls_function *function, ls_function_figures *out);

/* The program last called, as text (one line an operator) or for graphviz; as
 * recorded, or as compiled. Belongs to the innermost frame. */
typedef enum ls_dump_format { LS_DUMP_TEXT = 1, LS_DUMP_DOT } ls_dump_format;
LS_API const char *ls_function_dump(const ls_function *function, ls_dump_format format,
                                    bool compiled);

LS_END_DECLS

#endif
