/*
 * Guessing where calls belong, and names that are unique. Invariant: the table has an empty place,
 * so a search ends.
 */
#include "train/events_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- unique names ------------------------------------------------------------------------------- */

static size_t hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return (size_t)h;
}

static const char **find(const char **at, size_t room, const char *name)
{
    size_t i = hash(name) & (room - 1);
    while (at[i] && strcmp(at[i], name) != 0)
        i = (i + 1) & (room - 1);
    return &at[i];
}

static bool make_room(ls__node_names *n)
{
    if (2 * (n->used + 1) <= n->room)
        return true;
    size_t room = n->room ? 2 * n->room : 256;
    const char **at = calloc(room, sizeof *at);
    if (!at) {
        ls__fail_memory("names of a graph", room * sizeof *at);
        return false;
    }
    for (size_t i = 0; i < n->room; i++)
        if (n->at[i])
            *find(at, room, n->at[i]) = n->at[i];
    free(n->at);
    n->at = at;
    n->room = room;
    return true;
}

static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
}

/* Letters, digits, dots and _ - are good, but these two not in front; slashes have something
 * between them, and behind. */
static void make_good(char *name)
{
    if (!is_plain(name[0]))
        name[0] = '.';
    for (char *at = name + 1; *at; at++) {
        bool slash = *at == '/' && at[-1] != '/' && at[1];
        if (!is_plain(*at) && *at != '_' && *at != '-' && !slash)
            *at = '_';
    }
}

const char *ls__node_name(ls__node_names *names, const char *scope, const char *name)
{
    size_t length = strlen(scope) + strlen(name) + 32;
    char *own = ls__arena_alloc(&names->arena, length);
    if (!own || !make_room(names))
        return NULL;
    snprintf(own, length, "%s%s%s", scope, scope[0] ? "/" : "", name[0] ? name : "_");
    make_good(own);
    char *end = own + strlen(own);
    const char **place = find(names->at, names->room, own);
    for (unsigned i = 1; *place; i++) {
        snprintf(end, 16, "_%u", i);
        place = find(names->at, names->room, own);
    }
    *place = own;
    names->used++;
    return own;
}

void ls__node_names_free(ls__node_names *names)
{
    ls__arena_clear(&names->arena);
    free(names->at);
    *names = (ls__node_names){ .at = NULL };
}

/* ---- scopes --------------------------------------------------------------------------------------- */

typedef struct layers {
    ls__node_names *names;
    const ls__graph *g;
    ls__uses uses;
    const char **of; /* per node: its layer; NULL: not known yet */
    bool *gradient;  /* per node */
} layers;

/* What stands before the last slash. */
static const char *layer_of_cell(ls__node_names *names, const char *name)
{
    char *own = ls__arena_string(&names->arena, name);
    char *slash = own ? strrchr(own, '/') : NULL;
    if (slash)
        *slash = '\0';
    else if (own)
        *own = '\0';
    return own;
}

static const ls__node *maker(const layers *l, int wire)
{
    const ls__wire *w = &l->g->wires[wire];
    return w->kind == LS__WIRE_RESULT ? w->node : NULL;
}

static bool is_gradient(const layers *l, const ls__node *node)
{
    bool yes = strstr(node->op->name, "_grad") != NULL;
    for (int i = 0; i < node->n_inputs && !yes; i++) {
        const ls__node *from = maker(l, node->inputs[i]);
        yes = from && l->gradient[from->at];
    }
    return yes;
}

/* Of a call that is none of a gradient: that of a variable it takes, else of what was made last of what
 * it takes: so where a layer is added to what it began with, that is its end. */
static const char *layer_forward(const layers *l, const ls__node *node)
{
    const ls__node *last = NULL;
    if (strstr(node->op->name, "_xent"))
        return "loss";
    for (int i = 0; i < node->n_inputs; i++) {
        const ls__node *from = maker(l, node->inputs[i]);
        if (from && (from->op->flags & LS_OP_READS) && l->of[from->at][0])
            return l->of[from->at];
        if (from && l->of[from->at] && (!last || from->at > last->at))
            last = from;
    }
    return last ? l->of[last->at] : "";
}

