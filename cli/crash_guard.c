/*
 * The handler of crashes. It may run anywhere, so it only reads what was prepared, puts a line together on
 * its own stack, writes it and leaves; it calls nothing but write, gettid, pause, _exit and bar_restore.
 *
 * What it reads is set on one thread: texts are written before the pointer to them is (release), and the
 * one it may just be reading is not touched, as they alternate.
 */
#include "crash_guard.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "bar.h"

enum { MOST_TEXT = 4400, STACK = 1 << 16 };

/* The same for people and inside a JSON string. */
typedef struct told {
    char plain[MOST_TEXT], json[MOST_TEXT];
} told;

static struct {
    char who[128]; /* "lockstep train: " */
    told what;     /* "the model mine.c" */
    told saved[2];
    int next; /* of `saved` */
    bool json;
    _Atomic(const told *) checkpoint;
    _Atomic(const char *) where;
    _Atomic int64_t step;  /* 0: see `where` */
    atomic_int crashed_on; /* thread */
    struct sigaction before[5];
    bool installed, at_exit;
    _Alignas(64) char stack[STACK]; /* a sanitizer wants it so */
} guard;

static const struct {
    int number;
    const char *name;
} signals[] = { { SIGSEGV, "SIGSEGV" },
                { SIGBUS, "SIGBUS" },
                { SIGFPE, "SIGFPE" },
                { SIGILL, "SIGILL" },
                { SIGABRT, "SIGABRT" } };

enum { SIGNALS = sizeof signals / sizeof signals[0] };

/* ---- the line ----------------------------------------------------------------------------------- */

typedef struct line {
    char text[4 * MOST_TEXT];
    size_t count;
} line;

static void add(line *l, const char *text)
{
    while (*text && l->count < sizeof l->text)
        l->text[l->count++] = *text++;
}

static void add_number(line *l, int64_t n)
{
    char digits[24], *at = digits + sizeof digits;
    *--at = '\0';
    do
        *--at = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    add(l, at);
}

static void add_event(line *l, int number, const char *what)
{
    const char *name = "?";
    for (int i = 0; i < SIGNALS; i++)
        if (signals[i].number == number)
            name = signals[i].name;
    add(l, what);
    add(l, number ? " crashed (" : " ended the program (");
    add(l, number ? name : "exit");
    add(l, ")");
    const int64_t step = atomic_load_explicit(&guard.step, memory_order_relaxed);
    const char *where = atomic_load_explicit(&guard.where, memory_order_acquire);
    if (step > 0) {
        add(l, " in step ");
        add_number(l, step);
    } else if (where) {
        add(l, " ");
        add(l, where);
    }
}

static void add_saved(line *l, const char *path)
{
    add(l, "the last checkpoint, ");
    add(l, path);
    add(l, ", is whole");
}

static void write_line(int fd, const line *l)
{
    for (size_t done = 0; done < l->count;) {
        ssize_t n = write(fd, l->text + done, l->count - done);
        if (n <= 0)
            return;
        done += (size_t)n;
    }
}

static void tell(int number)
{
    line l = { .count = 0 };
    const told *saved = atomic_load_explicit(&guard.checkpoint, memory_order_acquire);
    bar_restore();
    add(&l, guard.who);
    add_event(&l, number, guard.what.plain);
    if (saved) {
        add(&l, "; ");
        add_saved(&l, saved->plain);
    }
    add(&l, "\n");
    write_line(2, &l);
    if (!guard.json)
        return;
    l.count = 0;
    add(&l, "{\"event\":\"error\",\"code\":\"LS_INVALID\",\"text\":\"");
    add_event(&l, number, guard.what.json);
    add(&l, "\",\"hint\":\"");
    if (saved)
        add_saved(&l, saved->json);
    add(&l, "\"}\n");
    write_line(1, &l);
}

/* Of several threads that crash the first one tells it; one that crashes here is beyond help. */
static void handle(int number)
{
    int nobody = 0;
    const int self = (int)gettid();
    if (!atomic_compare_exchange_strong(&guard.crashed_on, &nobody, self)) {
        if (nobody == self)
            _exit(EXIT_FAILED);
        for (;;)
            pause();
    }
    tell(number);
    _exit(EXIT_FAILED);
}

/* Somebody called exit, and it was not the command: its work is not done. */
static void at_exit(void)
{
    if (!guard.installed)
        return;
    tell(0);
    _exit(EXIT_FAILED);
}

/* ---- what is known ------------------------------------------------------------------------------- */

/* Inside quotes, as json.c writes it; what does not fit is left out. */
static void escape(const char *text, char *out)
{
    const size_t head = strlen("{\"k\":\""), tail = strlen("\"}\n");
    char *written = NULL;
    size_t n = 0;
    out[0] = '\0';
    FILE *to = open_memstream(&written, &n);
    if (!to)
        return;
    json j = json_open(to);
    json_text(&j, "k", text);
    json_close(&j);
    if (fclose(to) == 0 && n >= head + tail && n - head - tail < MOST_TEXT) {
        memcpy(out, written + head, n - head - tail);
        out[n - head - tail] = '\0';
    }
    free(written);
}

static void set(told *t, const char *text)
{
    snprintf(t->plain, sizeof t->plain, "%s", text);
    cli_without_control(t->plain);
    escape(t->plain, t->json);
}

void crash_guard_where(const char *where)
{
    atomic_store_explicit(&guard.step, 0, memory_order_relaxed);
    atomic_store_explicit(&guard.where, where, memory_order_release);
}

void crash_guard_step(int64_t step)
{
    atomic_store_explicit(&guard.step, step, memory_order_relaxed);
}

void crash_guard_saved(const char *path)
{
    told *t = NULL;
    if (path) {
        t = &guard.saved[guard.next ^= 1];
        set(t, path);
    }
    atomic_store_explicit(&guard.checkpoint, t, memory_order_release);
}

void crash_guard_install(const cli *c, const char *what)
{
    snprintf(guard.who, sizeof guard.who, "%s: ", c->name);
    set(&guard.what, what);
    guard.json = c->json;
    crash_guard_where(NULL);
    crash_guard_saved(NULL);
    if (!guard.at_exit)
        guard.at_exit = atexit(at_exit) == 0;
    guard.installed = true;
    const stack_t stack = { .ss_sp = guard.stack, .ss_size = sizeof guard.stack };
    sigaltstack(&stack, NULL);
    struct sigaction action = { .sa_handler = handle, .sa_flags = SA_ONSTACK };
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i].number, &action, &guard.before[i]);
}

bool crash_guard_is_on(void)
{
    return guard.installed;
}

void crash_guard_remove(void)
{
    if (!guard.installed)
        return;
    guard.installed = false;
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i].number, &guard.before[i], NULL);
    const stack_t none = { .ss_flags = SS_DISABLE };
    sigaltstack(&none, NULL);
}
