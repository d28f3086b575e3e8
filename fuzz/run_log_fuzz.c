/* Fuzz target: bytes that say they are what a run wrote down, and the plots of it. */
#include <lockstep/status.h>
#include <stdlib.h>
#include <string.h>

#include "../cli/plot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *promise)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s\n", promise);
    abort();
}

static void check_text(const plot *p, const terminal *screen)
{
    textbuf out = { 0 };
    plot_text(&out, p, screen);
    char *lines = strdup(text_read(&out)), *rest = lines;
    for (char *line; (line = strsep(&rest, "\n"));) {
        require(text_columns(line) <= screen->columns, "every line fits");
        for (const char *s = line; *s; s++)
            require((unsigned char)*s >= 0x20 || (screen->colour && *s == 0x1b), "it is text");
    }
    free(lines);
    text_free(&out);
}

static void check_svg(const plot *p)
{
    textbuf out = { 0 };
    plot_svg(&out, p);
    const char *svg = text_read(&out);
    require(!strstr(svg, "=\"nan") && !strstr(svg, "=\"-nan"), "places are numbers");
    require(!strstr(svg, "=\"inf") && !strstr(svg, "=\"-inf"), "places are finite");
    text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *from = size ? fmemopen((void *)data, size, "r") : NULL;
    run_log *log = run_log_new();
    if (from && log && run_log_read(log, from)) {
        plot *p = plot_make(log);
        const terminal screen = { .file = -1,
                                  .columns = 20 + data[0] % 200,
                                  .rows = 10 + data[size - 1] % 60,
                                  .utf8 = size % 2,
                                  .colour = size / 2 % 2 };
        check_text(p, &screen);
        check_svg(p);
        plot_free(p);
    }
    if (from)
        fclose(from);
    run_log_free(log);
    return 0;
}
