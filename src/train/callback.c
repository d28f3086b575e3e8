/* Making the library's callbacks, and figures that are watched. */
#include "train/callback.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

void *ls__callback_new(const char *name, size_t bytes)
{
    ls_callback *c = calloc(1, bytes);
    if (!c) {
        ls__fail_memory(name, bytes);
        return NULL;
    }
    c->size = sizeof *c;
    c->user = c;
    c->name = name;
    c->free = free;
    return c;
}

ls_status ls__watch_open(const char *who, const char *name, ls__watch *out)
{
    *out = (ls__watch){ .best = NAN };
    if (name && strlen(name) >= sizeof out->name)
        return ls__fail(LS_INVALID, "%s: a figure's name of %zu bytes, wants at most %zu", who,
                        strlen(name), sizeof out->name - 1);
    if (name)
        strcpy(out->name, name);
    out->rising = name && strstr(name, "accuracy");
    return LS_OK;
}

ls_status ls__watch_read(ls__watch *w, const ls_progress *p, double *out)
{
    const ls_trainer *t = p->trainer;
    if (!w->name[0])
        strcpy(w->name, p->tests ? "test_loss" : "loss");
    char names[256] = "";
    const char *known;
    for (int i = 0; (known = ls_trainer_names(t, i)); i++) {
        if (strcmp(known, w->name) == 0) {
            *out = ls_trainer_value(t, known);
            return LS_OK;
        }
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", known);
    }
    return ls__hint(ls__fail(LS_NOT_FOUND, "there is no figure '%s' to watch", w->name),
                    "there are %s", names);
}

bool ls__watch_better(const ls__watch *w, double value, double least)
{
    if (isnan(value))
        return false;
    if (isnan(w->best))
        return true;
    return w->rising ? value > w->best + least : value < w->best - least;
}
