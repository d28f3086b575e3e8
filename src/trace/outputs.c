/*
 * Outputs of a replay.
 */
#include "trace/outputs.h"

#include <string.h>

/* Whether an output is memory that is there already: an argument's or a constant's. */
static bool is_outside(const ls__place *place, int n_arguments)
{
    return place->base == LS__AT_CONSTANT ||
           (place->base == LS__AT_INPUT && place->index < n_arguments);
}

ls_tensor *ls__output_make(const ls__plan *plan, int k, ls_tensor *const *inputs, int n_arguments,
                           ls__device *device)
{
    const ls__graph *g = plan->graph;
    const ls__spec *spec = &g->wires[g->outputs[k]].spec;
    const ls__place *place = &plan->places[g->outputs[k]];
    if (is_outside(place, n_arguments)) {
        ls__storage *storage = place->base == LS__AT_INPUT ? inputs[place->index]->storage
                                                           : g->constants[place->index].storage;
        return ls__handle(spec, ls__storage_ref(storage), ls__new_id(), device);
    }
    ls_tensor *t = ls__tensor_new(g->name, spec);
    if (t)
        t->device = device;
    return t;
}

void ls__output_fill(const ls__plan *plan, const ls__instance *instance, int k, int n_arguments,
                     ls_tensor *out)
{
    const ls__graph *g = plan->graph;
    if (!is_outside(&plan->places[g->outputs[k]], n_arguments))
        memcpy(ls__data(out), ls__instance_output(instance, k),
               ls__spec_bytes(&g->wires[g->outputs[k]].spec));
}