/* Whether `node` may be the gradient of `of`: conv2d_grad_filter of conv2d, matmul of matmul. */
static bool can_be_gradient(const layers *l, const ls__node *node, const ls__node *of)
{
    return of && !l->gradient[of->at] && l->of[of->at] &&
           strncmp(node->op->name, of->op->name, strlen(of->op->name)) == 0;
}

/* The layer of the call it is the gradient of, which made or took one of its inputs. */
static const char *layer_backward(const layers *l, const ls__node *node)
{
    for (int i = 0; i < node->n_inputs; i++) {
        int wire = node->inputs[i];
        const ls__node *from = maker(l, wire);
        if (can_be_gradient(l, node, from))
            return l->of[from->at];
        for (int k = l->uses.begin[wire]; k < l->uses.begin[wire + 1]; k++)
            if (can_be_gradient(l, node, l->uses.users[k]))
                return l->of[l->uses.users[k]->at];
    }
    return NULL;
}

/* Gradients of which that is not known belong to the call whose gradient comes next: a layer's
 * calls are gone through from the last one to the first. */
static void fill_gaps(layers *l)
{
    const char *next = NULL;
    for (int i = l->g->n_nodes; i-- > 0;) {
        if (l->gradient[i] && l->of[i])
            next = l->of[i];
        else if (!l->of[i])
            l->of[i] = next;
    }
    for (int i = 0; i < l->g->n_nodes; i++) {
        if (l->gradient[i] && l->of[i])
            next = l->of[i];
        else if (!l->of[i])
            l->of[i] = next ? next : "";
    }
}

static bool find_layers(layers *l, bool apart)
{
    for (int i = 0; i < l->g->n_nodes; i++) {
        const ls__node *node = l->g->nodes[i];
        l->gradient[i] = apart && is_gradient(l, node);
        if (node->n_cells > 0)
            l->of[i] = layer_of_cell(l->names, l->g->cells[node->cells[0]].name);
        else
            l->of[i] = l->gradient[i] ? layer_backward(l, node) : layer_forward(l, node);
        if (!l->of[i] && node->n_cells > 0)
            return false;
    }
    fill_gaps(l);
    return true;
}

/* The parts of a scope that are not empty, with slashes between. */
static const char *scope_of(const layers *l, int i, const char *inside, bool apart)
{
    const ls__node *node = l->g->nodes[i];
    const char *layer = l->of[i], *kind = "";
    if (node->op->flags & LS_OP_READS && !(node->op->flags & LS_OP_WRITES) && node->n_cells > 0)
        layer = l->g->cells[node->cells[0]].name;
    else if (apart && (node->op->flags & LS_OP_WRITES))
        kind = "updates";
    else if (l->gradient[i])
        kind = "gradients";
    char replica[24] = "";
    if (node->replica >= 0)
        snprintf(replica, sizeof replica, "replica_%d", node->replica);
    const char *parts[] = { inside, replica, kind, layer };
    size_t room = 1;
    for (int k = 0; k < 4; k++)
        room += strlen(parts[k]) + 1;
    char *own = ls__arena_alloc(&l->names->arena, room), *to = own;
    for (int k = 0; k < 4 && own; k++)
        if (parts[k][0])
            to += sprintf(to, "%s%s", to == own ? "" : "/", parts[k]);
    if (own)
        *to = '\0';
    return own;
}

const char **ls__node_scopes(ls__node_names *names, const ls__graph *g, const char *inside)
{
    bool apart = !inside[0];
    size_t room = (size_t)g->n_nodes + 1;
    layers l = { .names = names, .g = g };
    l.of = calloc(room, sizeof *l.of);
    l.gradient = calloc(room, sizeof *l.gradient);
    const char **scopes = calloc(room, sizeof *scopes);
    bool good = l.of && l.gradient && scopes;
    if (!good)
        ls__fail_memory("names of a graph", room * sizeof *scopes);
    bool uses = good && ls__uses_find(g, &l.uses) == LS_OK;
    good = uses && find_layers(&l, apart);
    for (int i = 0; i < g->n_nodes && good; i++)
        good = (scopes[i] = scope_of(&l, i, inside, apart)) != NULL;
    if (uses)
        ls__uses_free(&l.uses);
    free(l.of);
    free(l.gradient);
    if (good)
        return scopes;
    free(scopes);
    return NULL;
}
