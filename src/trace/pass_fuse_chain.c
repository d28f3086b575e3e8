/*
 * Element-wise chains: calls that work element by element on results of one shape
 * become one `chain` (ops/fused_chain.h), so that what lies between them is never
 * stored and a step has fewer instructions.
 *
 *     t = mul(x, scale)          t, y = chain(x, scale, bias)
 *     u = add(t, bias)     ->         0: mul(x, scale)  1: add(0, bias)  2: relu(1)
 *     y = relu(u)                     outs 0, 2: somebody else wants t
 *
 * A group grows backwards from its last call (the sink) and takes the place of that
 * one, so its other members move later. Hence a call may join when whoever uses its
 * result is in the group or comes after the sink, and when nothing is written to a
 * variable in between (a value read from it would have to be copied). `place` is where
 * a call will be once all groups stand: all comparisons are of places, so groups cannot
 * wait for each other in a circle.
 *
 * All groups are found first, then put into the graph. The bits stay.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/fused_chain.h"
#include "tensor/convert.h"
#include "trace/pass.h"

/* What a chain takes: a wire, or (wire -1) a number that was an attribute. */
typedef struct source {
    int wire;
    ls_dtype dtype;
    _Alignas(8) char number[8];
} source;

/* A node as a step of a chain. */
typedef struct step {
    int64_t code;
    ls_dtype from, to;
    int n;
    source source[LS__BROADCAST_OPERANDS];
} step;

typedef struct group {
    int n;
    ls__node *member[LS__CHAIN_STEPS]; /* the sink first, backwards */
    bool out[LS__CHAIN_STEPS];         /* needed outside */
    int n_sources;
    source source[LS__CHAIN_INPUTS];
} group;

typedef struct pass {
    ls__graph *g;
    ls__uses uses;
    const ls_op *row[LS__FN_COUNT]; /* the row that is the function of this number */
    const ls_op *where, *cast;
    int *place;  /* of each node */
    int *writes; /* how many nodes before each write a variable */
    bool *taken; /* by a group */
    group *groups;
    int n_groups;
} pass;

/* ---- nodes as steps ---------------------------------------------------------------------- */

static const void *attribute(const ls__node *node, const char *name)
{
    for (const ls_attr *a = node->op->attrs; a && a->kind != LS_ATTR_KIND_END; a++)
        if (strcmp(a->name, name) == 0)
            return (const char *)node->attrs + a->offset;
    return NULL;
}

/* The limits of clip, as its kernel sees them: of integers, the integers inside. */
static void add_limits(const ls__node *node, step *s)
{
    const double low = *(const double *)attribute(node, "low");
    const double high = *(const double *)attribute(node, "high");
    bool whole = ls_dtype_is_integer(s->from);
    source *limit = &s->source[s->n];
    for (int i = 0; i < 2; i++) {
        memset(&limit[i], 0, sizeof limit[i]);
        limit[i].wire = -1;
        limit[i].dtype = s->from;
    }
    ls__store_double(s->from, limit[0].number, 0, whole ? ceil(low) : low);
    ls__store_double(s->from, limit[1].number, 0, whole ? floor(high) : high);
    s->n += 2;
}

static int64_t code_of(const pass *p, const ls__node *node)
{
    if (node->op == p->where)
        return LS__CHAIN_WHERE;
    if (node->op == p->cast)
        return LS__CHAIN_CAST;
    for (int fn = 0; fn < LS__FN_COUNT; fn++) {
        if (node->op != p->row[fn])
            continue;
        bool formula = fn == LS__FN_gelu || fn == LS__FN_gelu_grad;
        if (formula && *(const int64_t *)attribute(node, "approximate"))
            fn = fn == LS__FN_gelu ? LS__FN_gelu_tanh : LS__FN_gelu_tanh_grad;
        return ls__chain_code((ls__fn)fn);
    }
    return 0;
}

/* Whether a node can be a step of a chain, and which. */
static bool read_step(const pass *p, const ls__node *node, step *s)
{
    s->code = code_of(p, node);
    int operands = ls__chain_operands(s->code);
    if (operands == 0)
        return false;
    s->n = node->n_inputs;
    for (int i = 0; i < s->n; i++) {
        memset(&s->source[i], 0, sizeof s->source[i]);
        s->source[i].wire = node->inputs[i];
        s->source[i].dtype = p->g->wires[node->inputs[i]].spec.dtype;
    }
    s->from = s->source[s->n - 1].dtype;
    s->to = p->g->wires[node->outputs[0]].spec.dtype;
    if (!ls__chain_loop(s->code, s->from, s->to))
        return false;
    if (s->n < operands)
        add_limits(node, s);
    return true;
}

