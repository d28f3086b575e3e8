/*
 * A recorded step as a tensorflow.GraphDef: a node for every call, variable, constant, argument and
 * result. A step of many replicas is shown as replica 0's program and the programs of its
 * meetings, joined where they meet: what the other replicas bring comes from a node for each of them.
 *
 * Invariant: whoever is named as an input is a node. Variables point to those who read and to
 * those who write them, as handles do in TensorFlow, so the graph has no circle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/wire_write.h"
#include "strategy/step.h"
#include "trace/graph_out.h"
#include "train/events.h"
#include "train/events_names.h"
#include "train/events_node.h"

enum { GRAPH_VERSIONS = 4, VERSIONS_PRODUCER = 1 };

/* A recorded program: replica 0's (or the only one there is), or a meeting's. */
typedef struct part {
    const ls__graph *g;
    /* Where inputs from `arguments` on come from; may be NULL, or have more than were traced (products.c). */
    const ls__sources *gained;
    int arguments;
    int meeting; /* its number; -1: it is none */
    const char *scope;
    const char **scopes;   /* per node */
    const char **nodes;    /* names, per node; NULL: it is not shown */
    const char **wires;    /* names, per wire: of constants, and of arguments */
    const char **replicas; /* of a meeting: names, per replica, of nodes for those other than 0 */
} part;

typedef struct variable {
    uint64_t serial;
    const char *name;
    const ls__spec *spec;
} variable;

typedef struct picture {
    ls__node_names names;
    int n_replicas;
    part *parts; /* the first is replica 0's; then meetings */
    int n_parts;
    variable *variables;
    int n_variables;
    ls__buffer *out;
} picture;

/* ---- what is shown ---------------------------------------------------------------------------------- */

/* A meeting is called after the call that made it: the first word of its name. */
static const char *meeting_scope(picture *p, const ls__graph *g)
{
    char *word = ls__arena_string(&p->names.arena, g->name);
    if (word)
        word[strcspn(word, " (")] = '\0';
    return word ? ls__node_name(&p->names, "", word) : NULL;
}

static ls_status make_part(picture *p, part *to, const ls__graph *g, const ls__piece *piece,
                           int meeting)
{
    size_t wires = (size_t)g->n_wires + 1, nodes = (size_t)g->n_nodes + 1;
    *to = (part){ .g = g, .meeting = meeting };
    to->gained = piece ? &piece->gained : NULL;
    to->arguments = meeting >= 0 ? 0 : piece ? piece->n_arguments : g->n_inputs;
    to->scope = meeting >= 0 ? meeting_scope(p, g) : "";
    to->scopes = to->scope ? ls__node_scopes(&p->names, g, to->scope) : NULL;
    if (!to->scopes)
        return ls_error_pending();
    to->nodes = calloc(nodes, sizeof *to->nodes);
    to->wires = calloc(wires, sizeof *to->wires);
    to->replicas = calloc((size_t)p->n_replicas + 1, sizeof *to->replicas);
    return to->nodes && to->wires && to->replicas
               ? LS_OK
               : ls__fail_memory("a graph", wires * sizeof *to->wires);
}

static ls_status make_parts(picture *p, const ls_function *f)
{
    const ls__traced_step *step = f->steps;
    if (!step || ls__piece_traced(&step->programs[0]) != f->last_recorded)
        step = NULL; /* what was called last is no run on many replicas */
    int meetings = step ? step->n_meetings : 0;
    p->n_replicas = step ? step->replicas : 1;
    p->parts = calloc((size_t)meetings + 1, sizeof *p->parts);
    if (!p->parts)
        return ls__fail_memory("a graph", sizeof *p->parts);
    p->n_parts = meetings + 1;
    ls_status st = make_part(p, &p->parts[0], f->last_recorded, step ? step->programs : NULL, -1);
    for (int k = 0; k < meetings && !st; k++)
        st = make_part(p, &p->parts[k + 1], ls__piece_traced(&step->meetings[k]),
                       &step->meetings[k], k);
    return st;
}

static void free_picture(picture *p)
{
    for (int i = 0; i < p->n_parts; i++) {
        free(p->parts[i].scopes);
        free(p->parts[i].nodes);
        free(p->parts[i].wires);
        free(p->parts[i].replicas);
    }
    free(p->parts);
    free(p->variables);
    ls__node_names_free(&p->names);
}

/* ---- names --------------------------------------------------------------------------------------------- */

static const variable *find_variable(const picture *p, uint64_t serial)
{
    for (int i = 0; i < p->n_variables; i++)
        if (p->variables[i].serial == serial)
            return &p->variables[i];
    return NULL;
}

