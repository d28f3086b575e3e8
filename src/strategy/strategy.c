/*
 * Making strategies. Invariant: V is fixed when a strategy is made; the placement is data
 * that ls__strategy_place may replace between two runs, and nothing else depends on it.
 */
#include "strategy/strategy.h"

#include <lockstep/extended.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "collective/placement.h"
#include "os/thread.h"
#include "strategy/context.h"
#include "strategy/cross_device.h"
#include "strategy/host.h"
#include "strategy/phases.h"
#include "strategy/team.h"
#include "tensor/tensor.h"

enum { MOST_REPLICAS = 1024 };

/* Steps that follow can still be counted. */
static const int64_t most_steps = (int64_t)1 << 62;

/* ---- the list of devices ------------------------------------------------------------ */

typedef struct device_list {
    int count;
    char (*names)[LS_DEVICE_NAME_MAX]; /* as written, in memory of the frame */
    ls__device **devices;
} device_list;

static ls_status split(const char *text, device_list *out)
{
    int most = 1;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    out->names = ls__frame_alloc(sizeof *out->names * (size_t)most);
    out->devices = ls__frame_alloc(sizeof *out->devices * (size_t)most);
    if (!out->names || !out->devices)
        return LS_NO_MEMORY;
    for (const char *at = text; at; at = strchr(at, ',')) {
        at += at != text; /* past the comma */
        at += strspn(at, " \t");
        int length = (int)strcspn(at, ",");
        while (length > 0 && strchr(" \t", at[length - 1]))
            length--;
        if (length == 0)
            return ls__hint(
                ls__fail(LS_INVALID, "ls_mirrored: device %d of '%s' is empty", out->count, text),
                "name devices like \"/cpu:0,/cpu:1\"");
        if (length >= LS_DEVICE_NAME_MAX)
            return ls__fail(LS_INVALID, "ls_mirrored: device %d of the list has a name of %d bytes",
                            out->count, length);
        snprintf(out->names[out->count++], LS_DEVICE_NAME_MAX, "%.*s", length, at);
    }
    return LS_OK;
}

/* Errors of a name say whose argument it is in. */
static ls_status parse(const char *text, ls__device_name *out)
{
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    return ls__error_scope_close(&scope, ls__device_name_parse(text, out), "ls_mirrored");
}

static ls_status find(const char *text, char canonical[LS_DEVICE_NAME_MAX], ls__device **out)
{
    ls__error_scope scope;
    ls__error_scope_open(&scope);
    ls_status st = ls_device_canonical(text, ls_device_current(), canonical, LS_DEVICE_NAME_MAX);
    if (!st)
        st = ls__device_find(canonical, out);
    return ls__error_scope_close(&scope, st, "ls_mirrored");
}

static bool is_remote(const ls__device_name *name)
{
    return name->job[0] && strcmp(name->job, "localhost") != 0;
}

/* Devices are of this process, all of them: in-graph replication is another strategy's. */
static ls_status check_local(const device_list *list)
{
    int remote = -1, local = -1;
    for (int i = 0; i < list->count; i++) {
        ls__device_name name;
        ls_status st = parse(list->names[i], &name);
        if (st)
            return st;
        if (!is_remote(&name))
            local = i;
        else if (name.task < 0)
            return ls__hint(
                ls__fail(LS_INVALID, "ls_mirrored: remote device '%s' has no task", list->names[i]),
                "a device of another process is /job:worker/task:1/device:CPU:0");
        else
            remote = i;
    }
    if (remote >= 0 && local >= 0)
        return ls__hint(ls__fail(LS_INVALID,
                                 "ls_mirrored: '%s' is a device of this process, '%s' of another",
                                 list->names[local], list->names[remote]),
                        "local devices have no job but 'localhost'; do not mix them with others");
    if (remote >= 0)
        return ls__hint(ls__fail(LS_STATE, "ls_mirrored: '%s' is a device of another process",
                                 list->names[remote]),
                        "ls_mirrored runs on the devices of this process");
    return LS_OK;
}

