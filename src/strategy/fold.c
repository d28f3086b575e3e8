/*
 * Finding values that are only added up, and folding them. Invariants: left + right, in this order,
 * element by element; a buffer is in use by one node or spare.
 */
#include "strategy/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/fpu.h"
#include "kernels/replicas.h"
#include "ops/replicas.h"
#include "strategy/step.h"
#include "trace/memory.h"

/* ---- finding ------------------------------------------------------------------------------ */

/* What is looked at: a row of a meeting's graph that adds over replicas. */
typedef struct finding {
    struct ls__traced_step *step;
    ls__piece *meeting;
    const ls__graph *g;
    const ls__uses *uses;
    const ls__node *node;
    int instruction; /* of the node */
    int replicas;
} finding;

/* Whether the wire is what replica r brought, for this row alone. */
static bool is_brought(const finding *w, int wire, int r)
{
    const ls__wire *in = &w->g->wires[wire];
    return in->kind == LS__WIRE_INPUT && w->meeting->gained.at[in->index].from == r &&
           ls__only_user(w->uses, wire) == w->node;
}

static bool is_constant(const finding *w, const int *group)
{
    for (int r = 0; r < w->replicas; r++)
        if (group[r] != group[0])
            return false;
    return w->g->wires[group[0]].kind == LS__WIRE_CONSTANT;
}

static bool can_fold(const finding *w, const int *groups, int n)
{
    for (int a = 0; a < n; a++) {
        const int *group = groups + a * w->replicas;
        if (!LS__PICK(ls__replicas_table)->sum[w->g->wires[group[0]].spec.dtype])
            return false;
        for (int r = 0; r < w->replicas && !is_constant(w, group); r++)
            if (!is_brought(w, group[r], r))
                return false;
    }
    return true;
}

/* When replica 0 makes what it brings as number `brought`: its calls are in program order. */
static int made_at(const finding *w, int brought)
{
    const ls__graph *g = w->step->programs[0].recorded;
    int k = (int)(w->meeting - w->step->meetings);
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op->flags & LS__OP_SYNC && k-- == 0) {
            const ls__wire *wire = &g->wires[g->nodes[i]->inputs[brought]];
            return wire->kind == LS__WIRE_RESULT ? wire->node->at : -1;
        }
    return -1;
}

static ls_status add_array(const finding *w, const int *group, ls__folded *f)
{
    ls__folded_array *more = realloc(f->arrays, sizeof *more * (size_t)(f->count + 1));
    if (more)
        f->arrays = more;
    int *brought = more ? malloc(sizeof *brought * (size_t)w->replicas) : NULL;
    if (!brought)
        return ls__fail_memory("a traced step", sizeof *more * (size_t)(f->count + 1));
    const ls__spec *spec = &w->g->wires[group[0]].spec;
    ls__folded_array *a = &f->arrays[f->count++];
    *a = (ls__folded_array){ .dtype = spec->dtype,
                             .count = ls__spec_count(spec),
                             .made = -1,
                             .brought = brought,
                             .instruction = w->instruction,
                             .input = (int)(group - w->node->inputs) };
    bool constant = is_constant(w, group);
    if (constant)
        a->constant = ls__wire_data(w->g, group[0]);
    for (int r = 0; r < w->replicas; r++)
        brought[r] = constant ? -1 : w->meeting->gained.at[w->g->wires[group[r]].index].index;
    if (!constant)
        a->made = made_at(w, a->brought[0]);
    return LS_OK;
}

static ls_status look_at(const finding *w, ls__folded *f)
{
    ls__reduce_attrs *attrs = w->node->attrs;
    int first = (int)attrs->first;
    if (attrs->replicas != w->replicas || first >= w->node->n_inputs)
        return LS_OK;
    const int *groups = w->node->inputs + first;
    int n = (w->node->n_inputs - first) / w->replicas;
    if (!can_fold(w, groups, n))
        return LS_OK;
    ls_status st = LS_OK;
    for (int a = 0; a < n && !st; a++)
        st = add_array(w, groups + a * w->replicas, f);
    attrs->folded = 1;
    return st;
}

static int by_made(const void *a, const void *b)
{
    const ls__folded_array *x = a, *y = b;
    if (x->made != y->made)
        return x->made > y->made ? 1 : -1;
    if (x->instruction != y->instruction)
        return x->instruction > y->instruction ? 1 : -1;
    return (x->input > y->input) - (x->input < y->input);
}

ls_status ls__folded_find(struct ls__traced_step *step, int meeting)
{
    ls__piece *m = &step->meetings[meeting];
    ls__uses uses;
    ls_status st = ls__uses_find(m->plan->graph, &uses);
    if (st)
        return st;
    finding w = { step, m, m->plan->graph, &uses, NULL, 0, step->replicas };
    for (int i = 0; i < m->plan->n_instructions && !st; i++) {
        w.node = m->plan->instructions[i].node;
        w.instruction = i;
        if (w.node->op->flags & LS__OP_REDUCES)
            st = look_at(&w, &m->folded);
    }
    ls__uses_free(&uses);
    if (m->folded.count > 0)
        qsort(m->folded.arrays, (size_t)m->folded.count, sizeof *m->folded.arrays, by_made);
    for (int a = 0; a < m->folded.count; a++) {
        ls__folded_array *array = &m->folded.arrays[a];
        array->offset = m->folded.bytes;
        m->folded.bytes +=
            ls__arena_round((size_t)array->count * (size_t)ls_dtype_size(array->dtype));
    }
    return st;
}

