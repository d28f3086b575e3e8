/*
 * Variables made inside a run: replica 0 makes them, the others get what it made under the
 * same name. Invariant: replica 0 alone adds to the list, at its front; the others wait for
 * it only while it has not stopped, and it never waits for them, so nobody waits for ever.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "strategy/run_state.h"

/* Bytes of the name without a number at its end: "w_1" counts as "w". */
static size_t canonical_length(const char *name)
{
    size_t n = strlen(name), end = n;
    while (end > 0 && isdigit((unsigned char)name[end - 1]))
        end--;
    return end < n && end > 1 && name[end - 1] == '_' ? end - 1 : n;
}

static bool has_name(const char *canonical, const char *name, size_t length)
{
    return strlen(canonical) == length && memcmp(canonical, name, length) == 0;
}

/* How many of this name the member has made before; notes one more. */
static ls_status count_made(ls__member *m, const char *name, size_t length, int *nth)
{
    *nth = 0;
    for (int i = 0; i < m->n_made; i++)
        *nth += has_name(m->made[i], name, length);
    char **more = realloc(m->made, sizeof *more * (size_t)(m->n_made + 1));
    if (more)
        m->made = more;
    char *own = more ? strndup(name, length) : NULL;
    if (!own)
        return ls__fail_memory("a variable", length + 1);
    m->made[m->n_made++] = own;
    return LS_OK;
}

static ls_variable *look_up(ls__run *run, const char *name, size_t length, int nth)
{
    /* Acquire pairs with the release in ls__created_add. */
    const ls__created *c = atomic_load_explicit(&run->created, memory_order_acquire);
    while (c && !(c->nth == nth && has_name(c->name, name, length)))
        c = c->next;
    return c ? c->variable : NULL;
}

static bool is_alone(const ls_replica *replica)
{
    return !replica || !replica->run || replica->strategy->replicas == 1;
}

ls_status ls__created_find(ls_replica *replica, const char *name, ls_variable **out)
{
    *out = NULL;
    if (is_alone(replica) || replica->id == 0)
        return LS_OK;
    ls__run *run = replica->run;
    size_t length = canonical_length(name);
    int nth;
    ls_status st = count_made(&run->members[replica->id], name, length, &nth);
    while (!st) {
        uint32_t seen = atomic_load_explicit(&run->made.count, memory_order_acquire);
        bool stopped = atomic_load(&run->zero_stopped);
        *out = look_up(run, name, length, nth);
        if (*out)
            break;
        if (stopped)
            return ls__hint(
                ls__fail(LS_STATE,
                         "replica %d makes variable '%s', and replica 0 made %s of that name "
                         "in this run",
                         replica->id, name, nth ? "no further one" : "none"),
                "all replicas make the same variables, by name and order");
        ls__event_wait(&run->made, seen + 1, run->s->spin);
    }
    return st;
}

ls_status ls__created_add(ls_replica *replica, const char *name, ls_variable *v)
{
    if (is_alone(replica))
        return LS_OK;
    ls__run *run = replica->run;
    size_t length = canonical_length(name);
    int nth;
    ls_status st = count_made(&run->members[0], name, length, &nth);
    ls__created *c = st ? NULL : calloc(1, sizeof *c + length + 1);
    if (!c)
        return st ? st : ls__fail_memory("a variable", sizeof *c + length + 1);
    memcpy(c->name, name, length);
    c->variable = v;
    c->nth = nth;
    c->next = atomic_load_explicit(&run->created, memory_order_relaxed);
    atomic_store_explicit(&run->created, c, memory_order_release);
    ls__event_post(&run->made);
    return LS_OK;
}

void ls__created_free(ls__run *run)
{
    ls__created *c = atomic_load_explicit(&run->created, memory_order_relaxed);
    while (c) {
        ls__created *next = c->next;
        free(c);
        c = next;
    }
    for (int r = 0; run->members && r < run->s->replicas; r++) {
        for (int i = 0; i < run->members[r].n_made; i++)
            free(run->members[r].made[i]);
        free(run->members[r].made);
    }
}
