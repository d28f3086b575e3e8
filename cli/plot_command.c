/*
 * `lockstep plot DIR`: reads DIR/run.jsonl, prints the plot and writes it as DIR/plot.svg. What is
 * wrong with the directory or the file is told before anything is printed or written.
 */
#include "plot_command.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "plot.h"

typedef struct request {
    const char *svg; /* NULL: in the directory */
    int64_t width;   /* 0: the terminal's */
} request;

#define WIDTHS "a whole number from 20 to 1000"

static bool read_width(const char *text, void *to)
{
    return cli_whole(text, 20, 1000, to);
}

static const cli_option options[] = {
    { "--svg", "FILE", "where the SVG goes (DIR/" PLOT_SVG_NAME ")", "a name of a file", cli_text,
      .at = offsetof(request, svg), .values = "FILE" },
    { "--width", "N", "columns of the plot (the window's, else 80)", WIDTHS, read_width,
      .at = offsetof(request, width) },
};

/* ---- reading ------------------------------------------------------------------------------ */

#define HINT "give the directory that 'lockstep train --checkpoint' wrote"

static int cannot_read(const cli *c, const char *path)
{
    return cli_error(c, EXIT_USAGE, errno == ENOENT ? LS_NOT_FOUND : LS_IO, HINT,
                     "cannot read '%s': %s", path, strerror(errno));
}

/* Opens the run's log, which is a file: another thing might never end. NULL: with *status. */
static FILE *open_log(const cli *c, const char *directory, const char *path, int *status)
{
    struct stat found;
    FILE *from = NULL;
    if (stat(directory, &found) != 0)
        *status = cannot_read(c, directory);
    else if (!S_ISDIR(found.st_mode))
        *status = cli_error(c, EXIT_USAGE, LS_INVALID, HINT, "'%s' is no directory", directory);
    else if (stat(path, &found) != 0)
        *status = cannot_read(c, path);
    else if (!S_ISREG(found.st_mode))
        *status = cli_error(c, EXIT_USAGE, LS_INVALID, HINT, "'%s' is no file", path);
    else if (!(from = fopen(path, "r")))
        *status = cannot_read(c, path);
    return from;
}

/* The log of the run in the directory; NULL: it ends here, with *status. */
static run_log *read_log(const cli *c, const char *directory, int *status)
{
    textbuf path = { 0 };
    text_format(&path, "%s/%s", directory, RUN_LOG_NAME);
    run_log *log = NULL;
    FILE *from = open_log(c, directory, text_read(&path), status);
    if (from) {
        log = run_log_new();
        if (!log || !run_log_read(log, from)) {
            bool memory = !log || log->out_of_memory;
            *status =
                cli_error(c, EXIT_FAILED, memory ? LS_NO_MEMORY : LS_IO, "", "cannot read '%s': %s",
                          text_read(&path), strerror(memory ? ENOMEM : errno));
            run_log_free(log);
            log = NULL;
        }
        fclose(from);
    }
    text_free(&path);
    return log;
}

/* ---- the command ---------------------------------------------------------------------------- */

static void print_json(const run_log *log, const plot *p, const char *svg)
{
    json j = json_open(stdout);
    json_text(&j, "event", "plot");
    json_text(&j, "svg", svg);
    json_text(&j, "model", log->model);
    json_whole(&j, "steps", log->steps);
    json_whole(&j, "charts", p->n_charts);
    json_whole(&j, "damaged_lines", log->damaged);
    json_close(&j);
}

static int show(const cli *c, const run_log *log, const plot *p, const request *r, const char *svg)
{
    if (log->damaged > 0)
        fprintf(stderr, "%s: %lld of %lld lines of %s are damaged and left out\n", c->name,
                (long long)log->damaged, (long long)log->lines, RUN_LOG_NAME);
    if (!plot_save(p, svg))
        return cli_error(c, EXIT_FAILED, LS_IO, "--svg FILE takes another place",
                         "cannot write '%s': %s", svg, strerror(errno));
    if (c->json) {
        print_json(log, p, svg);
        return cli_done(c);
    }
    terminal screen = terminal_look(stdout);
    if (r->width)
        screen.columns = (int)r->width;
    plot_print(p, stdout, &screen);
    printf("\nwrote %s\n", svg);
    return cli_done(c);
}

static int run(const cli *c, void *its, int n, char **positional)
{
    (void)n;
    const request *r = its;
    int status = EXIT_FAILED;
    run_log *log = read_log(c, positional[0], &status);
    if (!log)
        return status;
    textbuf svg = { 0 };
    text_format(&svg, "%s/%s", positional[0], PLOT_SVG_NAME);
    plot *p = plot_make(log);
    if (!p || svg.failed)
        status = cli_error(c, EXIT_FAILED, LS_NO_MEMORY, "", "no memory for the plot");
    else if (plot_is_empty(p))
        status = cli_error(c, EXIT_USAGE, LS_NOT_FOUND, "wait for the first step of the run",
                           "nothing to plot yet in '%s/%s'%s", positional[0], RUN_LOG_NAME,
                           log->damaged ? ", whose lines are damaged" : "");
    else
        status = show(c, log, p, r, r->svg ? r->svg : text_read(&svg));
    plot_free(p);
    text_free(&svg);
    run_log_free(log);
    return status;
}

void plot_at_end(const cli *c, const char *directory, FILE *from)
{
    run_log *log = from ? run_log_new() : NULL;
    plot *p = log && run_log_read(log, from) ? plot_make(log) : NULL;
    textbuf svg = { 0 };
    text_format(&svg, "%s/%s", directory ? directory : "", PLOT_SVG_NAME);
    if (p && !plot_is_empty(p)) {
        terminal screen = terminal_look(stdout);
        if (!c->json && screen.live)
            plot_print(p, stdout, &screen);
        if (directory && !svg.failed && plot_save(p, text_read(&svg)) && !c->json)
            printf("curves: %s\n", text_read(&svg));
    }
    text_free(&svg);
    plot_free(p);
    run_log_free(log);
    if (from)
        fclose(from);
}

const command cli_plot = {
    .name = "plot",
    .arguments = "DIR",
    .help = "curves of a run, and where its time went",
    .about =
        "Shows the run in DIR: its losses and accuracies as curves, and where the time of each "
        "replica went, in the terminal and as an SVG file. It may still be running.\n"
        "\n"
        "The plot fits the window, has no colours where NO_COLOR is set, and is ASCII where the "
        "locale has no UTF-8.",
    .values = "DIR",
    CLI_OPTIONS(options),
    .least = 1,
    .most = 1,
    .request_bytes = sizeof(request),
    .run = run,
    .examples = "A run, while it is under way or after it:\n\n"
                "  lockstep train --checkpoint runs/first\n"
                "  lockstep plot runs/first",
    .files = "  DIR/" RUN_LOG_NAME "\n\nWhat the run wrote down: the events of train --json.\n\n"
             "  DIR/" PLOT_SVG_NAME "\n\nThe plot, written again each time.",
    .environment = "CLICOLOR_FORCE NO_COLOR",
};
