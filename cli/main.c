/*
 * The command `lockstep`: the table of its subcommands. Machine output goes to stdout, errors
 * to stderr; a wrong command line is one line that says what to do, and exit 2.
 * Like everything in cli/ it sees the public headers only.
 */
#include <fcntl.h>
#include <lockstep.h>
#include <unistd.h>

#include "bench.h"
#include "cli.h"
#include "crash_guard.h"
#include "doctor.h"
#include "interrupt.h"
#include "plot_command.h"
#include "tables.h"
#include "training.h"

static int print_version(const cli *c, void *request, int n, char **positional)
{
    (void)request, (void)n, (void)positional;
    printf("lockstep %s\n", ls_version());
    return cli_done(c);
}

static const command version = { .name = "--version",
                                 .help = "show the version",
                                 .run = print_version };

static const command *const commands[] = {
    &cli_train, &cli_evaluate, &cli_predict, &cli_sample, &cli_plot,
    &cli_bench, &cli_doctor,   &version,     &cli_man,    &cli_completions,
};

static const command_table table = { .name = "lockstep",
                                     .what = "Synchronous data-parallel training.",
                                     .count = sizeof commands / sizeof commands[0],
                                     .commands = commands };

const command cli_root = {
    .name = "lockstep",
    .help = "synchronous data-parallel training",
    .about =
        "Trains a model on several devices at once: each replica computes with its share of the "
        "batch, their gradients are summed, and all take the same step, so that the result is that "
        "of one large batch. The result has the same bits wherever the replicas run.\n"
        "\n"
        "Results go to standard output, as one JSON object a line with --json; errors go to "
        "standard error, one line that says what was wrong and what to do. With --json an error "
        "is also the last object on standard output:\n"
        "\n"
        "  {\"event\":\"error\",\"code\":\"..\",\"text\":\"..\",\"hint\":\"..\"}",
    .files = "  /usr/share/datasets/fashion-mnist\n\n"
             "Fashion-MNIST, as Debian's package dataset-fashion-mnist installs it.",
    .environment = "CLICOLOR_FORCE LOCKSTEP_FASHION_MNIST LOCKSTEP_ISA NO_COLOR",
    .commands = &table,
};

/* A file that is opened must not become stdout because that was closed. */
static void keep_standard_files(void)
{
    for (int file = 0; file < 3; file++)
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", file ? O_WRONLY : O_RDONLY) != file)
            _exit(EXIT_FAILED);
}

int main(int argc, char **argv)
{
    keep_standard_files();
    interrupt_leaves();
    int status = cli_run(&table, argc, argv);
    crash_guard_remove(); /* from here on it is we who leave */
    return status;
}
