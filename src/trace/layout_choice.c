/*
 * The choice of layouts, by descent. Invariant: every change lowers the cost, or
 * leaves it and makes a node plain; so it ends, and nobody is packed for nothing.
 *
 * Descent one node at a time does not see that two nodes are both better off plain;
 * hence regions: nodes that hand each other packed memory are tried together.
 */
#include "trace/layout_choice.h"

/* Costs are sums of microseconds in double: differences below this are none. */
#define NOTHING_US 1e-6

void ls__layout_link(ls__layout_problem *p)
{
    for (int w = 0; w < p->n_wires; w++)
        p->wires[w].count = 0;
    for (int i = 0; i < p->n_nodes; i++)
        for (int k = 0; k < p->nodes[i].n_ports; k++)
            p->wires[p->nodes[i].port[k].wire].count++;
    int first = 0;
    for (int w = 0; w < p->n_wires; w++) {
        p->wires[w].first = first;
        first += p->wires[w].count;
        p->wires[w].count = 0;
    }
    for (int i = 0; i < p->n_nodes; i++)
        for (int k = 0; k < p->nodes[i].n_ports; k++) {
            ls__layout_wire *w = &p->wires[p->nodes[i].port[k].wire];
            p->touches[w->first + w->count++] = i * LS__LAYOUT_PORTS + k;
        }
}

/* The t-th port that touches a wire, and the form it has it in. */
static const ls__layout_port *touch(const ls__layout_problem *p, int wire, int t, int *form)
{
    int at = p->touches[p->wires[wire].first + t];
    const ls__layout_node *n = &p->nodes[at / LS__LAYOUT_PORTS];
    const ls__layout_port *port = &n->port[at % LS__LAYOUT_PORTS];
    *form = port->form[n->state];
    return port;
}

int ls__layout_made(const ls__layout_problem *p, int wire)
{
    for (int t = 0; t < p->wires[wire].count; t++) {
        int form;
        if (touch(p, wire, t, &form)->makes)
            return form;
    }
    return 0;
}

bool ls__layout_wants_plain(const ls__layout_problem *p, int wire)
{
    if (p->wires[wire].plain_use)
        return true;
    int made = ls__layout_made(p, wire);
    for (int t = 0; t < p->wires[wire].count; t++) {
        int form;
        touch(p, wire, t, &form);
        if (form != made) /* plain, or by way of plain */
            return true;
    }
    return false;
}

double ls__layout_moves_us(const ls__layout_problem *p, int wire)
{
    const ls__layout_wire *w = &p->wires[wire];
    int made = ls__layout_made(p, wire), moves = 0;
    if (made && ls__layout_wants_plain(p, wire))
        moves++;
    for (int t = 0; t < w->count; t++) {
        int form, earlier = 0;
        bool seen = false;
        touch(p, wire, t, &form);
        for (int k = 0; k < t && !seen; k++) {
            touch(p, wire, k, &earlier);
            seen = earlier == form;
        }
        moves += form && form != made && !seen;
    }
    return moves * w->move_us;
}

/* What depends on a node's state: its gain and the moves of its wires. */
static double around(const ls__layout_problem *p, const ls__layout_node *n)
{
    double us = -n->gain_us[n->state];
    for (int k = 0; k < n->n_ports; k++) {
        bool again = false;
        for (int j = 0; j < k; j++)
            again |= n->port[j].wire == n->port[k].wire;
        if (!again)
            us += ls__layout_moves_us(p, n->port[k].wire);
    }
    return us;
}

static bool better(double now, double before, bool plainer)
{
    return now < before - NOTHING_US || (plainer && now < before + NOTHING_US);
}

static bool improve_node(ls__layout_problem *p, ls__layout_node *n)
{
    bool changed = false;
    for (int s = 0; s < n->n_states; s++) {
        int old = n->state;
        double before = around(p, n);
        n->state = s;
        if (s != old && better(around(p, n), before, s == 0))
            changed = true;
        else
            n->state = old;
    }
    return changed;
}

static void settle(ls__layout_problem *p)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < p->n_nodes; i++)
            changed |= improve_node(p, &p->nodes[i]);
    }
}

/* ---- regions ------------------------------------------------------------------------- */

static double total(const ls__layout_problem *p)
{
    double us = 0;
    for (int i = 0; i < p->n_nodes; i++)
        us -= p->nodes[i].gain_us[p->nodes[i].state];
    for (int w = 0; w < p->n_wires; w++)
        us += ls__layout_moves_us(p, w);
    return us;
}

static void rename_region(ls__layout_problem *p, int from, int to)
{
    for (int i = 0; from != to && i < p->n_nodes; i++)
        if (p->nodes[i].region == from)
            p->nodes[i].region = to;
}

/* Nodes that touch one wire in one packed form belong together. */
static void find_regions(ls__layout_problem *p)
{
    for (int i = 0; i < p->n_nodes; i++)
        p->nodes[i].region = i;
    for (int w = 0; w < p->n_wires; w++)
        for (int a = 0; a < p->wires[w].count; a++)
            for (int b = 0; b < a; b++) {
                int form_a, form_b;
                touch(p, w, a, &form_a);
                touch(p, w, b, &form_b);
                const int *at = p->touches + p->wires[w].first;
                if (form_a && form_a == form_b)
                    rename_region(p, p->nodes[at[a] / LS__LAYOUT_PORTS].region,
                                  p->nodes[at[b] / LS__LAYOUT_PORTS].region);
            }
}

static bool is_packed(const ls__layout_problem *p, int region)
{
    for (int i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].region == region && p->nodes[i].state)
            return true;
    return false;
}

/* Makes a region plain if that costs no more. Meanwhile `region` holds -1 - state of its
 * nodes, to put back where it does. */
static bool drop_region(ls__layout_problem *p, int region)
{
    if (!is_packed(p, region))
        return false;
    double before = total(p);
    for (int i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].region == region) {
            p->nodes[i].region = -1 - p->nodes[i].state;
            p->nodes[i].state = 0;
        }
    if (better(total(p), before, true))
        return true;
    for (int i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].region < 0) {
            p->nodes[i].state = -1 - p->nodes[i].region;
            p->nodes[i].region = region;
        }
    return false;
}

static bool drop_some_region(ls__layout_problem *p)
{
    find_regions(p);
    for (int r = 0; r < p->n_nodes; r++)
        if (drop_region(p, r))
            return true;
    return false;
}

void ls__layout_choose(ls__layout_problem *p)
{
    for (int i = 0; i < p->n_nodes; i++) {
        ls__layout_node *n = &p->nodes[i];
        n->state = n->n_states > 1 ? 1 : 0;
    }
    do
        settle(p);
    while (drop_some_region(p));
}
