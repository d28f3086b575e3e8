/*
 * Fuzz target: bytes that say they are a checkpoint, with checksums that are right, as one may forge
 * them. It is restored, or nothing changes.
 */
#include <lockstep/checkpoint.h>
#include <lockstep/ops.h>
#include <string.h>

#include "data/crc32c.h"
#include "file_fuzz.h"
#include "train/safetensors.h"

typedef struct run {
    ls_variable *v[2];
    ls_optimizer *o;
    ls_iterator *input;
} run;

static void quiet(ls_log_level level, const char *message, void *user)
{
    (void)level;
    (void)message;
    (void)user;
}

static void begin(run *r)
{
    ls_log_set(quiet, NULL, LS_LOG_ERROR);
    LS_FRAME {
        r->v[0] = ls_variable_new("w", ls_ones(LS_F32, LS_DIMS(2, 3)), true);
        r->v[1] = ls_variable_new("n", ls_scalar_int(LS_I64, 3), false);
        r->o = ls_adam(NULL);
        r->input = ls_iterate(ls_batch(ls_shuffle(ls_range(0, 20, 1), 5, 1), 3));
        ls_value *batch;
        ls_next(r->input, &batch);
        ls_tensor *g = ls_ones(LS_F32, LS_DIMS(2, 3));
        ls_apply_gradients(r->o, 1, &g, r->v);
    }
    require(ls_error_pending() == LS_OK, "there is a run");
}

static ls_checkpoint checkpoint_of(run *r)
{
    return (ls_checkpoint){ .size = sizeof(ls_checkpoint),
                            .n_variables = 2,
                            .variables = r->v,
                            .n_optimizers = 1,
                            .optimizers = &r->o,
                            .input = r->input,
                            .model = "small" };
}

static void put_sum(uint8_t *at, uint32_t sum)
{
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t) "0123456789abcdef"[sum >> (28 - 4 * i) & 15];
}

/* Where the sums of a file of ours are they become right. */
static void forge(uint8_t *data, size_t size)
{
    uint64_t length = 0;
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)(size > 8 ? data[i] : 0) << (8 * i);
    if (size < 80 || length > size - 8 || length < 72)
        return;
    uint8_t *sums = data + 8 + LS__SAFETENSORS_SUMS_AT;
    memcpy(data + 8, LS__SAFETENSORS_BEGIN, LS__SAFETENSORS_SUMS_AT);
    memset(sums, '0', 8);
    sums[8] = ' ';
    put_sum(sums + 9, ls__crc32c(0, data + 8 + length, size - 8 - (size_t)length));
    put_sum(sums, ls__crc32c(0, data, 8 + (size_t)length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static run r;
    char before[LS_DIGEST_MAX], after[LS_DIGEST_MAX];
    uint8_t *copy = malloc(size + 1);
    if (!r.o)
        begin(&r);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    forge(copy, size);
    const char *path = file_of(copy, size);
    free(copy);
    LS_FRAME {
        ls_checkpoint c = checkpoint_of(&r);
        ls_checkpoint_record record = { .size = sizeof record };
        require(ls_state_digest(&c, before) == LS_OK, "a run has a state");
        ls_status looked = ls_checkpoint_look(path, &record);
        ls_error();
        ls_status st = ls_checkpoint_restore(path, &c);
        require(st == ls_error_pending(), "an error is recorded");
        ls_error();
        require(!looked || st, "what cannot be looked at cannot be restored");
        c.extra = NULL;
        require(ls_state_digest(&c, after) == LS_OK, "a run has a state");
        require(!st || strcmp(before, after) == 0, "a restore that fails changes nothing");
        ls_value *batch;
        (void)ls_next(r.input, &batch);
        ls_error();
    }
    return 0;
}