static ls_status find_devices(device_list *list)
{
    for (int i = 0; i < list->count; i++) {
        char canonical[LS_DEVICE_NAME_MAX] = "";
        ls_status st = find(list->names[i], canonical, &list->devices[i]);
        for (int k = 0; k < i && !st; k++)
            if (list->devices[k] == list->devices[i])
                st = ls__hint(ls__fail(LS_INVALID,
                                       "ls_mirrored: device '%s' twice: as '%s' and '%s'",
                                       canonical, list->names[k], list->names[i]),
                              "name each device once; .replicas puts several replicas on one");
        if (st)
            return st;
    }
    return LS_OK;
}

/* NULL or "": all GPUs, of which this build has none, else one CPU. */
static ls_status read_devices(const char *text, device_list *out)
{
    *out = (device_list){ .count = 0 };
    ls_status st = split(text && text[strspn(text, " \t")] ? text : "/cpu:0", out);
    if (!st && out->count > MOST_REPLICAS)
        st = ls__hint(ls__fail(LS_INVALID, "ls_mirrored: %d devices, so %d replicas or more",
                               out->count, out->count),
                      "a strategy has at most %d replicas", MOST_REPLICAS);
    if (!st)
        st = check_local(out);
    return st ? st : find_devices(out);
}

/* ---- the placement --------------------------------------------------------------------- */

static ls_status place(ls_strategy *s, const device_list *list)
{
    size_t d = (size_t)list->count, v = (size_t)s->replicas;
    ls__device **devices = malloc(d * sizeof *devices);
    const char **names = malloc(d * sizeof *names);
    const char **of_replicas = malloc(v * sizeof *of_replicas);
    if (!devices || !names || !of_replicas) {
        free(devices);
        free(names);
        free(of_replicas);
        return ls__fail_memory("a placement", (d + v) * sizeof *names);
    }
    for (int i = 0; i < list->count; i++) {
        devices[i] = list->devices[i];
        names[i] = list->devices[i]->name;
    }
    for (int r = 0; r < s->replicas; r++)
        of_replicas[r] = names[ls__block_of(s->replicas, list->count, r)];
    ls__team_drop(s);
    free(s->devices);
    free(s->device_names);
    free(s->replica_names);
    s->devices = devices;
    s->device_names = names;
    s->replica_names = of_replicas;
    s->n_devices = list->count;
    s->spin = ls__spin_for(list->count, LS__SPIN_LONG);
    return LS_OK;
}

static ls_status check_count(const char *who, int devices, int replicas)
{
    if (devices <= replicas)
        return LS_OK;
    return ls__hint(ls__fail(LS_INVALID, "%s: %d devices for %d replicas", who, devices, replicas),
                    "a device hosts one replica or more; name at most %d devices", replicas);
}

ls_status ls__strategy_place(ls_strategy *s, const char *devices)
{
    if (ls__is_default(s) || atomic_load(&s->running))
        return ls__fail(LS_STATE, "a strategy is placed anew between its runs only");
    ls_status st = LS_OK;
    LS_FRAME {
        device_list list;
        st = read_devices(devices, &list);
        if (!st)
            st = check_count("placement", list.count, s->replicas);
        if (!st) {
            ls__hosts_stop(s); /* they are pinned to the cores of the devices before */
            st = place(s, &list);
        }
    }
    return st;
}

/* ---- making ------------------------------------------------------------------------------- */

void ls_mirrored_init(ls_mirrored_options *options)
{
    if (options)
        *options = (ls_mirrored_options){ .size = sizeof *options };
}

static ls__packing packing_of(const ls_mirrored_options *o)
{
    return (ls__packing){ .num_packs = o->num_packs,
                          .bytes_per_pack = o->bytes_per_pack,
                          .small_bytes = o->small_bytes,
                          .small_group = o->small_group };
}

static ls_status check_input(const ls_mirrored_options *o)
{
    if (o->input_pipelines < 0)
        return ls__hint(ls__fail(LS_INVALID, "ls_mirrored: %d input pipelines", o->input_pipelines),
                        "1 or more, and each feeds as many replicas; 0 stands for 1");
    if (o->prefetch < -1)
        return ls__hint(ls__fail(LS_INVALID, "ls_mirrored: prefetch is %d", o->prefetch),
                        "steps whose input is made ahead; 0 stands for 2, -1 for none");
    return LS_OK;
}

