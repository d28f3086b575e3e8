/*
 * `lockstep train`: its options. What it does is in train_run.c.
 */
#include <math.h>
#include <string.h>

#include "train_run.h"
#include "training.h"

static void default_request(void *to)
{
    *(train_request *)to = (train_request){ .resume = false };
    ((train_request *)to)->session.seed = 1;
    ((train_request *)to)->session.epochs = 1;
    ((train_request *)to)->session.weight_decay = NAN;
}

static int run(const cli *c, void *request, int n, char **positional)
{
    train_request *r = request;
    r->session.model = n > 0 ? positional[0] : NULL;
    return train_run(c, r);
}

#define COUNT "a whole number of 1 or more"
#define IN_SESSION(field) .at = offsetof(session_request, field)
#define IN_RUN(field) .at = offsetof(train_request, field)

static bool read_keep(const char *text, void *to)
{
    return cli_whole(text, 1, 1000000, to);
}

static bool read_schedule(const char *text, void *to)
{
    bool cosine = strcmp(text, "cosine") == 0;
    *(session_schedule *)to = cosine ? SCHEDULE_COSINE : SCHEDULE_CONSTANT;
    return cosine || strcmp(text, "constant") == 0;
}

static const cli_option options[] = {
    { "--data", "SPEC",
      "fashion-mnist, FILE.npz, TFRecord files, or a text for gpt (fashion-mnist; gpt: what the "
      "program bible prints)",
      "a name or a file", cli_text, IN_SESSION(data), .values = "FILE",
      .group = "What is trained, and how" },
    { "--batch", "N", "samples of each replica in a step (64; gpt: 8)", COUNT, session_read_count,
      IN_SESSION(batch) },
    { "--epochs", "N", "times through the data, in all (1)", COUNT, session_read_count,
      IN_SESSION(epochs) },
    { "--steps", "N", "end after so many steps, in all", COUNT, session_read_count,
      IN_SESSION(steps) },
    { "--minutes", "X", "end after so many minutes", "a number of minutes above 0",
      session_read_rate, IN_RUN(minutes) },
    { "--optimizer", "NAME", "sgd, momentum, adam or adamw (adam; gpt: adamw)",
      "one of sgd, momentum, adam, adamw", session_read_optimizer, IN_SESSION(optimizer),
      .values = "sgd momentum adam adamw" },
    { "--lr", "X", "learning rate (0.001)", "a number above 0", session_read_rate,
      IN_SESSION(rate) },
    { "--schedule", "NAME", "of the rate: constant, or cosine: down to 0 at the end (constant)",
      "constant or cosine", read_schedule, IN_SESSION(schedule), .values = "constant cosine" },
    { "--warmup", "N", "steps in which the rate climbs from 0 (0; gpt: 100)",
      "a whole number of 0 or more", session_read_warmup, IN_SESSION(warmup) },
    { "--weight-decay", "X", "decoupled from the gradient (0; adamw: 0.004)",
      "a number of 0 or more", session_read_share, IN_SESSION(weight_decay) },
    { "--clip", "X", "scale gradients down to this norm of all of them (none)",
      "a number of 0 or more", session_read_share, IN_SESSION(clip) },
    { "--seed", "N", "of initial values, order of data, random draws (1)",
      "a whole number of 0 or more", session_read_seed, IN_SESSION(seed) },
    { "--replicas", "V", "logical replicas: part of the result (as many as --devices; 2)",
      "a whole number from 1 to 1024", session_read_replicas, IN_SESSION(replicas),
      .group = "Where it runs" },
    { "--devices", "LIST", "/cpu:0,/cpu:1: no part of the result (what this host serves well)",
      "a list of devices", cli_text, IN_SESSION(devices) },
    { "--threads", "N", "threads of each replica: part of the result (1)",
      "a whole number from 1 to 1024", session_read_threads, IN_SESSION(threads) },
    { "--cross-device-ops", "NAME", "how replicas add up (auto)",
      "one of auto, direct, hierarchical-copy, reduction-to-one-device, nccl",
      session_read_cross_device, IN_SESSION(cross_device),
      .values = "auto direct hierarchical-copy reduction-to-one-device nccl" },
    { "--checkpoint", "DIR", "save there after every epoch, and at the end", "a directory",
      cli_text, IN_RUN(checkpoint), .values = "DIR", .group = "Saving and watching" },
    { "--checkpoint-every", "N", "save every N steps, too", COUNT, session_read_count,
      IN_RUN(every) },
    { "--keep", "N", "checkpoints that are kept (3)", COUNT, read_keep, IN_RUN(keep) },
    { "--resume", .help = "go on from the newest checkpoint, at the exact sample", IN_RUN(resume) },
    { "--init", "FILE", "begin with weights, by name, from a safetensors file", "a file", cli_text,
      IN_RUN(init), .values = "FILE" },
    { "--log", "DIR", "event files for TensorBoard", "a directory", cli_text, IN_RUN(log),
      .values = "DIR" },
    { "--profile", "FILE", "a trace of every replica, for Perfetto or chrome://tracing", "a file",
      cli_text, IN_RUN(profile), .values = "FILE" },
};

const command cli_train = {
    .name = "train",
    .arguments = "[MODEL]",
    .help = "train a model on several devices",
    .about =
        "Trains a model: cnn (the default), cnn2, mlp, resnet or gpt, or one of your own: "
        "FILE.c or "
        "FILE.so, which defines `ls_model *lockstep_model(void)` (see <lockstep/model.h>). A "
        "FILE.c "
        "is compiled with the system's compiler.\n\n"
        "The result belongs to the command line, not to the machine: the same options give "
        "the same "
        "bits on any number of devices. --devices and --log and their like change nothing of "
        "it; --replicas, --threads, --batch and --seed do.\n\n"
        "Ctrl-C and SIGTERM save (with --checkpoint) and leave with status 130; --resume goes "
        "on at "
        "the exact sample, as if the run had never stopped. Ctrl-C after another signal ends at "
        "once.",
    .values = "cnn cnn2 mlp resnet gpt FILE",
    .examples = "Train the default model for one epoch:\n\n"
                "  lockstep train\n\n"
                "Ten epochs, saved, with curves for TensorBoard:\n\n"
                "  lockstep train cnn --epochs 10 --checkpoint run --log run\n\n"
                "Go on after an interruption:\n\n"
                "  lockstep train cnn --epochs 10 --checkpoint run --log run --resume\n\n"
                "A model of your own:\n\n"
                "  lockstep train mine.c --data mine.npz",
    .files =
        "DIR/step-NNNNNNNNN.safetensors: checkpoints, which any reader of safetensors "
        "opens.\n\nDIR/earlier-N: checkpoints and logs that were there of an earlier run, when "
        "another "
        "began.\n\nDIR/run.jsonl: the events of the run, from which `lockstep plot DIR` draws.",
    .environment = "CC CLICOLOR_FORCE LOCKSTEP_FASHION_MNIST LOCKSTEP_ISA NO_COLOR TMPDIR",
    CLI_OPTIONS(options),
    .most = 1,
    .request_bytes = sizeof(train_request),
    .defaults = default_request,
    .run = run,
};
