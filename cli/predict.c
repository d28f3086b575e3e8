/*
 * `lockstep predict CHECKPOINT FILE`: classes and probabilities of what is in a file, a line a sample
 * in the order of the file.
 */
#include <lockstep/ops.h>
#include <math.h>
#include <string.h>

#include "predict_input.h"
#include "saved.h"
#include "training.h"

typedef struct request {
    saved_request saved;
    int64_t top;
} request;

typedef struct printing {
    const cli *cli;
    const char *data; /* whose classes have names */
    int64_t top, sample;
} printing;

static void print_person(const printing *p, int64_t k, const int64_t *classes, const double *shares)
{
    printf("%lld", (long long)p->sample);
    for (int64_t i = 0; i < k; i++) {
        const char *name = data_class(p->data, classes[i]);
        printf("  %lld%s%s %.4f", (long long)classes[i], name ? " " : "", name ? name : "",
               shares[i]);
    }
    printf("\n");
}

static void print_json(const printing *p, int64_t k, const int64_t *classes, const double *shares)
{
    json j = json_open(stdout);
    json_text(&j, "event", "prediction");
    json_whole(&j, "sample", p->sample);
    json_whole(&j, "class", classes[0]);
    const char *name = data_class(p->data, classes[0]);
    if (name)
        json_text(&j, "name", name);
    json_number(&j, "probability", shares[0]);
    json_begin_list(&j, "top");
    for (int64_t i = 0; i < k; i++) {
        json_begin(&j, NULL);
        json_whole(&j, "class", classes[i]);
        json_number(&j, "probability", shares[i]);
        json_end(&j);
    }
    json_end(&j);
    json_close(&j);
}

enum { MOST_TOP = 100 };

static ls_status print_batch(ls_tensor *outputs, ls_value *batch, void *user)
{
    (void)batch;
    printing *p = user;
    int64_t classes = ls_dim(outputs, -1), k = p->top < classes ? p->top : classes;
    ls_value *best = ls_top_k(ls_softmax(ls_cast(outputs, LS_F64), -1), k);
    const double *shares = best ? ls_data(ls_item(best, 0)) : NULL;
    const int64_t *which = best ? ls_data(ls_cast(ls_item(best, 1), LS_I64)) : NULL;
    if (!shares || !which)
        return ls_error_pending();
    for (int64_t row = 0; row < ls_dim(outputs, 0); row++, p->sample++)
        (p->cli->json ? print_json : print_person)(p, k, which + row * k, shares + row * k);
    return LS_OK;
}

static int predict(const cli *c, const request *r, const session *s, const char *file)
{
    const char *wanted = ls_model_input(ls_trainer_model(s->trainer));
    predict_input input;
    int status;
    if (!predict_open(c, file, wanted, s->global_batch, &input, &status))
        return status;
    printing p = { .cli = c, .data = r->saved.session.data, .top = r->top };
    status = ls_predict(s->trainer, input.x, print_batch, &p) ? cli_failed(c) : cli_done(c);
    predict_close(&input);
    return status;
}

static int run(const cli *c, void *request_, int n, char **positional)
{
    (void)n;
    request *r = request_;
    session s;
    int status;
    r->saved.session.no_data = true;
    if (!saved_open(c, &r->saved, positional[0], &s, &status))
        return status;
    if (s.text)
        status = cli_error(c, EXIT_USAGE, LS_UNSUPPORTED, "'lockstep sample' writes text with it",
                           "'%s' is a language model: it has no classes", s.model_name);
    else
        status = predict(c, r, &s, positional[1]);
    session_close(&s);
    return status;
}

static bool read_top(const char *text, void *to)
{
    return cli_whole(text, 1, MOST_TOP, to);
}

static void defaults(void *to)
{
    saved_defaults(to);
    ((request *)to)->top = 3;
}

static const cli_option options[] = {
    { "--top", "N", "classes of each sample, the likeliest first (3)",
      "a whole number from 1 to 100", read_top, .at = offsetof(request, top) },
    SAVED_OPTIONS,
};

const command cli_predict = {
    .name = "predict",
    .arguments = "CHECKPOINT FILE",
    .help = "classes and probabilities of what is in a file",
    .about =
        "Prints for each sample of FILE the likeliest classes and their probabilities, in the "
        "order of the file: a picture (.png, .jpg), arrays (.npy, .npz, idx) or TFRecord files. "
        "Pictures are brought to the size that the model takes.",
    .values = "FILE",
    .examples = "  lockstep predict run shoe.png",
    .environment = "CC LOCKSTEP_ISA TMPDIR",
    CLI_OPTIONS(options),
    .least = 2,
    .most = 2,
    .request_bytes = sizeof(request),
    .defaults = defaults,
    .run = run,
};
