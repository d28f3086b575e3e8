/*
 * Plots leave the program: to a file, which is there as a whole or not at all, since somebody may look
 * at it while it is written again; and to a terminal.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plot.h"

static bool write_whole(const char *path, const textbuf *bytes)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    bool fine = fwrite(text_read(bytes), 1, bytes->length, file) == bytes->length;
    int why = errno;
    if (fclose(file) != 0 && fine) {
        fine = false;
        why = errno;
    }
    if (!fine)
        unlink(path);
    errno = why;
    return fine;
}

bool plot_save(const plot *p, const char *path)
{
    textbuf svg = { 0 }, beside = { 0 };
    if (p)
        plot_svg(&svg, p);
    text_format(&beside, "%s.%ld.part", path, (long)getpid());
    bool fine = p && !svg.failed && !beside.failed;
    if (!fine)
        errno = ENOMEM;
    fine = fine && write_whole(text_read(&beside), &svg);
    if (fine && rename(text_read(&beside), path) != 0) {
        int why = errno;
        unlink(text_read(&beside));
        errno = why;
        fine = false;
    }
    text_free(&svg);
    text_free(&beside);
    return fine;
}

void plot_print(const plot *p, FILE *to, const terminal *screen)
{
    textbuf lines = { 0 };
    plot_text(&lines, p, screen);
    fputs(text_read(&lines), to);
    text_free(&lines);
}
