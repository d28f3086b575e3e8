/*
 * The memory of a traced step on its devices. Replicas of one device run one after another, so
 * they have one arena, one set of packed weights, and as few buffers for gradients as folding
 * needs; what a replica needs after a meeting is its own. When the placement changes, all of it
 * is made anew.
 */
#include <stdlib.h>

#include "collective/placement.h"
#include "strategy/phases.h"
#include "strategy/step.h"

void ls__step_unplace(ls__traced_step *step)
{
    for (int r = step->replicas; step->programs && r-- > 0;) { /* twins after who shares theirs */
        ls__instance_close(step->programs[r].instance);
        step->programs[r].instance = NULL;
    }
    for (int d = 0; step->memory && d < step->devices; d++) {
        ls__device_memory *m = &step->memory[d];
        for (int k = 0; m->folds && k < step->n_meetings; k++)
            ls__fold_stack_free(&m->folds[k]);
        free(m->folds);
        ls__storage_unref(m->arena);
    }
    free(step->memory);
    step->memory = NULL;
    step->devices = 0;
}

/* An instance of replica r's program; its packed weights are those of the first of the device
 * with the same plan. */
static ls_status open_program(ls__traced_step *step, const ls_strategy *s, int first, int r,
                              ls__storage *arena)
{
    ls__piece *p = &step->programs[r];
    const ls__graph *g = p->recorded;
    ls__cell **cells = calloc((size_t)g->n_cells + 1, sizeof *cells);
    if (!cells)
        return ls__fail_memory("a traced step", sizeof *cells * (size_t)(g->n_cells + 1));
    for (int i = 0; i < g->n_cells; i++) /* passes keep the cells of a graph and their order */
        cells[i] = g->cells[i].cell;
    ls__instance *twin = NULL;
    for (int q = first; q < r && !twin; q++)
        if (step->programs[q].plan == p->plan)
            twin = step->programs[q].instance;
    ls_status st = ls__instance_open_with(p->plan, cells, arena, twin, &p->instance);
    if (!st && s->phases)
        ls__instance_watch(p->instance, (ls__watch){ ls__phase_watch, &s->phases->of[r] });
    free(cells);
    return st;
}

static ls_status open_device(ls__traced_step *step, const ls_strategy *s, int d)
{
    ls__device_memory *m = &step->memory[d];
    int first = ls__block_begin(step->replicas, step->devices, d);
    int end = ls__block_begin(step->replicas, step->devices, d + 1);
    size_t bytes = 0;
    for (int r = first; r < end; r++) {
        size_t mine = step->programs[r].plan->arena_bytes;
        bytes = mine > bytes ? mine : bytes;
    }
    m->folds = calloc((size_t)step->n_meetings + 1, sizeof *m->folds);
    if (!m->folds)
        return ls__fail_memory("a traced step", sizeof *m->folds);
    m->arena = ls__storage_new("the memory of a traced step", bytes);
    ls_status st = m->arena ? LS_OK : LS_NO_MEMORY;
    for (int r = first; r < end && !st; r++)
        st = open_program(step, s, first, r, m->arena);
    for (int k = 0; k < step->n_meetings && !st; k++)
        if (step->meetings[k].folded.count > 0)
            st = ls__fold_stack_make(&m->folds[k], &step->meetings[k].folded, s->team.folded, d,
                                     first, end);
    return st;
}

ls_status ls__step_place(ls__traced_step *step, const ls_strategy *s)
{
    int devices = s->n_devices ? s->n_devices : 1;
    if (step->devices == devices)
        return LS_OK;
    ls__step_unplace(step);
    step->memory = calloc((size_t)devices, sizeof *step->memory);
    if (!step->memory)
        return ls__fail_memory("a traced step", sizeof *step->memory * (size_t)devices);
    step->devices = devices;
    ls_status st = LS_OK;
    for (int d = 0; d < devices && !st; d++)
        st = open_device(step, s, d);
    for (int k = 0; k < step->n_meetings && s->phases && !st; k++)
        ls__instance_watch(step->meetings[k].instance, (ls__watch){ ls__phases_watch, s->phases });
    if (st)
        ls__step_unplace(step);
    return st;
}