static const ls__spec *result_of(const pass *p, const ls__node *node)
{
    return &p->g->wires[node->outputs[0]].spec;
}

/* ---- groups -------------------------------------------------------------------------------- */

static int find_member(const group *q, const ls__node *node)
{
    for (int i = 0; i < q->n; i++)
        if (q->member[i] == node)
            return i;
    return -1;
}

/* The member that makes a source, or -1: it comes from outside. */
static int made_inside(const pass *p, const group *q, const source *s)
{
    if (s->wire < 0 || p->g->wires[s->wire].kind != LS__WIRE_RESULT)
        return -1;
    return find_member(q, p->g->wires[s->wire].node);
}

static int find_source(const group *q, const source *s)
{
    for (int i = 0; i < q->n_sources; i++)
        if (q->source[i].wire == s->wire && q->source[i].dtype == s->dtype &&
            memcmp(q->source[i].number, s->number, sizeof s->number) == 0)
            return i;
    return -1;
}

/* Lists what the group takes from outside; false when that is too much. */
static bool find_sources(const pass *p, group *q)
{
    q->n_sources = 0;
    for (int i = 0; i < q->n; i++) {
        step s;
        read_step(p, q->member[i], &s);
        for (int k = 0; k < s.n; k++) {
            if (made_inside(p, q, &s.source[k]) >= 0 || find_source(q, &s.source[k]) >= 0)
                continue;
            if (q->n_sources == LS__CHAIN_INPUTS)
                return false;
            q->source[q->n_sources++] = s.source[k];
        }
    }
    return true;
}

/* Whether `node` may move to the sink's place as far as its users go, and whether some
 * of them are outside. */
static bool users_allow(const pass *p, const group *q, const ls__node *node, bool *outside)
{
    int wire = node->outputs[0], sink = q->member[0]->at;
    *outside = false;
    for (int i = p->uses.begin[wire]; i < p->uses.begin[wire + 1]; i++) {
        const ls__node *user = p->uses.users[i];
        if (user && find_member(q, user) >= 0)
            continue;
        if (user && p->place[user->at] <= sink)
            return false;
        *outside = true;
    }
    return true;
}

static void try_member(const pass *p, group *q, ls__node *node)
{
    const ls__node *sink = q->member[0];
    int outs = 0;
    bool outside;
    step s;
    for (int i = 0; i < q->n; i++)
        outs += q->out[i];
    if (p->taken[node->at] || p->writes[node->at] != p->writes[sink->at] ||
        !read_step(p, node, &s) || !ls__spec_same_shape(result_of(p, node), result_of(p, sink)) ||
        !users_allow(p, q, node, &outside) || (outside && outs == LS__CHAIN_OUTPUTS))
        return;
    q->member[q->n] = node;
    q->out[q->n++] = outside;
    if (!find_sources(p, q))
        q->n--;
}

/* The last node before `before` that makes something the group uses. */
static ls__node *next_producer(const pass *p, const group *q, int before)
{
    ls__node *best = NULL;
    for (int i = 0; i < q->n; i++)
        for (int k = 0; k < q->member[i]->n_inputs; k++) {
            const ls__wire *w = &p->g->wires[q->member[i]->inputs[k]];
            if (w->kind == LS__WIRE_RESULT && w->node->at < before &&
                (!best || w->node->at > best->at))
                best = w->node;
        }
    return best;
}

/* Grows a group from this node backwards, latest producers first: the users of a node
 * between it and the sink are decided upon before it. */
static void grow(pass *p, ls__node *sink)
{
    step s;
    group *q = &p->groups[p->n_groups];
    if (p->taken[sink->at] || !read_step(p, sink, &s))
        return;
    *q = (group){ .n = 1, .member = { sink }, .out = { true } };
    ls__node *node = next_producer(p, q, sink->at);
    for (; node && q->n < LS__CHAIN_STEPS; node = next_producer(p, q, node->at))
        try_member(p, q, node);
    if (q->n < 2)
        return;
    for (int i = 0; i < q->n; i++) {
        p->taken[q->member[i]->at] = true;
        p->place[q->member[i]->at] = sink->at;
    }
    p->n_groups++;
}

