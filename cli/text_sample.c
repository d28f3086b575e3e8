/*
 * `lockstep sample CHECKPOINT`: text from a language model, byte after byte. Each byte is drawn from
 * what the model says follows the last ones it can look back to. Draws follow from --seed: the same
 * text on any machine of the same math profile.
 */
#include <lockstep/ops.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "saved.h"
#include "training.h"

typedef struct request {
    saved_request saved;
    int64_t bytes;
    double temperature;
    const char *prompt;
} request;

/* The text so far, and the function that says what follows. */
typedef struct writing {
    session *session;
    ls_function *next;
    int64_t context; /* bytes that the model looks back to */
    unsigned char *text;
    int32_t *ids; /* of the bytes it looks back to */
    int64_t length;
    uint64_t draws; /* state of the generator */
    double temperature;
} writing;

/* ---- what follows --------------------------------------------------------------------------------------- */

/* ids i32[1, t] -> logits f32[256] of the byte after the last. */
static ls_value *next_step(ls_value *ids, void *user)
{
    const writing *w = user;
    ls_tensor *logits =
        ls_model_forward(ls_trainer_model(w->session->trainer), ls_leaf_tensor(ids), false);
    if (!logits)
        return NULL;
    int64_t last = ls_dim(logits, 1) - 1, classes = ls_dim(logits, 2);
    ls_tensor *row = ls_slice(logits, LS_DIMS(0, last, 0), (const int64_t[]){ 1, 1, classes });
    return ls_leaf(ls_reshape(row, LS_DIMS(classes)));
}

/* splitmix64, a number from 0 to 1. */
static double draw(writing *w)
{
    uint64_t z = w->draws += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static int choose(writing *w, const float *logits, int64_t classes)
{
    double most = -INFINITY, sum = 0;
    int likeliest = 0;
    for (int i = 0; i < classes; i++)
        if (logits[i] > most)
            most = logits[i], likeliest = i;
    if (w->temperature == 0)
        return likeliest;
    for (int i = 0; i < classes; i++)
        sum += exp((logits[i] - most) / w->temperature);
    double left = draw(w) * sum;
    for (int i = 0; i < classes; i++)
        if ((left -= exp((logits[i] - most) / w->temperature)) < 0)
            return i;
    return likeliest;
}

/* -1: an error is pending. */
static int next_byte(writing *w)
{
    int64_t n = w->length < w->context ? w->length : w->context;
    for (int64_t i = 0; i < n; i++)
        w->ids[i] = w->text[w->length - n + i];
    ls_tensor *x = ls_from(LS_I32, LS_DIMS(1, n), w->ids);
    ls_value *logits = ls_function_call(w->next, ls_leaf(x));
    const float *numbers = logits ? ls_data(ls_leaf_tensor(logits)) : NULL;
    return numbers ? choose(w, numbers, ls_count(ls_leaf_tensor(logits))) : -1;
}

/* ---- writing --------------------------------------------------------------------------------------------- */

static bool write_bytes(const cli *c, writing *w, int64_t bytes)
{
    for (int64_t i = 0; i < bytes && !interrupt_came() && !ferror(stdout); i++) {
        int byte = -1;
        LS_FRAME
            byte = next_byte(w);
        if (byte < 0)
            return false;
        w->text[w->length++] = (unsigned char)byte;
        if (c->json)
            continue;
        putchar(byte);
        cli_flush(stdout);
    }
    return true;
}

static int print_text(const cli *c, writing *w, const char *prompt)
{
    if (!c->json) {
        putchar('\n');
        return cli_done(c);
    }
    size_t given = strlen(prompt);
    json j = json_open(stdout);
    json_text(&j, "event", "sample");
    json_text(&j, "prompt", prompt);
    json_bytes(&j, "text", (const char *)w->text + given, (size_t)w->length - given);
    json_close(&j);
    return cli_done(c);
}

static int write_text(const cli *c, const request *r, session *s)
{
    size_t given = strlen(r->prompt);
    writing w = { .session = s, .length = (int64_t)given, .temperature = r->temperature };
    w.draws = r->saved.session.seed;
    w.context = strtoll(strchr(ls_model_input(ls_trainer_model(s->trainer)), '[') + 1, NULL, 10);
    w.text = malloc(given + (size_t)r->bytes + 1);
    w.ids = calloc((size_t)w.context, sizeof *w.ids);
    w.next = ls_trace_with(LS_TRACE(.name = "sample", .cache = 1024), next_step, &w);
    int status = EXIT_FAILED;
    if (!w.text || !w.ids)
        status = cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "no memory for the text");
    else if (!w.next)
        status = cli_failed(c);
    else {
        memcpy(w.text, r->prompt, given);
        if (!c->json)
            fputs(r->prompt, stdout);
        status = write_bytes(c, &w, r->bytes) ? print_text(c, &w, r->prompt) : cli_failed(c);
    }
    ls_function_free(w.next);
    free(w.text);
    free(w.ids);
    return interrupt_came() ? EXIT_INTERRUPTED : status;
}

/* ---- the command ------------------------------------------------------------------------------------------- */

static int run(const cli *c, void *request_, int n, char **positional)
{
    (void)n;
    request *r = request_;
    session s;
    int status;
    interrupt_watch(c->name);
    r->saved.session.no_data = true;
    r->saved.session.replicas = 1;
    if (!saved_open(c, &r->saved, positional[0], &s, &status))
        return status;
    if (!s.text)
        status = cli_error(c, EXIT_USAGE, LS_UNSUPPORTED, "'lockstep predict' asks it for classes",
                           "'%s' is no language model: it has no text to give", s.model_name);
    else
        status = write_text(c, r, &s);
    session_close(&s);
    return status;
}

static bool read_bytes(const char *text, void *to)
{
    return cli_whole(text, 1, 1 << 30, to);
}

static bool read_temperature(const char *text, void *to)
{
    return cli_number(text, 0, 100, to);
}

static void defaults(void *to)
{
    request *r = to;
    saved_defaults(r);
    r->bytes = 1000;
    r->temperature = 0.8;
    r->prompt = "\n";
}

static const cli_option options[] = {
    { "--bytes", "N", "how much (1000)", "a whole number of 1 or more", read_bytes,
      .at = offsetof(request, bytes) },
    { "--seed", "N", "of the draws (1)", "a whole number of 0 or more", session_read_seed,
      SAVED_AT(seed) },
    { "--temperature", "X", "0: always the likeliest byte; 1: as the model says (0.8)",
      "a number from 0 to 100", read_temperature, .at = offsetof(request, temperature) },
    { "--prompt", "TEXT", "what it begins with (a new line)", "a text that is not empty", cli_text,
      .at = offsetof(request, prompt) },
    { "--model", "MODEL", "a name or FILE.c (the checkpoint's)", "a name or a file", cli_text,
      SAVED_AT(model), .values = "gpt FILE" },
    { "--threads", "N", "threads (1)", "a whole number from 1 to 1024", session_read_threads,
      SAVED_AT(threads) },
};

const command cli_sample = {
    .name = "sample",
    .arguments = "CHECKPOINT",
    .help = "text from a trained gpt",
    .about =
        "Writes text with a language model, byte after byte, to standard output. The same seed "
        "gives the same text.",
    .values = "FILE",
    .examples = "  lockstep sample run --bytes 500 --prompt 'In the beginning '",
    .environment = "CC LOCKSTEP_ISA TMPDIR",
    CLI_OPTIONS(options),
    .least = 1,
    .most = 1,
    .request_bytes = sizeof(request),
    .defaults = defaults,
    .run = run,
};
