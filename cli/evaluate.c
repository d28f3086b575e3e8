/*
 * `lockstep evaluate CHECKPOINT`: loss and accuracy on the test set, with the model and the data that
 * the checkpoint names.
 */
#include <math.h>
#include <stdlib.h>

#include "saved.h"
#include "training.h"

static int print_figures(const cli *c, const session *s)
{
    double loss = ls_trainer_value(s->trainer, "test_loss");
    double accuracy = ls_trainer_value(s->trainer, "test_accuracy");
    if (c->json) {
        json j = json_open(stdout);
        json_text(&j, "event", "evaluate");
        json_text(&j, "model", s->model_name);
        json_whole(&j, "samples", s->data.test_samples);
        json_number(&j, "loss", loss);
        if (!isnan(accuracy))
            json_number(&j, "accuracy", accuracy);
        if (s->text)
            json_number(&j, "bits_per_byte", session_bits(loss));
        json_close(&j);
        return cli_done(c);
    }
    printf("loss %.4f", loss);
    if (!isnan(accuracy))
        printf(", accuracy %.2f %%", 100 * accuracy);
    if (s->text)
        printf(", %.3f bits per byte", session_bits(loss));
    printf(", %lld samples of %s\n", (long long)s->data.test_samples, s->data.name);
    return cli_done(c);
}

static int run(const cli *c, void *request, int n, char **positional)
{
    (void)n;
    saved_request *r = request;
    r->session.test_only = true;
    session s;
    int status;
    if (!saved_open(c, r, positional[0], &s, &status))
        return status;
    status = s.data.test && ls_evaluate(s.trainer, s.data.test) == LS_OK ? print_figures(c, &s)
                                                                         : cli_failed(c);
    session_close(&s);
    return status;
}

static const cli_option options[] = { SAVED_OPTIONS };

const command cli_evaluate = {
    .name = "evaluate",
    .arguments = "CHECKPOINT",
    .help = "loss and accuracy of a trained model",
    .about =
        "Prints the loss and accuracy of a checkpoint on the test set. CHECKPOINT is a file, or a "
        "directory, of which the newest good one is taken; any safetensors file with "
        "the model's weights will do, with --model.",
    .values = "FILE",
    .examples = "  lockstep evaluate run",
    .environment = "CC LOCKSTEP_FASHION_MNIST LOCKSTEP_ISA TMPDIR",
    CLI_OPTIONS(options),
    .least = 1,
    .most = 1,
    .request_bytes = sizeof(saved_request),
    .defaults = saved_defaults,
    .run = run,
};