/* ---- into the graph -------------------------------------------------------------------------- */

/* The wires of the chain's inputs; numbers become constants of one element. */
static ls_status make_inputs(ls__graph *g, const group *q, int *wires)
{
    for (int i = 0; i < q->n_sources; i++) {
        const source *s = &q->source[i];
        wires[i] = s->wire;
        if (s->wire >= 0)
            continue;
        const ls__spec spec = { .dtype = s->dtype };
        ls__storage *storage = ls__storage_new("a limit of clip", sizeof s->number);
        if (!storage)
            return LS_NO_MEMORY;
        memcpy(storage->data, s->number, sizeof s->number);
        wires[i] = ls__graph_constant(g, &spec, storage);
        ls__storage_unref(storage);
        if (wires[i] < 0)
            return LS_NO_MEMORY;
    }
    return LS_OK;
}

/* Steps are in program order: the members turned round. */
static void write_program(const pass *p, const group *q, ls__chain_attrs *attrs)
{
    memset(attrs, 0, sizeof *attrs);
    for (int i = q->n - 1; i >= 0; i--) {
        int k = q->n - 1 - i;
        step s;
        read_step(p, q->member[i], &s);
        attrs->step[k] = (ls_ints){ 3 + s.n, { s.code, s.from, s.to } };
        for (int j = 0; j < s.n; j++) {
            int inside = made_inside(p, q, &s.source[j]);
            attrs->step[k].at[3 + j] =
                inside >= 0 ? q->n_sources + q->n - 1 - inside : find_source(q, &s.source[j]);
        }
        if (q->out[i])
            attrs->outs.at[attrs->outs.count++] = k;
    }
}

static ls_status fuse(pass *p, group *q)
{
    ls__graph *g = p->g;
    int wires[LS__CHAIN_INPUTS];
    find_sources(p, q); /* again: groups before this one renamed wires */
    ls_status st = make_inputs(g, q, wires);
    if (st)
        return st;
    ls__chain_attrs attrs;
    write_program(p, q, &attrs);
    ls__node *fused = ls__graph_call(g, q->member[0], &ls__chain_row, &attrs, q->n_sources, wires);
    if (!fused)
        return ls_error_pending();
    for (int i = q->n - 1, out = 0; i >= 0; i--)
        if (q->out[i])
            ls__graph_redirect(g, q->member[i]->outputs[0], fused->outputs[out++], NULL);
    for (int i = 0; i < q->n; i++)
        ls__graph_remove(g, q->member[i]);
    return LS_OK;
}

static ls_status run(pass *p)
{
    ls__graph *g = p->g;
    for (int i = 0, writes = 0; i < g->n_nodes; i++) {
        p->place[i] = i;
        p->writes[i] = writes;
        writes += (g->nodes[i]->op->flags & LS_OP_WRITES) != 0;
    }
    for (int i = g->n_nodes - 1; i >= 0; i--)
        grow(p, g->nodes[i]);
    ls_status st = LS_OK;
    for (int i = 0; i < p->n_groups && !st; i++)
        st = fuse(p, &p->groups[i]);
    return st;
}

/* Functions are known by their rows' names; a user's row of such a name is none. */
static void find_rows(pass *p)
{
#define ROW(name, operands) p->row[LS__FN_##name] = ls_op_find(#name);
    LS__FN_LIST(ROW)
    p->where = ls_op_find("where");
    p->cast = ls_op_find("cast");
}

ls_status ls__pass_fuse_chain(ls__graph *g)
{
    pass p = { .g = g };
    size_t n = (size_t)g->n_nodes + 1;
    ls_status st = ls__uses_find(g, &p.uses);
    if (st)
        return st;
    find_rows(&p);
    p.place = malloc(sizeof *p.place * n);
    p.writes = malloc(sizeof *p.writes * n);
    p.taken = calloc(n, sizeof *p.taken);
    p.groups = malloc(sizeof *p.groups * (n / 2 + 1));
    if (p.place && p.writes && p.taken && p.groups)
        st = run(&p);
    else
        st = ls__fail_memory("a pass", sizeof *p.groups * n);
    free(p.groups);
    free(p.taken);
    free(p.writes);
    free(p.place);
    ls__uses_free(&p.uses);
    return st;
}
