/* Early updates in a step (early.h). */
#include <stdlib.h>

#include "ops/update.h"
#include "os/clock.h"
#include "strategy/early.h"
#include "strategy/step.h"

ls_status ls__early_begin(ls__early *early)
{
    ls__piece *p = &early->piece;
    int none;
    ls__instance_begin(p->instance, p->inputs, &p->first); /* numbers have no inputs */
    return ls__instance_run_to(p->instance, early->rows[0].instruction, &none);
}

void ls__early_open(ls__early *early, const ls__traced_step *step, int devices)
{
    ls__piece *p = &early->piece;
    for (int i = 0; i < p->gained.count; i++) {
        const ls__source from = p->gained.at[i];
        const ls_call *meet =
            ls__instance_call(step->programs[from.from].instance, early->meets[from.from]);
        p->inputs[i] = meet->in_data[from.index];
    }
    ls__instance_inputs(p->instance, p->inputs);
    for (int row = 0; row < early->n_rows; row++)
        ls__update_products_begin(early->rows[row].work,
                                  ls__instance_call(p->instance, early->rows[row].instruction),
                                  devices);
    early->devices = devices;
}

void ls__early_join(ls__early *early, int row, int device)
{
    int64_t *spent = early->rows[row].spent;
    const int64_t begin = spent ? ls__now() : 0;
    ls__update_products_join(early->rows[row].work, device);
    if (spent)
        spent[device] = ls__now() - begin;
}

void ls__early_end(ls__early *early)
{
    for (int row = 0; row < early->n_rows; row++) {
        const int64_t *spent = early->rows[row].spent;
        int64_t ns = 0;
        for (int d = 0; spent && d < early->devices; d++)
            ns += spent[d];
        if (spent)
            ls__instance_time_add(early->piece.instance, early->rows[row].instruction, ns);
    }
}

ls_status ls__early_time(ls__early *early, int devices)
{
    if (early->n_rows == 0)
        return LS_OK;
    for (int row = 0; row < early->n_rows; row++) {
        int64_t *spent = realloc(early->rows[row].spent, sizeof *spent * (size_t)devices);
        if (!spent)
            return ls__fail_memory("times of operators", sizeof *spent * (size_t)devices);
        early->rows[row].spent = spent;
    }
    return ls__instance_time(early->piece.instance);
}
