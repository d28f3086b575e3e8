/*
 * A round of a replay: the devices run the piece of their replicas, one replica after the other,
 * and early updates when they are done (early.h).
 */
#include <string.h>

#include "collective/placement.h"
#include "dispatch/context.h"
#include "kernels/threads.h"
#include "strategy/defect.h"
#include "strategy/host.h"
#include "strategy/phases.h"
#include "strategy/replay_state.h"
#include "strategy/team.h"
#include "tensor/tensor.h"

ls__fold_stack *ls__replay_folds(const ls__replay *p, int device)
{
    if (p->piece >= p->step->n_meetings || p->step->meetings[p->piece].folded.count == 0)
        return NULL;
    return &p->step->memory[device].folds[p->piece];
}

/* What could not be made in the buffer is copied there; then the buffer is full. */
static void fold(ls__replay *p, int r, int device, ls__fold_stack *stack)
{
    const ls__piece *program = &p->step->programs[r];
    const ls__folded *folded = &p->step->meetings[p->piece].folded;
    char *buffer = ls__fold_buffer(stack);
    const ls_call *c = ls__instance_call(program->instance, p->parts[r].meeting);
    for (int i = 0; i < program->plan->n_lent; i++) {
        const ls__lent *lent = &program->plan->lent[i];
        if (lent->meeting == p->piece && !lent->placed)
            memcpy(buffer + lent->offset, c->in_data[lent->input],
                   ls__spec_bytes(c->in[lent->input]));
    }
    for (int a = 0; a < folded->count; a++) {
        const ls__folded_array *array = &folded->arrays[a];
        if (array->constant)
            memcpy(buffer + array->offset, array->constant,
                   (size_t)array->count * ls_dtype_size(array->dtype));
    }
    ls__fold_take(stack, folded, p->s->team.folded, device, r);
}

/* The error that is pending here, with the name of the step in front. */
static void take_error(const char *step, ls__error_record *out)
{
    ls__error_record own;
    ls__error_take(&own);
    ls_status st = ls__fail(own.status, "%s: %s", step, own.text);
    if (own.hint[0])
        ls__hint(st, "%s", own.hint);
    ls__error_take(out);
}

/* What its arguments' elements are copied from may be all over the memory: that is done here, on
 * its device. */
static void look_at_inputs(const ls__replay *p, int r)
{
    const ls__replay_part *mine = &p->parts[r];
    for (int i = 0; i < p->step->programs[r].n_arguments; i++)
        if (ls__storage_waits(mine->inputs[i]->storage)) {
            ls__phases_enter(p->s->phases, r, r + 1, LS_PHASE_INPUT);
            ls__storage_fill(mine->inputs[i]->storage);
        }
}

/* On the way, early updates are told where the replica has got to. */
static ls_status run_program(ls__replay *p, int r, int stop)
{
    ls__instance *instance = p->step->programs[r].instance;
    ls__replay_part *mine = &p->parts[r];
    for (mine->came = 0; p->early && mine->came < p->early->n_rows; mine->came++) {
        ls__early_row *row = &p->early->rows[mine->came];
        ls_status st = ls__instance_run_to(instance, row->ready[r], &mine->meeting);
        if (st)
            return st;
        ls__event_post(&row->came);
    }
    return ls__instance_run_to(instance, stop, &mine->meeting);
}

static bool run_part(ls__replay *p, int r, int device)
{
    ls__piece *program = &p->step->programs[r];
    ls__replay_part *mine = &p->parts[r];
    ls__fold_stack *stack = ls__replay_folds(p, device);
    if (p->piece == 0)
        look_at_inputs(p, r);
    if (stack)
        ls__instance_lend(program->instance, p->piece, ls__fold_buffer(stack));
    int stop = p->to_tail ? program->plan->tail : program->plan->n_instructions;
    mine->status = run_program(p, r, stop);
    if (mine->status)
        take_error(program->recorded->name, &mine->error);
    else if (stack)
        fold(p, r, device, stack);
    return !mine->status;
}

/* The device's replicas, one after the other. Whose turn it is not waits for no reduction; what
 * all of them wait for in the end is that, where others are at work or a meeting comes. */
