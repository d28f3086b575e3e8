/*
 * Checking one program: what it gives, in every setting; and the alarm that ends one that hangs.
 */
#include "random_datasets/check.h"

#include <glob.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- hanging -------------------------------------------------------------------------------- */

static volatile sig_atomic_t watched;
static char last_words[160];

static void too_long(int signal)
{
    (void)signal;
    if (write(STDERR_FILENO, last_words, strlen(last_words)) < 0)
        _exit(4);
    _exit(3);
}

void rd_watch(uint64_t seed, unsigned seconds)
{
    if (!watched) {
        struct sigaction action = { .sa_handler = too_long };
        sigaction(SIGALRM, &action, NULL);
        watched = 1;
    }
    alarm(0);
    snprintf(last_words, sizeof last_words,
             "dataset %llu hangs: nothing for %u s\nagain: random_datasets_test %llu\n",
             (unsigned long long)seed, seconds, (unsigned long long)seed);
    alarm(seconds);
}

/* ---- helpers -------------------------------------------------------------------------------- */

uint64_t rd_case_draw(rd_case *c, uint64_t below)
{
    c->state = rd_mix(c->state, 2);
    return c->state % below;
}

const char *rd_wrong(const char *format, ...)
{
    static char said[4096];
    char text[sizeof said]; /* what was said before may be a part of it */
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    memcpy(said, text, sizeof said);
    return said;
}

