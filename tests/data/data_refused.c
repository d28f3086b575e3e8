/*
 * See data_refused.h.
 */
#include "data/data_refused.h"

static int wrong;

static bool is_wanted(ls_status got, int want)
{
    switch (want) {
    case ANY_ERROR:
        return got != LS_OK && got != LS_END;
    case SHAPE_OR_INVALID:
        return got == LS_SHAPE || got == LS_INVALID;
    case NOT_FOUND_OR_UNSUPPORTED:
        return got == LS_NOT_FOUND || got == LS_UNSUPPORTED;
    case CORRUPT_OR_UNSUPPORTED:
        return got == LS_CORRUPT || got == LS_UNSUPPORTED;
    default:
        return (int)got == want;
    }
}

static void complain(int line, const char *call, const char *why)
{
    print_error("line %d: %s\n    %s\n", line, call, why);
    wrong++;
}

static void look_at_error(int line, const char *call, int want, const char *name)
{
    ls_status got = ls_error();
    if (!is_wanted(got, want)) {
        print_error("    %s: %s\n", ls_status_name(got), ls_error_text());
        complain(line, call, "another status");
    } else if (got != LS_UNSUPPORTED && !strstr(ls_error_text(), name)) {
        print_error("    %s: %s\n", ls_status_name(got), ls_error_text());
        complain(line, call, "the text does not name it");
    }
    if (ls_error_pending())
        complain(line, call, "the error cannot be taken");
    ls_error();
}

void names_it(int line, const char *call, const void *got, int want, const char *name)
{
    if (got) {
        complain(line, call, "is not refused");
        ls_error();
    } else {
        look_at_error(line, call, want, name);
    }
}

void says_it(int line, const char *call, ls_status got, int want, const char *name)
{
    if (!is_wanted(got, want))
        complain(line, call, ls_status_name(got));
    if (got == LS_OK)
        ls_error();
    else
        look_at_error(line, call, want, name);
}

void fine(int line, const char *call, ls_dataset *d, const char *name, const char *first)
{
    ls_iterator *it = d ? ls_iterate(d) : NULL;
    ls_value *v = NULL;
    ls_status st = it ? ls_next(it, &v) : ls_error_pending();
    ls_status pending = ls_error();
    bool refused = st != LS_OK && st != LS_END;
    if (refused && !*name)
        complain(line, call, ls_error_text());
    else if (refused && st != LS_NO_MEMORY && !strstr(ls_error_text(), name))
        complain(line, call, ls_error_text());
    else if (!refused && pending)
        complain(line, call, "an error is pending");
    else if (!refused && (st == LS_OK) != (first != NULL))
        complain(line, call, st == LS_OK ? written(v, 0) : "gives nothing");
    else if (st == LS_OK && strcmp(written(v, 0), first) != 0)
        complain(line, call, written(v, 0));
    ls_iterator_free(it);
}

void none_was_wrong(void)
{
    int n = wrong;
    wrong = 0;
    if (n)
        fail_msg("%d calls", n);
}