void ls__folded_free(ls__folded *f)
{
    for (int a = 0; a < f->count; a++)
        free(f->arrays[a].brought);
    free(f->arrays);
    *f = (ls__folded){ .count = 0 };
}

ls_status ls__folded_lent(const struct ls__traced_step *step, int replica, ls__lent **out, int *n)
{
    size_t all = 1;
    for (int k = 0; k < step->n_meetings; k++)
        all += (size_t)step->meetings[k].folded.count;
    ls__lent *list = calloc(all, sizeof *list);
    if (!list)
        return ls__fail_memory("a traced step", all * sizeof *list);
    *n = 0;
    for (int k = 0; k < step->n_meetings; k++)
        for (int a = 0; a < step->meetings[k].folded.count; a++) {
            const ls__folded_array *array = &step->meetings[k].folded.arrays[a];
            if (array->brought[replica] >= 0)
                list[(*n)++] = (ls__lent){ k, array->brought[replica], array->offset, false };
        }
    *out = list;
    return LS_OK;
}

/* ---- folding ------------------------------------------------------------------------------ */

static void add_up(const ls__folded *f, void *left, const void *right)
{
    uint64_t fpu = ls__fpu_enter(); /* no row is called for this */
    for (int a = 0; a < f->count; a++) {
        const ls__folded_array *array = &f->arrays[a];
        char *x = (char *)left + array->offset;
        const void *both[] = { x, (const char *)right + array->offset };
        LS__PICK(ls__replicas_table)->sum[array->dtype](2, both, x, array->count);
    }
    ls__fpu_leave(fpu);
}

/* `f` NULL: a rehearsal, without memory. */
void ls__fold_take(ls__fold_stack *stack, const ls__folded *f, const ls__local *l, int rank,
                   int replica)
{
    const ls__fold *folds;
    int n = ls__local_folds(l, rank, &folds);
    stack->nodes[stack->n_nodes] = ls__tree_node_at(0, replica);
    stack->at[stack->n_nodes++] = stack->spare[--stack->n_spare];
    for (; stack->folded < n && stack->n_nodes > 1; stack->folded++) {
        const ls__fold *fold = &folds[stack->folded];
        int top = stack->n_nodes - 1;
        if (fold->right != stack->nodes[top] || fold->left != stack->nodes[top - 1])
            break;
        if (f)
            add_up(f, stack->at[top - 1]->data, stack->at[top]->data);
        stack->nodes[top - 1] = fold->sum;
        stack->spare[stack->n_spare++] = stack->at[top];
        stack->n_nodes--;
    }
}

void *ls__fold_buffer(const ls__fold_stack *stack)
{
    return stack->spare[stack->n_spare - 1]->data;
}

void ls__fold_stack_empty(ls__fold_stack *stack)
{
    stack->n_nodes = stack->folded = 0;
    stack->n_spare = stack->n_buffers;
    for (int i = 0; i < stack->n_buffers; i++)
        stack->spare[i] = stack->buffers[stack->n_buffers - 1 - i];
}

/* Buffers that are needed at once: tries it, with none. */
static int most_at_once(ls__fold_stack *stack, const ls__local *l, int rank, int first, int end)
{
    int most = 0;
    stack->n_spare = end - first; /* enough for a rehearsal */
    for (int r = first; r < end; r++) {
        most = stack->n_nodes + 1 > most ? stack->n_nodes + 1 : most;
        ls__fold_take(stack, NULL, l, rank, r);
    }
    return most;
}

ls_status ls__fold_stack_make(ls__fold_stack *stack, const ls__folded *f, const ls__local *l,
                              int rank, int first, int end)
{
    size_t n = (size_t)(end - first) + 1;
    *stack = (ls__fold_stack){ .buffers = calloc(n, sizeof(ls__storage *)),
                               .spare = calloc(n, sizeof(ls__storage *)),
                               .nodes = calloc(n, sizeof(ls__tree_node)),
                               .at = calloc(n, sizeof(ls__storage *)) };
    if (!stack->buffers || !stack->spare || !stack->nodes || !stack->at)
        return ls__fail_memory("a traced step", n * sizeof *stack->buffers);
    int most = most_at_once(stack, l, rank, first, end);
    while (stack->n_buffers < most) {
        stack->buffers[stack->n_buffers] = ls__storage_new("gradients of a replica", f->bytes);
        if (!stack->buffers[stack->n_buffers])
            return LS_NO_MEMORY;
        stack->n_buffers++;
    }
    ls__fold_stack_empty(stack);
    return LS_OK;
}

void ls__fold_stack_free(ls__fold_stack *stack)
{
    for (int i = 0; i < stack->n_buffers; i++)
        ls__storage_unref(stack->buffers[i]);
    free(stack->buffers);
    free(stack->spare);
    free(stack->nodes);
    free(stack->at);
    *stack = (ls__fold_stack){ .n_buffers = 0 };
}