static ls_status check_options(const ls_mirrored_options *o)
{
    if (o->size != sizeof *o)
        return ls__hint(ls__fail(LS_INVALID, "ls_mirrored: options of %zu bytes, wants %zu",
                                 o->size, sizeof *o),
                        "fill options with LS_MIRRORED(...), or with ls_mirrored_init first");
    if (o->replicas < 0 || o->replicas > MOST_REPLICAS)
        return ls__hint(ls__fail(LS_INVALID, "ls_mirrored: %d replicas", o->replicas),
                        "1 to %d; 0 stands for one per device", MOST_REPLICAS);
    ls_status st = check_input(o);
    if (st)
        return st;
    ls__packing packing = packing_of(o);
    return ls__cross_device_find(o->cross_device) ? ls__packing_check("ls_mirrored", &packing)
                                                  : ls_error_pending();
}

static _Atomic uint64_t made; /* strategies so far */

static ls_strategy *make(const ls_mirrored_options *o, const device_list *list)
{
    int replicas = o->replicas ? o->replicas : list->count;
    int pipelines = o->input_pipelines ? o->input_pipelines : 1;
    if (check_count("ls_mirrored", list->count, replicas))
        return NULL;
    if (replicas % pipelines != 0) {
        ls__hint(ls__fail(LS_INVALID, "ls_mirrored: %d input pipelines for %d replicas", pipelines,
                          replicas),
                 "the number of pipelines divides that of replicas: each feeds as many");
        return NULL;
    }
    ls_strategy *s = aligned_alloc(alignof(ls_strategy), sizeof *s);
    if (!s) {
        ls__fail_memory("ls_mirrored", sizeof *s);
        return NULL;
    }
    memset(s, 0, sizeof *s);
    atomic_init(&s->refs, 1);
    s->serial = atomic_fetch_add(&made, 1) + 1;
    s->replicas = replicas;
    s->cross = ls__cross_device_find(o->cross_device);
    s->packing = packing_of(o);
    s->sequential = o->sequential;
    s->pipelines = pipelines;
    s->prefetch = o->prefetch;
    s->whole_steps = o->whole_steps;
    s->phases = ls__phases_new(replicas);
    if (!s->phases || place(s, list)) {
        ls__strategy_unref(s);
        return NULL;
    }
    return s;
}

ls_strategy *ls_mirrored(const ls_mirrored_options *options)
{
    static const ls_mirrored_options defaults = { .size = sizeof defaults };
    const ls_mirrored_options *o = options ? options : &defaults;
    if (check_options(o))
        return NULL;
    if (getenv("TF_CONFIG"))
        ls__log(LS_LOG_INFO,
                "ls_mirrored: TF_CONFIG is set and ignored: a mirrored strategy has the "
                "devices of one process");
    ls_strategy *s = NULL;
    LS_FRAME {
        device_list list;
        if (!read_devices(o->devices, &list))
            s = make(o, &list);
    }
    return s;
}

ls_strategy *ls_default_strategy(void)
{
    static ls_strategy it = { .refs = 1, .replicas = 1 };
    return &it;
}

bool ls__is_default(const ls_strategy *s)
{
    return s == ls_default_strategy();
}

/* ---- freeing -------------------------------------------------------------------------------- */

