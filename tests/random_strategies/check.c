/*
 * Checking one program, and the alarm that ends one that hangs.
 */
#include "random_strategies/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- hanging ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t watched;
static char last_words[160];

static void too_long(int signal)
{
    (void)signal;
    if (write(STDERR_FILENO, last_words, strlen(last_words)) < 0)
        _exit(4);
    _exit(3);
}

void rs_watch(uint64_t seed, unsigned seconds)
{
    if (!watched) {
        struct sigaction action = { .sa_handler = too_long };
        sigaction(SIGALRM, &action, NULL);
        watched = 1;
    }
    alarm(0);
    snprintf(last_words, sizeof last_words,
             "program %llu hangs: nothing for %u s\nagain: random_strategies_test %llu\n",
             (unsigned long long)seed, seconds, (unsigned long long)seed);
    alarm(seconds);
}

/* ---- checking ----------------------------------------------------------------------------------- */

static char said[8192];

static const char *describe(rs_setting s)
{
    static char text[2][64];
    static int turn;
    turn = !turn;
    snprintf(text[turn], sizeof *text, "%s on %d device%s%s", s.traced ? "traced" : "eager",
             s.devices, s.devices > 1 ? "s" : "", s.sequential ? ", sequential" : "");
    return text[turn];
}

/* The placements of a program; returns how many. */
static int placements(const rs_program *p, rs_ways ways, rs_setting *out)
{
    static const int numbers[] = { 1, 2, 3, 8 };
    int devices[4], distinct = 0, n = 0;
    for (int i = 0; i < 4; i++) {
        int d = numbers[i] < p->replicas ? numbers[i] : p->replicas;
        if (!distinct || d != devices[distinct - 1])
            devices[distinct++] = d;
    }
    int most = devices[distinct - 1], some = devices[p->seed % (uint64_t)distinct];
    if (ways & RS_EAGER) {
        for (int i = 0; i < distinct; i++)
            out[n++] = (rs_setting){ .devices = devices[i] };
        out[n++] = (rs_setting){ .devices = most }; /* again */
        out[n++] = (rs_setting){ .devices = some, .sequential = true };
    }
    if (ways & RS_TRACED && p->traceable) {
        out[n++] = (rs_setting){ .devices = most, .traced = true };
        if (distinct > 1)
            out[n++] = (rs_setting){ .devices = some == most ? 1 : some, .traced = true };
    }
    return n;
}

static void count(const rs_log *log, rs_seen *seen)
{
    for (const char *s = log->text; (s = strstr(s, "\nrun ")); s++)
        seen->well++;
    seen->well++; /* the first line is one, too */
    for (const char *s = log->text; (s = strstr(s, "\n  failed ")); s++)
        seen->failed++, seen->well--;
}

const char *rs_check(uint64_t seed, rs_ways ways, bool loud, rs_seen *seen)
{
    rs_program *p = rs_make(seed);
    rs_setting settings[12];
    rs_log want = { 0 }, first = { 0 };
    const char *wrong = NULL;
    int n = placements(p, ways, settings);
    rs_predict(p, &want);
    count(&want, seen);
    seen->traced += p->traceable;
    if (loud) {
        rs_log text = { 0 };
        rs_dump(p, &text);
        printf("---- program %llu\n%s---- predicted\n%s", (unsigned long long)seed, text.text,
               want.text);
        fflush(stdout);
        rs_log_free(&text);
    }
    for (int i = 0; i < n && !wrong; i++) {
        rs_log got = { 0 };
        rs_execute(p, settings[i], &got);
        if (loud) {
            printf("---- %s\n%s", describe(settings[i]), got.text);
            fflush(stdout);
        }
        /* A nested run is no run of its own in a replay: texts lack its name. */
        bool other_texts = p->fails_nested && settings[i].traced;
        const char *differ = rs_differ(&want, &got, RS_LOOSELY);
        if (differ)
            snprintf(said, sizeof said, "%d replicas, %s: not as predicted, %s", p->replicas,
                     describe(settings[i]), differ);
        else if (i && !other_texts && (differ = rs_differ(&first, &got, RS_EXACTLY)))
            snprintf(said, sizeof said, "%d replicas, %s: not as %s, %s", p->replicas,
                     describe(settings[i]), describe(settings[0]), differ);
        if (differ)
            wrong = said;
        if (i == 0)
            first = got;
        else
            rs_log_free(&got);
    }
    rs_log_free(&first);
    rs_log_free(&want);
    rs_free(p);
    return wrong;
}