/* Before all others, so that they are called what their makers call them. */
static ls_status name_variables(picture *p)
{
    size_t most = 1;
    for (int i = 0; i < p->n_parts; i++)
        most += (size_t)p->parts[i].g->n_cells;
    p->variables = calloc(most, sizeof *p->variables);
    if (!p->variables)
        return ls__fail_memory("a graph", most * sizeof *p->variables);
    for (int i = 0; i < p->n_parts; i++)
        for (int k = 0; k < p->parts[i].g->n_cells; k++) {
            const ls__graph_cell *c = &p->parts[i].g->cells[k];
            if (find_variable(p, c->serial))
                continue;
            const char *name = ls__node_name(&p->names, "", c->name);
            if (!name)
                return ls_error_pending();
            p->variables[p->n_variables++] = (variable){ c->serial, name, &c->spec };
        }
    return LS_OK;
}

static ls_status name_wire(picture *p, part *a, int wire, const char *scope, const char *name)
{
    if (!a->wires[wire])
        a->wires[wire] = ls__node_name(&p->names, scope, name);
    return a->wires[wire] ? LS_OK : ls_error_pending();
}

static ls_status name_inputs(picture *p, part *a)
{
    ls_status st = LS_OK;
    for (int i = 0; i < a->arguments && !st; i++) {
        char name[32];
        snprintf(name, sizeof name, "argument_%d", i);
        st = name_wire(p, a, a->g->inputs[i], a->scope, name);
    }
    for (int i = 0; a->meeting >= 0 && i < a->g->n_inputs && !st; i++) {
        int r = a->gained->at[i].from;
        char name[32];
        snprintf(name, sizeof name, "replica_%d", r);
        if (r > 0 && !a->replicas[r])
            st = (a->replicas[r] = ls__node_name(&p->names, a->scope, name)) ? LS_OK
                                                                             : ls_error_pending();
    }
    return st;
}

/* Meetings are shown by what is done there. */
static bool is_shown(const picture *p, const ls__node *node)
{
    return p->n_parts == 1 || !(node->op->flags & LS__OP_SYNC);
}

static ls_status name_part(picture *p, part *a)
{
    ls_status st = name_inputs(p, a);
    for (int i = 0; i < a->g->n_nodes && !st; i++) {
        const ls__node *node = a->g->nodes[i];
        if (!is_shown(p, node))
            continue;
        a->nodes[i] = ls__node_name(&p->names, a->scopes[i], node->op->name);
        st = a->nodes[i] ? LS_OK : ls_error_pending();
        for (int k = 0; k < node->n_inputs && !st; k++)
            if (a->g->wires[node->inputs[k]].kind == LS__WIRE_CONSTANT)
                st = name_wire(p, a, node->inputs[k], a->scopes[i], "constant");
    }
    for (int i = 0; i < a->g->n_outputs && !st; i++)
        if (a->g->wires[a->g->outputs[i]].kind == LS__WIRE_CONSTANT)
            st = name_wire(p, a, a->g->outputs[i], a->scope, "constant");
    return st;
}

/* ---- where wires come from --------------------------------------------------------------------------- */

typedef struct source {
    const char *name;
    int index; /* of the node's outputs */
} source;

/* The wire that replica 0 brings to a meeting as its `index`th. */
static int brought(const picture *p, int meeting, int index)
{
    const ls__graph *g = p->parts[0].g;
    for (int i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->op->flags & LS__OP_SYNC && meeting-- == 0)
            return g->nodes[i]->inputs[index];
    return -1;
}

/* Goes from part to part until somebody has made it: what is brought was made before the meeting. */
static source source_of(const picture *p, const part *a, int wire)
{
    for (;;) {
        const ls__wire *w = &a->g->wires[wire];
        if (w->kind == LS__WIRE_RESULT)
            return (source){ a->nodes[w->node->at], w->index };
        if (w->kind == LS__WIRE_CONSTANT || w->index < a->arguments)
            return (source){ a->wires[wire], 0 };
        ls__source from = a->gained->at[w->index - a->arguments];
        if (a->meeting < 0) {
            a = &p->parts[from.from + 1];
            wire = a->g->outputs[from.index];
        } else if (from.from > 0) {
            return (source){ a->replicas[from.from], from.index };
        } else {
            wire = brought(p, a->meeting, from.index);
            a = &p->parts[0];
        }
    }
}

/* ---- nodes ---------------------------------------------------------------------------------------------- */

static void put_source(picture *p, const char *name, const char *op, const ls__spec *spec)
{
    size_t node = ls__node_def_begin(p->out, name, op);
    ls__node_def_specs(p->out, 1, &spec);
    ls__wire_end(p->out, node);
}

