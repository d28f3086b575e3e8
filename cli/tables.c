/*
 * A walk through the tables of commands. main.c has the root of them.
 */
#include "tables.h"

#include <string.h>

enum { LONGEST = 128 };

static void visit_below(const char *path, const command *its, cli_visit *visit, void *user)
{
    visit(path, its, user);
    for (int i = 0; its->commands && i < its->commands->count; i++) {
        const command *next = its->commands->commands[i];
        char name[LONGEST];
        if (!next->help || next->name[0] == '-')
            continue;
        snprintf(name, sizeof name, "%s %s", path, next->name);
        visit_below(name, next, visit, user);
    }
}

void cli_each(cli_visit *visit, void *user)
{
    visit_below(cli_root.name, &cli_root, visit, user);
}

void cli_each_word(const char *words, cli_word *visit, void *user)
{
    while (*words) {
        size_t length = strcspn(words, " ");
        char word[LONGEST];
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (length > 0)
            visit(word, user);
        words += length + (words[length] == ' ');
    }
}

static void add_value(const char *word, void *user)
{
    cli_values *v = user;
    if (strcmp(word, "FILE") == 0)
        v->files = true;
    else if (strcmp(word, "DIR") == 0)
        v->directories = true;
    else {
        size_t used = strlen(v->words);
        snprintf(v->words + used, sizeof v->words - used, "%s%s", used ? " " : "", word);
    }
}

cli_values cli_values_of(const char *values)
{
    cli_values v = { 0 };
    cli_each_word(values ? values : "", add_value, &v);
    return v;
}
