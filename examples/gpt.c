/*
 * A language model over bytes: trains gpt on a text, and lets it write.
 *
 *     gpt TEXT-FILE 500            # so many steps
 *
 * The text is read as windows of 128 bytes, each asked for the byte that follows every one of its own.
 */
#include <lockstep.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLICAS = 2, BATCH = 8 * REPLICAS, CONTEXT = 128 };

/* ---- text -------------------------------------------------------------------------------------- */

/* A window's bytes but the last, and but the first. */
static ls_value *to_pairs(ls_value *batch, void *user)
{
    (void)user;
    ls_tensor *rows = ls_cast(ls_leaf_tensor(batch), LS_I32); /* [n, 129] */
    const int64_t size[] = { ls_dim(rows, 0), CONTEXT };
    return ls_tensors(2, (ls_tensor *[]){ ls_slice(rows, LS_DIMS(0, 0), size),
                                          ls_slice(rows, LS_DIMS(0, 1), size) });
}

static ls_value *to_bytes(ls_value *record, void *user)
{
    (void)user;
    return ls_leaf(ls_decode_raw(ls_leaf_tensor(record), LS_U8, LS_DIMS(CONTEXT + 1)));
}

/* What is left behind the last whole window. */
static int64_t rest_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    if (file)
        fclose(file);
    return size > 0 ? size % (CONTEXT + 1) : 0;
}

static ls_dataset *windows(const char *path)
{
    ls_dataset *d = ls_fixed_records(
        LS_FILES(path), LS_RECORDS(.record_bytes = CONTEXT + 1, .footer_bytes = rest_of(path)));
    d = ls_shuffle(ls_map(d, LS_MAP(.fn = to_bytes)), 100000, 1);
    return ls_map(ls_batch_full(ls_repeat(d, -1), BATCH), LS_MAP(.fn = to_pairs));
}

/* ---- writing ------------------------------------------------------------------------------------- */

static ls_value *ask(ls_value *ids, void *model)
{
    return ls_leaf(ls_model_forward(model, ls_leaf_tensor(ids), false));
}

/* The likeliest byte, again and again. */
static void write_text(ls_model *m, const char *prompt, int bytes)
{
    int32_t text[CONTEXT];
    int n = 0;
    for (; prompt[n] && n < CONTEXT; n++)
        text[n] = (unsigned char)prompt[n];
    printf("%s", prompt);
    ls_function *next = ls_trace_with(LS_TRACE(.cache = CONTEXT), ask, m);
    for (int i = 0; i < bytes && n < CONTEXT; i++)
        LS_FRAME {
            ls_value *logits = ls_function_call(next, ls_leaf(ls_from(LS_I32, LS_DIMS(1, n), text)));
            ls_tensor *best = logits ? ls_argmax(ls_leaf_tensor(logits), -1) : NULL; /* [1, n] */
            const int64_t *ids = best ? ls_data(best) : NULL;
            if (!ids)
                break;
            text[n] = (int32_t)ids[n - 1];
            putchar(text[n++]);
        }
    putchar('\n');
    ls_function_free(next);
}

/* ---- training ------------------------------------------------------------------------------------ */

static ls_status print_step(const ls_progress *p, void *user)
{
    (void)user;
    if (p->step % 100 == 0 || p->step == p->last_step)
        printf("step %lld of %lld: %.3f bits per byte\n", (long long)p->step,
               (long long)p->last_step, ls_trainer_value(p->trainer, "loss") / 0.6931471805599453);
    return LS_OK;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return fprintf(stderr, "usage: gpt TEXT-FILE [STEPS]\n"), 2;
    int64_t steps = argc > 2 ? atoll(argv[2]) : 500;
    ls_random_seed(1);
    ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0,/cpu:1", .replicas = REPLICAS));
    ls_optimizer *adamw = ls_adamw(LS_ADAM(
            .rate = 1e-3, .clip_global_norm = 1,
            .schedule = LS_SCHEDULE(.kind = LS_SCHEDULE_COSINE, .steps = steps, .alpha = 0.1,
                                    .warmup_steps = 50)));
    ls_trainer *t = ls_trainer_new(LS_TRAINER(.strategy = s, .model = ls_model_named("gpt"),
                                              .optimizer = adamw, .global_batch = BATCH));
    ls_callback *print = LS_CALLBACK(.name = "print", .step = print_step);
    ls_fit(t, LS_FIT(.data = windows(argv[1]), .steps = steps, .n_callbacks = 1,
                     .callbacks = &print));
    if (!ls_error_pending())
        write_text(ls_trainer_model(t), "In the beginning ", 100);
    ls_trainer_free(t);
    ls_strategy_free(s);
    if (ls_error_pending())
        return fprintf(stderr, "gpt: %s\n", ls_error_report()), 1;
    return 0;
}
