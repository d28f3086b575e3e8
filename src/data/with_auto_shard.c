/*
 * ls_with_auto_shard: a policy that travels with the dataset. As a stage it hands everything on.
 */
#include "data/autoshard.h"
#include "data/iterator.h"

typedef struct policy_options {
    ls_auto_shard policy;
} policy_options;

typedef struct policy_state {
    ls__it *input;
} policy_state;

static ls_status open(ls__it *it)
{
    return ls__it_open_input(it, 0, &((policy_state *)it->state)->input);
}

static void close(ls__it *it)
{
    ls__it_close(((policy_state *)it->state)->input);
}

static ls_status pull(ls__it *it, int most, ls__chunk *out)
{
    return ls__it_pass(it, ((policy_state *)it->state)->input, most, out);
}

static const ls__stage policy_stage = { .name = "auto_shard",
                                        .state_bytes = sizeof(policy_state),
                                        .open = open,
                                        .close = close,
                                        .pull = pull,
                                        LS__PASSES_POSITIONS_ON };

const char *ls_auto_shard_name(ls_auto_shard policy)
{
    switch (policy) {
#define NAME(name, value, text)                                                                    \
    case name:                                                                                     \
        return text;
        LS_AUTO_SHARD_LIST(NAME)
#undef NAME
    }
    return "?";
}

static bool is_policy(ls_auto_shard policy)
{
    return ls_auto_shard_name(policy)[0] != '?';
}

ls_dataset *ls_with_auto_shard(ls_dataset *d, ls_auto_shard policy)
{
    if (ls__check_dataset("ls_with_auto_shard", d))
        return NULL;
    if (!is_policy(policy)) {
        ls__hint(ls__fail(LS_INVALID, "ls_with_auto_shard: %d is no policy", (int)policy),
                 "LS_AUTO_SHARD_AUTO, _FILE, _DATA or _OFF");
        return NULL;
    }
    ls__dataset_draft draft = {
        .stage = &policy_stage, .n_inputs = 1, .inputs = &d, .cardinality = d->cardinality
    };
    policy_options *o = ls__dataset_options(&draft, sizeof *o, NULL);
    if (!o)
        return NULL;
    o->policy = policy;
    draft.type = ls__type_ref(d->type);
    return ls__dataset_new(&draft, "auto_shard %s", ls_auto_shard_name(policy));
}

/* The one nearest to the end; of several inputs the first that has one. */
static const policy_options *find(const ls_dataset *d)
{
    const policy_options *found = d->stage == &policy_stage ? d->options : NULL;
    for (int i = 0; i < d->n_inputs && !found; i++)
        found = find(d->inputs[i]);
    return found;
}

ls_auto_shard ls__auto_shard_policy(const ls_dataset *d)
{
    const policy_options *found = find(d);
    return found ? found->policy : LS_AUTO_SHARD_AUTO;
}