static void run_parts(ls__replay *p, int device)
{
    const int first = ls__block_begin(p->s->replicas, p->devices, device);
    const int end = ls__block_begin(p->s->replicas, p->devices, device + 1);
    bool busy = false;
    for (int r = first; r < end && p->s->phases; r++)
        busy |= ls__instance_has_work(p->step->programs[r].instance);
    if (busy)
        ls__phases_enter(p->s->phases, first + 1, end, LS_PHASE_OTHER);
    for (int r = first; r < end; r++) {
        if (!run_part(p, r, device))
            break; /* the step did not happen: what the others would do is not seen */
        if (busy && r + 1 < end)
            ls__phases_enter(p->s->phases, r, r + 1, LS_PHASE_OTHER);
    }
    if (busy && (p->devices > 1 || p->piece < p->step->n_meetings))
        ls__phases_enter(p->s->phases, first, end, LS_PHASE_REDUCE);
}

/* Who waits for replicas that failed, or whose turn did not come, waits no longer. */
static void let_go(ls__replay *p, int first, int end)
{
    for (int r = first; r < end; r++)
        if (p->parts[r].came < p->early->n_rows)
            atomic_store_explicit(&p->failed, true, memory_order_relaxed); /* posts release it */
    for (int r = first; r < end; r++)
        for (int row = p->parts[r].came; row < p->early->n_rows; row++)
            ls__event_post(&p->early->rows[row].came);
}

/* Its replicas are done: the device makes updates that are ready, with the devices that are there. */
static void run_early(ls__replay *p, int device)
{
    ls_strategy *s = p->s;
    ls__early *early = p->early;
    const int first = ls__block_begin(s->replicas, p->devices, device);
    const int end = ls__block_begin(s->replicas, p->devices, device + 1);
    const uint32_t all = early->steps * (uint32_t)s->replicas;
    let_go(p, first, end);
    ls__journal *journal = ls__journal_use(NULL);
    for (int row = 0; row < early->n_rows; row++) {
        ls__phases_enter(s->phases, first, end, LS_PHASE_REDUCE);
        ls__help_wait(&s->help, &early->rows[row].came, all, s->spin);
        if (atomic_load_explicit(&p->failed, memory_order_relaxed))
            break;
        ls__phases_enter(s->phases, first, end, LS_PHASE_APPLY);
        ls__early_join(early, row, device);
    }
    ls__phases_enter(s->phases, first, end, LS_PHASE_REDUCE);
    ls__journal_use(journal);
}

static void run_share(ls__replay *p, int device)
{
    ls_strategy *s = p->s;
    ls__journal *journal = ls__journal_use(p->journal_now);
    ls__team *team = ls__team_use(NULL); /* of a meeting around: its threads are at work here */
    ls__help_member *member = ls__help_join(&s->help, device);
    ls_numerics numerics = ls_check_numerics(p->numerics);
    int threads = ls__kernel_threads_get();
    if (threads != p->kernel_threads)
        ls__kernel_threads(p->kernel_threads);
    run_parts(p, device);
    if (p->early)
        run_early(p, device);
    if (threads != p->kernel_threads)
        ls__kernel_threads(threads);
    ls_check_numerics(numerics);
    ls__help_leave(member);
    ls__team_use(team);
    ls__journal_use(journal);
    if (p->devices > 1 && atomic_fetch_sub_explicit(&p->pending, 1, memory_order_acq_rel) == 1)
        ls__event_post(&s->done); /* the replay may be over at once */
}

void ls__replay_share(ls__replay *p, int replica)
{
    run_share(p, ls__block_of(p->s->replicas, p->devices, replica));
}

/* The lowest replica that failed, or -1. */
static int first_failed(const ls__replay *p)
{
    int n = p->s->replicas;
    for (int i = 0; i < n; i++) {
        int r = LS__DEFECT(LS__HIGHEST_ERROR) ? n - 1 - i : i;
        if (p->parts[r].status)
            return r;
    }
    return -1;
}

ls_status ls__replay_round(ls__replay *p, bool journaled, bool to_tail)
{
    ls_strategy *s = p->s;
    p->journal_now = journaled ? &p->journal : NULL;
    p->to_tail = to_tail;
    if (p->devices > 1) /* the default strategy is any thread's */
        s->rounds++;
    atomic_store_explicit(&p->pending, p->devices, memory_order_relaxed);
    for (int d = 1; d < p->devices; d++)
        ls__host_tell(s, ls__block_begin(s->replicas, p->devices, d), LS__ORDER_REPLAY, p);
    run_share(p, 0);
    if (p->devices > 1)
        ls__help_wait(&s->help, &s->done, s->rounds, s->spin);
    int failed = first_failed(p);
    if (failed < 0)
        return LS_OK;
    return ls__fail_as_replica(s, failed, &p->parts[failed].error);
}