static void put_constant(picture *p, const part *a, int wire)
{
    const ls__spec *spec = &a->g->wires[wire].spec;
    size_t node = ls__node_def_begin(p->out, a->wires[wire], "Const");
    ls__buffer text = { 0 };
    ls__buffer_constant(&text, a->g, wire);
    ls__node_def_specs(p->out, 1, &spec);
    ls__node_def_text(p->out, "value", text.at, text.used);
    ls__wire_end(p->out, node);
    p->out->failed |= text.failed;
    ls__buffer_free(&text);
}

/* The other replicas: what each brings to the meeting, in order. */
static ls_status put_replicas(picture *p, const part *a)
{
    const ls__spec **specs = calloc((size_t)a->g->n_inputs + 1, sizeof *specs);
    if (!specs)
        return ls__fail_memory("a graph", sizeof *specs);
    for (int r = 1; r < p->n_replicas; r++) {
        int n = 0;
        for (int i = 0; i < a->g->n_inputs; i++)
            if (a->gained->at[i].from == r)
                specs[n++] = &a->g->wires[a->g->inputs[i]].spec;
        if (!a->replicas[r])
            continue;
        size_t node = ls__node_def_begin(p->out, a->replicas[r], "Replica");
        ls__node_def_specs(p->out, n, specs);
        ls__wire_end(p->out, node);
    }
    free(specs);
    return LS_OK;
}

static void put_input(picture *p, const part *a, int wire)
{
    source from = source_of(p, a, wire);
    if (from.name)
        ls__node_def_input(p->out, from.name, from.index);
}

static ls_status put_call(picture *p, const part *a, const ls__node *node)
{
    const ls__spec **specs = calloc((size_t)node->n_outputs + 1, sizeof *specs);
    if (!specs)
        return ls__fail_memory("a graph", sizeof *specs);
    for (int i = 0; i < node->n_outputs; i++)
        specs[i] = &a->g->wires[node->outputs[i]].spec;
    size_t begun = ls__node_def_begin(p->out, a->nodes[node->at], node->op->name);
    for (int i = 0; i < node->n_inputs; i++)
        put_input(p, a, node->inputs[i]);
    for (int i = 0; i < node->n_cells; i++) {
        const variable *v = find_variable(p, a->g->cells[node->cells[i]].serial);
        ls__node_def_input(p->out, v->name, 0);
    }
    ls__node_def_specs(p->out, node->n_outputs, specs);
    ls__node_def_attrs(p->out, node);
    ls__node_def_int(p->out, "call", node->where); /* as errors number it */
    ls__wire_end(p->out, begun);
    free(specs);
    return LS_OK;
}

static ls_status put_part(picture *p, const part *a)
{
    ls_status st = a->meeting >= 0 ? put_replicas(p, a) : LS_OK;
    for (int w = 0; w < a->g->n_wires && !st; w++)
        if (a->wires[w] && a->g->wires[w].kind == LS__WIRE_CONSTANT)
            put_constant(p, a, w);
        else if (a->wires[w])
            put_source(p, a->wires[w], "Placeholder", &a->g->wires[w].spec);
    for (int i = 0; i < a->g->n_nodes && !st; i++)
        if (a->nodes[i])
            st = put_call(p, a, a->g->nodes[i]);
    return st;
}

static ls_status put_results(picture *p)
{
    const part *a = &p->parts[0];
    for (int i = 0; i < a->g->n_outputs; i++) {
        char name[32];
        snprintf(name, sizeof name, "result_%d", i);
        const char *own = ls__node_name(&p->names, "", name);
        if (!own)
            return ls_error_pending();
        size_t node = ls__node_def_begin(p->out, own, "Result");
        put_input(p, a, a->g->outputs[i]);
        ls__wire_end(p->out, node);
    }
    return LS_OK;
}

static ls_status put_all(picture *p)
{
    ls_status st = LS_OK;
    for (int i = 0; i < p->n_variables; i++)
        put_source(p, p->variables[i].name, "Variable", p->variables[i].spec);
    for (int i = 0; i < p->n_parts && !st; i++)
        st = put_part(p, &p->parts[i]);
    if (!st)
        st = put_results(p);
    size_t versions = ls__wire_begin(p->out, GRAPH_VERSIONS);
    ls__wire_put_varint(p->out, VERSIONS_PRODUCER, 22);
    ls__wire_end(p->out, versions);
    return st;
}

ls_status ls__graph_def(const char *who, const ls_function *f, ls__buffer *b)
{
    ls_status st = ls__function_called(who, f);
    if (st)
        return st;
    picture p = { .out = b };
    st = make_parts(&p, f);
    if (!st)
        st = name_variables(&p);
    for (int i = 0; i < p.n_parts && !st; i++)
        st = name_part(&p, &p.parts[i]);
    if (!st)
        st = put_all(&p);
    free_picture(&p);
    return st;
}
