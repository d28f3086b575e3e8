/*
 * --help, from the tables, for people: 80 columns at most, options in their groups with their texts in
 * one column. What does not fit beside its option stands below it.
 */
#include "cli.h"

#include <string.h>

enum { WIDTH = 80, COLUMN = 26 };

/* Bytes that begin a character: as many columns, of the letters we write. */
static int columns(const char *text, int bytes)
{
    int n = 0;
    for (int i = 0; i < bytes; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

const char *cli_fill(FILE *to, const char *text, int at, int indent, int width)
{
    bool first = true;
    while (*text && *text != '\n') {
        int length = (int)strcspn(text, " \n"), wide = columns(text, length);
        if (!first && at + 1 + wide > width) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            putc(' ', to);
            at++;
        }
        fwrite(text, 1, (size_t)length, to);
        at += wide;
        first = false;
        text += length;
        if (*text == '\n' && text[1] == ' ')
            return text + 1;
        text += *text != 0;
    }
    return text;
}

void cli_print_text(FILE *to, const char *text, int indent, int width)
{
    while (*text) {
        if (*text == '\n') {
            putc(*text++, to);
            continue;
        }
        fprintf(to, "%*s", indent, "");
        if (*text == ' ') {
            int length = (int)strcspn(text, "\n");
            fwrite(text, 1, (size_t)length, to);
            text += length + (text[length] == '\n');
        } else {
            text = cli_fill(to, text, indent, indent, width);
        }
        putc('\n', to);
    }
}

/* "  --name N           what it is" */
static void print_row(const char *left, const char *help)
{
    int at = printf("  %s", left);
    if (at > COLUMN - 2)
        at = 0, putchar('\n');
    printf("%*s", COLUMN - at, "");
    cli_fill(stdout, help, COLUMN, COLUMN, WIDTH);
    putchar('\n');
}

static void print_option(const cli_option *o)
{
    char left[64];
    snprintf(left, sizeof left, "%s%s%s", o->name, o->argument ? " " : "",
             o->argument ? o->argument : "");
    print_row(left, o->help);
}

int cli_print_help(const cli *c, const command *its)
{
    printf("usage: %s%s%s [OPTION]...\n\n", c->name, its->arguments ? " " : "",
           its->arguments ? its->arguments : "");
    cli_print_text(stdout, its->about ? its->about : its->help, 0, WIDTH);
    const char *group = NULL;
    for (int i = 0; i < its->n_options; i++) {
        const cli_option *o = &its->options[i];
        if (i == 0 || o->group)
            printf("\n%s:\n", o->group ? o->group : "Options");
        group = o->group ? o->group : group;
        print_option(o);
    }
    if (its->n_options == 0 || group)
        printf("\n%s:\n", group ? "Common options" : "Options");
    for (int i = 0; i < CLI_COMMON; i++)
        print_option(&cli_common[i]);
    if (its->examples) {
        printf("\nExamples:\n");
        cli_print_text(stdout, its->examples, 2, WIDTH);
    }
    return cli_done(c);
}

static void print_commands(const command_table *table, bool like_options)
{
    for (int i = 0; i < table->count; i++) {
        const command *c = table->commands[i];
        if (c->help && (c->name[0] == '-') == like_options) {
            char left[64];
            snprintf(left, sizeof left, "%s%s%s", c->name, c->arguments ? " " : "",
                     c->arguments ? c->arguments : "");
            print_row(left, c->help);
        }
    }
}

int cli_print_table(const cli *c, const command_table *table)
{
    printf("usage: %s COMMAND [OPTION]...\n\n", table->name);
    cli_print_text(stdout, table->what, 0, WIDTH);
    printf("\nCommands:\n");
    print_commands(table, false);
    printf("\nOptions:\n");
    print_commands(table, true);
    print_row("--help", "show this text; each command has one of its own");
    return cli_done(c);
}