ls_strategy *ls__strategy_ref(ls_strategy *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void ls__strategy_unref(ls_strategy *s)
{
    /* acq_rel: the last one out sees what the others did with it. */
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    ls__team_drop(s);
    free(s->devices);
    free(s->device_names);
    free(s->replica_names);
    ls__phases_free(s->phases);
    free(s);
}

/* A callback of ls_update, say: what called it goes on with the strategy. */
static bool is_on_this_stack(const ls_strategy *s)
{
    const ls__mode *mode = ls__mode_now();
    while (mode && mode->strategy != s)
        mode = mode->outer;
    return mode;
}

ls_status ls_strategy_free(ls_strategy *s)
{
    if (!s)
        return LS_OK;
    if (ls__is_default(s))
        return ls__fail(LS_INVALID, "ls_strategy_free: the default strategy is not yours to free");
    if (s->freed)
        return ls__fail(LS_INVALID, "ls_strategy_free: freed already");
    const char *use = atomic_load(&s->running)  ? "a step is running"
                      : atomic_load(&s->scopes) ? "a scope is open"
                      : is_on_this_stack(s)     ? "a call of it has called this"
                                                : NULL;
    if (use)
        return ls__hint(
            ls__fail(LS_STATE, "ls_strategy_free: %s is in use: %s", ls__strategy_text(s), use),
            "free it after its last run, outside of its scopes and functions it calls");
    ls__hosts_stop(s);
    s->freed = true;
    ls__strategy_unref(s);
    return LS_OK;
}

ls_status ls__check_strategy(const char *who, const ls_strategy *s)
{
    if (s && !s->freed)
        return LS_OK;
    if (ls_error_pending())
        return ls_error_pending();
    if (!s)
        return ls__hint(ls__fail(LS_INVALID, "%s: the strategy is NULL", who),
                        "ls_mirrored may have failed and its error been read");
    return ls__fail(LS_STATE, "%s: the strategy was freed", who);
}

/* ---- asking ----------------------------------------------------------------------------------- */

const char *ls__strategy_text(const ls_strategy *s)
{
    if (ls__is_default(s))
        return "the default strategy";
    enum { ROOM = 96 };
    char *text = ls__frame_alloc(ROOM);
    if (!text)
        return "a strategy";
    snprintf(text, ROOM, "strategy %llu (%d replica%s on %s%s)", (unsigned long long)s->serial,
             s->replicas, s->replicas == 1 ? "" : "s", s->device_names[0],
             s->n_devices > 1 ? ", ..." : "");
    return text;
}

ls__device *ls__device_of_replica(const ls_strategy *s, int replica)
{
    return s->n_devices == 0 ? ls__device_current()
                             : s->devices[ls__block_of(s->replicas, s->n_devices, replica)];
}

int ls_num_replicas(const ls_strategy *s)
{
    return s ? s->replicas : 0;
}

int64_t ls_steps(const ls_strategy *s)
{
    return s ? s->steps : 0;
}

ls_status ls_set_steps(ls_strategy *s, int64_t steps)
{
    ls_status st = ls__check_strategy("ls_set_steps", s);
    if (st)
        return st;
    if (ls__is_default(s))
        return ls__hint(ls__fail(LS_INVALID, "ls_set_steps: the default strategy counts no steps"),
                        "ls_random_step sets the step of a thread's draws");
    if (steps < 0 || steps > most_steps)
        return ls__fail(LS_INVALID, "ls_set_steps: %lld steps; wants 0 to 2^62", (long long)steps);
    if (atomic_load(&s->running))
        return ls__fail(LS_STATE, "ls_set_steps: a step is running; set it between steps");
    s->steps = steps;
    ls__phases_next(s->phases, steps);
    return LS_OK;
}

static const char *const *names_of(const ls_strategy *s, bool each_replica, int *count)
{
    static _Thread_local const char *current[1];
    if (count)
        *count = !s ? 0 : each_replica || !s->n_devices ? s->replicas : s->n_devices;
    if (s && !s->n_devices) {
        current[0] = ls_device_current();
        return current;
    }
    return !s ? NULL : each_replica ? s->replica_names : s->device_names;
}

const char *const *ls_worker_devices(const ls_strategy *s, int *count)
{
    return names_of(s, true, count);
}

const char *const *ls_parameter_devices(const ls_strategy *s, int *count)
{
    return names_of(s, false, count);
}

const char *const *ls_non_slot_devices(const ls_strategy *s, int *count)
{
    return names_of(s, false, count);
}

/* One process does everything there is to do. */
bool ls_should_checkpoint(const ls_strategy *s)
{
    return s != NULL;
}

bool ls_should_save_summary(const ls_strategy *s)
{
    return s != NULL;
}

bool ls_should_init(const ls_strategy *s)
{
    return s != NULL;
}

bool ls_between_graph(const ls_strategy *s)
{
    (void)s;
    return false;
}

bool ls_require_static_shapes(const ls_strategy *s)
{
    (void)s;
    return false;
}