void rd_remove_caches(void)
{
    glob_t found;
    if (!glob("cache-*", 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++)
            remove(found.gl_pathv[i]);
    globfree(&found);
}

static bool has_compression(void)
{
    static int has = -1;
    if (has < 0)
        LS_FRAME {
            ls_value *v;
            ls_iterator *it =
                ls_iterate(ls_tfrecords(LS_FILES("g0.rec"), LS_RECORDS(.compression = LS_GZIP)));
            has = !it || ls_next(it, &v) ? ls_error() != LS_UNSUPPORTED : 1;
            ls_iterator_free(it);
            ls_error();
        }
    return has;
}

/* ---- orders of shuffles --------------------------------------------------------------------- */

/* A twin's run: what it gives is not compared, but noted in the orders. */
static const char *learn(rd_case *c, rd_orders *orders)
{
    const char *wrong = NULL;
    LS_FRAME {
        ls_dataset *d = rd_build(c->p, (rd_setting){ .learn = orders });
        ls_iterator *it = d ? ls_iterate(d) : NULL;
        if (!it)
            wrong = rd_wrong("the twin could not be built: %s", ls_error_report());
        for (int epoch = 0; epoch < RD_EPOCHS && !wrong; epoch++) {
            rd_lines lines = { 0 };
            orders->epoch = epoch;
            memset(orders->openings, 0, sizeof orders->openings);
            if (epoch && ls_rewind(it))
                wrong = rd_wrong("the twin could not be rewound: %s", ls_error_report());
            rd_lines_read(&lines, it, INT32_MAX);
            rd_lines_free(&lines);
        }
        ls_iterator_free(it);
    }
    return wrong ? wrong : rd_orders_wrong(c->p, orders);
}

/* ---- straight on ---------------------------------------------------------------------------- */

static const char *compare(rd_case *c, ls_iterator *it, int epoch)
{
    rd_lines got = { 0 };
    rd_lines_read(&got, it, INT32_MAX);
    const char *differ = rd_lines_differ(&c->want[epoch], 0, &got);
    if (!differ && rd_lines_ended(&got)) { /* the end, again and again */
        rd_lines more = { 0 };
        rd_lines_read(&more, it, 1);
        if (more.n != 1 || !rd_lines_ended(&more))
            differ = "something follows the end";
        rd_lines_free(&more);
    }
    rd_lines_free(&got);
    return differ;
}

/* One iterator, rewound; or one for each epoch; or (setting 2) both at once. */
static const char *straight(rd_case *c, int threads)
{
    const char *differ = NULL;
    ls_dataset *d = rd_build(c->p, (rd_setting){ .threads = threads });
    ls_iterator *it = d ? ls_iterate(d) : NULL;
    if (!it)
        return rd_wrong("could not be built: %s", ls_error_report());
    if (threads == 2 && c->epochs > 1) {
        rd_lines got[2] = { { 0 }, { 0 } };
        ls_iterator *other = ls_iterate(d);
        for (int i = 0; i < 400; i++) {
            int who = (int)rd_case_draw(c, 2);
            if (!rd_lines_ended(&got[who]))
                rd_lines_read(&got[who], who ? other : it, 1 + (int)rd_case_draw(c, 4));
        }
        differ = rd_lines_differ(&c->want[0], 0, &got[0]);
        if (!differ)
            differ = rd_lines_differ(&c->want[1], 0, &got[1]);
        ls_iterator_free(other);
        rd_lines_free(&got[0]);
        rd_lines_free(&got[1]);
    }
    for (int epoch = 0; epoch < c->epochs && !differ && threads != 2; epoch++) {
        if (epoch && threads == 0) {
            if (ls_rewind(it))
                differ = ls_error_report();
        } else if (epoch) {
            ls_iterator_free(it);
            it = ls_iterate(d);
        }
        if (!differ)
            differ = compare(c, it, epoch);
        if (differ)
            differ = rd_wrong("epoch %d, %s", epoch, differ);
    }
    ls_iterator_free(it);
    return differ;
}

/* Freed in the middle, while others make elements ahead. */
static const char *leave(rd_case *c)
{
    for (int i = 0; i < 3; i++)
        LS_FRAME {
            rd_lines got = { 0 };
            ls_iterator *it = ls_iterate(rd_build(c->p, (rd_setting){ .threads = 1 + i % 2 }));
            rd_lines_read(&got, it, (int)rd_case_draw(c, 1 + (uint64_t)c->want[0].n));
            ls_iterator_free(it);
            const char *differ = rd_lines_differ(&c->want[0], 0, &got);
            rd_lines_free(&got);
            if (differ)
                return rd_wrong("left early: %s", differ);
        }
    return NULL;
}

const char *rd_check_straight(rd_case *c)
{
    for (int threads = 0; threads < 3; threads++)
        LS_FRAME {
            const char *wrong = straight(c, threads);
            if (wrong)
                return rd_wrong("setting %d: %s", threads, wrong);
        }
    return leave(c);
}

/* ---- one program ---------------------------------------------------------------------------- */

static void count(rd_case *c, const rd_node *d)
{
    c->seen->codes[d->code]++;
    for (int i = 0; i < d->n_in; i++)
        count(c, d->in[i]);
    if (d->body)
        count(c, d->body);
}

static bool predict(rd_case *c, rd_orders *orders, const char **why)
{
    bool ok = true;
    rd_memory_free(c->memory);
    c->memory = rd_memory_new();
    c->epochs = c->p->whole ? 1 : RD_EPOCHS;
    for (int epoch = 0; epoch < RD_EPOCHS && ok; epoch++) {
        rd_lines_free(&c->want[epoch]);
        ok = rd_predict(c->p, c->memory, orders, epoch, &c->want[epoch], why);
        if (ok && epoch == 0 && c->p->whole && rd_lines_ended(&c->want[0]))
            c->epochs = RD_EPOCHS;
        if (c->epochs == 1)
            break;
    }
    return ok;
}

static void print(const rd_case *c)
{
    rd_text text = { 0 };
    rd_dump(c->p, &text);
    printf("---- dataset %llu\n%s", (unsigned long long)c->p->seed, text.at);
    for (int epoch = 0; epoch < c->epochs; epoch++) {
        printf("---- epoch %d\n", epoch);
        for (int i = 0; i < c->want[epoch].n; i++)
            printf("%s\n", c->want[epoch].line[i]);
    }
    fflush(stdout);
    rd_text_free(&text);
}

static const char *check_all(rd_case *c, bool loud)
{
    const char *why = NULL, *wrong = NULL;
    rd_orders orders = { 0 };
    if (!predict(c, NULL, &why) || (c->p->compressed && !has_compression())) {
        c->seen->left_out++;
        return NULL;
    }
    if (loud)
        print(c);
    if (c->p->n_shuffles)
        wrong = learn(c, &orders);
    if (!wrong && c->p->n_shuffles && !predict(c, &orders, &why))
        wrong = why;
    rd_orders_free(&orders);
    if (wrong == rd_few_elements || wrong == rd_too_much_work) {
        c->seen->left_out++;
        return NULL;
    }
    if (loud && c->p->n_shuffles)
        print(c);
    if (!wrong)
        wrong = rd_check_known(c);
    if (!wrong)
        wrong = rd_check_straight(c);
    if (!wrong)
        wrong = rd_check_positions(c);
    if (!wrong)
        wrong = rd_check_split(c);
    count(c, c->p->root);
    c->seen->programs++;
    c->seen->elements += c->want[0].elements;
    c->seen->failures += c->want[0].n - c->want[0].elements - rd_lines_ended(&c->want[0]);
    c->seen->shuffles += c->p->n_shuffles;
    return wrong;
}

const char *rd_check(uint64_t seed, bool loud, rd_seen *seen)
{
    rd_case c = { .p = rd_make(seed), .seen = seen, .state = seed };
    const char *wrong = NULL;
    size_t before, after, peak;
    ls_memory(&before, &peak);
    LS_FRAME {
        wrong = check_all(&c, loud);
    }
    ls_memory(&after, &peak);
    if (!wrong && ls_error_pending())
        wrong = rd_wrong("an error is left: %s", ls_error_report());
    if (!wrong && before != after)
        wrong = rd_wrong("%zu bytes of tensors are left", after - before);
    ls_error();
    for (int i = 0; i < RD_EPOCHS; i++)
        rd_lines_free(&c.want[i]);
    rd_memory_free(c.memory);
    rd_free(c.p);
    rd_remove_caches();
    return wrong;
}
