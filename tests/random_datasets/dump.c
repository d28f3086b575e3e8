/*
 * A program as text, for who looks for a mistake in it or in Lockstep; and types as text.
 */
#include "random_datasets/program.h"

static const char *const codes[RD_CODES] = {
    "once",        "slices",     "range",         "range of the element",
    "the element", "its rows",   "generate",      "files",
    "tfrecords",   "text_lines", "fixed_records", "map",
    "filter",      "batch",      "padded_batch",  "unbatch",
    "shuffle",     "repeat",     "take",          "skip",
    "shard",       "cache",      "prefetch",      "zip",
    "concatenate", "enumerate",  "flat_map",      "interleave"
};
static const char *const fns[RD_FNS] = { "add",    "to dict", "reverse", "first",
                                         "ragged", "lengths", "fails" };

/* ---- types ---------------------------------------------------------------------------------- */

static int print_nest(rd_text *to, const rd_nest *nest, const rd_type *t, int leaf, bool top)
{
    if (nest->kind == LS_LEAF) {
        const rd_leaf *l = &t->leaf[leaf];
        rd_print(to, "%s[", ls_dtype_name(l->dtype));
        for (int i = 0; i < l->rank; i++) {
            rd_print(to, i ? "," : "");
            if (l->dims[i] < 0)
                rd_print(to, "?");
            else
                rd_print(to, "%lld", (long long)l->dims[i]);
        }
        rd_print(to, "]");
        return leaf + 1;
    }
    bool dict = nest->kind == LS_DICT, bare = top && !dict && nest->count > 1;
    rd_print(to, dict ? "{" : bare ? "" : "(");
    for (int i = 0; i < nest->count; i++) {
        rd_print(to, i ? ", " : "");
        if (dict)
            rd_print(to, "%c: ", 'a' + i);
        leaf = print_nest(to, nest->child[i], t, leaf, false);
    }
    rd_print(to, dict ? "}" : bare ? "" : nest->count == 1 ? ",)" : ")");
    return leaf;
}

void rd_dump_type(const rd_type *t, rd_text *to)
{
    print_nest(to, t->nest, t, 0, true);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static void print_numbers(const rd_node *d, rd_text *to)
{
    switch (d->code) {
    case RD_MAP:
        rd_print(to, " %s %lld, parallel %d", fns[d->fn], (long long)d->a, d->parallel);
        break;
    case RD_RANGE:
        rd_print(to, " from %lld, %lld numbers, step %lld", (long long)d->a, (long long)d->b,
                 (long long)d->seed);
        break;
    case RD_SHUFFLE:
        rd_print(to, " buffer %lld, seed %llu", (long long)d->a, (unsigned long long)d->seed);
        break;
    case RD_FILTER:
    case RD_SHARD:
    case RD_FIXED:
        rd_print(to, " %lld, %lld", (long long)d->a, (long long)d->b);
        break;
    case RD_INTERLEAVE:
        rd_print(to, " cycle %lld, block %lld, parallel %d", (long long)d->a, (long long)d->b,
                 d->parallel);
        break;
    case RD_FILES:
        for (int i = 0; i < d->n_patterns; i++)
            rd_print(to, " \"%s\"", d->pattern[i]);
        break;
    case RD_PADDED:
        rd_print(to, " %lld, value %lld", (long long)d->a, (long long)d->b);
        break;
    case RD_UNBATCH:
    case RD_CACHE:
    case RD_ZIP:
    case RD_CONCATENATE:
    case RD_FLAT_MAP:
        break;
    default:
        rd_print(to, " %lld", (long long)d->a);
    }
    if (d->flag)
        rd_print(to, d->code == RD_CACHE       ? " in a file"
                     : d->code == RD_SHUFFLE   ? " once"
                     : d->code == RD_TFRECORDS ? " skip_corrupt"
                                               : " full");
    if (d->spec)
        rd_print(to, ", spec \"%s\"", d->spec);
}

static void print_node(const rd_node *d, rd_text *to, int indent)
{
    rd_print(to, "%*s%d: %s", indent, "", d->number, codes[d->code]);
    print_numbers(d, to);
    rd_print(to, "  // ");
    rd_dump_type(&d->type, to);
    rd_print(to, "%s%s%s\n", d->endless ? ", endless" : "", d->fails ? ", fails" : "",
             d->shuffled ? ", shuffled" : "");
    for (int i = 0; i < d->n_in; i++)
        print_node(d->in[i], to, indent + 2);
    if (d->body) {
        rd_print(to, "%*sof each:\n", indent + 2, "");
        print_node(d->body, to, indent + 4);
    }
}

void rd_dump(const rd_program *p, rd_text *to)
{
    print_node(p->root, to, 0);
}
