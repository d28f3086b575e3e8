/*
 * Plays a training for bar_test.py: bar_play EPOCHS STEPS TEST-STEPS MILLISECONDS [FROM-STEP] [EVENT...]
 *
 * Milliseconds are of a step. Events: `unknown` lengths, `log` (a line on stderr at every 10th step,
 * as the log callback prints it), `wait` (for a byte on stdin before it ends), `kill` (raises SIGTERM in
 * the middle, with a handler that restores).
 */
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cli/bar.h"

static bool has(int argc, char **argv, const char *event)
{
    for (int i = 5; i < argc; i++)
        if (strcmp(argv[i], event) == 0)
            return true;
    return false;
}

static void ended(int signal_number)
{
    bar_restore();
    _exit(128 + signal_number);
}

static void play_test(bar *b, bar_facts f, int test_steps, int us)
{
    for (int i = 1; i <= test_steps; i++) {
        usleep((useconds_t)us);
        bar_figure figure = { "test_accuracy", 0.86 };
        f.step = i, f.steps = test_steps, f.loss = 0.39;
        f.n_figures = 1, f.figures = &figure;
        bar_test(b, &f);
    }
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return 2;
    int epochs = atoi(argv[1]), steps = atoi(argv[2]), test_steps = atoi(argv[3]);
    int us = 1000 * atoi(argv[4]), from = argc > 5 ? atoi(argv[5]) : 0;
    bool unknown = has(argc, argv, "unknown"), logs = has(argc, argv, "log");
    signal(SIGTERM, ended);
    bar *b = bar_open(stderr, NULL);
    bar_facts f = { .epochs = epochs, .input = 0.012, .reduce = 0.06 };
    f.run_steps = unknown ? -1 : (int64_t)epochs * steps;
    for (int64_t done = from; done <= (int64_t)epochs * steps; done++) {
        f.epoch = done == from ? done / steps + 1 : (done - 1) / steps + 1;
        f.step = done - (f.epoch - 1) * steps;
        f.steps = unknown ? -1 : steps;
        f.run_step = done, f.samples = done * 128;
        f.loss = done == from ? NAN : 2.3 / (1 + 0.01 * (double)done);
        bar_figure figures[] = { { "accuracy", 1 - f.loss / 2.4 },
                                 { "test_loss", 0.39 },
                                 { "test_accuracy", 0.86 } };
        f.n_figures = done > from, f.figures = figures;
        bar_show(b, &f);
        if (logs && done % 10 == 0) {
            bar_clear(b);
            fprintf(stderr, "warning at step %d\n", (int)done);
            bar_redraw(b);
        }
        if (has(argc, argv, "kill") && done == steps / 2)
            raise(SIGTERM);
        if (f.step == steps && done > from) {
            play_test(b, f, test_steps, us);
            f.n_figures = test_steps ? 3 : 1;
            bar_epoch(b, &f);
        }
        usleep((useconds_t)us);
    }
    if (has(argc, argv, "wait") && getchar() == EOF)
        return 1;
    bar_close(b);
    return 0;
}
