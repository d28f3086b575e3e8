/*
 * The long form of the proof: every recipe, V = 5, 6, 8 and 12, on 1 to 8 devices, with every
 * cross-device operation, `runs` times. Each run takes another size of packs, and with all of
 * SB_PACKINGS runs every placement has met every size. On top: moves, failures, eager steps.
 */
#include <stdio.h>
#include <time.h>

#include "same_bits/same_bits.h"

enum { EAGER_STEPS = 20 };

static const int all_replicas[] = { 5, 6, 8, 12 };
static const int all_devices[] = { 1, 2, 3, 4, 5, 7, 8 };
static const int all_crosses[] = { LS_CROSS_DEVICE_DIRECT, LS_CROSS_DEVICE_HIERARCHICAL,
                                   LS_CROSS_DEVICE_TO_ONE };
#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

typedef struct soak {
    int runs, steps;
    long trainings; /* compared with their reference */
    sb_record want;
    uint64_t digests[SB_RECIPES][COUNT(all_replicas)];
    int agree, differ; /* programs whose eager bits are, are not, those of the traced step */
} soak;

/* Says what differs, and how to see it again. */
static bool report(const sb_setting *s, const char *problem)
{
    char text[SB_TEXT];
    printf("DIFFERENT: %s\n  again: same_bits_test one %s\n", problem, sb_text(s, text));
    fflush(stdout);
    return false;
}

static bool check(soak *k, const sb_setting *s)
{
    char problem[SB_TEXT];
    k->trainings++;
    return sb_check(s, &k->want, problem) || report(s, problem);
}

static bool placements(soak *k, sb_setting s)
{
    for (int run = 0; run < k->runs; run++)
        for (int d = 0; d < COUNT(all_devices) && all_devices[d] <= s.replicas; d++)
            for (int c = 0; c < COUNT(all_crosses); c++) {
                s.devices = all_devices[d];
                s.cross = all_crosses[c];
                sb_set_packing(&s, run + 3 * d + c);
                if (!check(k, &s))
                    return false;
            }
    return true;
}

/* Once a program: replicas that move, steps that fail on the way. */
static bool disturbed(soak *k, sb_setting s)
{
    s.devices = 2;
    s.move = 5;
    if (!check(k, &s))
        return false;
    s.devices = 3;
    s.move = 0;
    for (s.failure = SB_EARLY; s.failure <= SB_LATE; s.failure++)
        if (!check(k, &s))
            return false;
    return true;
}

/* Eager steps are slower, so there are fewer of them; their reference is traced. */
static bool eagerly(soak *k, sb_setting s)
{
    char problem[SB_TEXT];
    s.steps = k->steps < EAGER_STEPS ? k->steps : EAGER_STEPS;
    s.kind = SB_EXACT;
    sb_record_free(&k->want);
    if (!sb_train(&s, &k->want, problem))
        return report(&s, problem);
    s.kind = SB_TRACED;
    if (sb_check(&s, &k->want, problem))
        k->agree++;
    else
        k->differ++;
    s.kind = SB_EAGER;
    for (int i = 0; i < 3; i++) {
        s.devices = (int[]){ 1, 3, s.replicas < 8 ? s.replicas : 8 }[i];
        s.cross = all_crosses[i];
        s.sequential = i == 1;
        s.failure = i == 2 ? SB_LATE : SB_NO_FAILURE;
        if (!check(k, &s))
            return false;
    }
    return true;
}

static bool program(soak *k, int recipe, int which)
{
    sb_setting s = sb_reference(recipe, all_replicas[which], k->steps);
    char problem[SB_TEXT];
    if (!sb_train(&s, &k->want, problem))
        return report(&s, problem);
    k->digests[recipe][which] = sb_digest(&k->want);
    bool ok = sb_finite(&k->want, problem) || report(&s, problem);
    ok = ok && placements(k, s) && disturbed(k, s) && eagerly(k, s);
    sb_record_free(&k->want);
    return ok;
}

static void summary(const soak *k)
{
    printf("\n%-24s", "state after the last step");
    for (int w = 0; w < COUNT(all_replicas); w++)
        printf("  V = %-12d", all_replicas[w]);
    for (int r = 0; r < SB_RECIPES; r++) {
        printf("\n%-24s ", sb_recipe_names[r]);
        for (int w = 0; w < COUNT(all_replicas); w++)
            printf("  %016llx", (unsigned long long)k->digests[r][w]);
    }
    printf("\neager and traced steps have the same bits in %d of %d programs\n", k->agree,
           k->agree + k->differ);
    printf(
        "soak: %ld trainings of %d steps (eager ones: %d) compared with their reference, all the "
        "same\n",
        k->trainings, k->steps, k->steps < EAGER_STEPS ? k->steps : EAGER_STEPS);
}

int sb_soak(int runs, int steps)
{
    soak k = { .runs = runs, .steps = steps };
    time_t began = time(NULL);
    for (int w = 0; w < COUNT(all_replicas); w++)
        for (int r = 0; r < SB_RECIPES; r++) {
            if (!program(&k, r, w))
                return 1;
            printf("%5lld s  V = %-2d  %-24s %016llx  %ld compared\n",
                   (long long)(time(NULL) - began), all_replicas[w], sb_recipe_names[r],
                   (unsigned long long)k.digests[r][w], k.trainings);
            fflush(stdout);
        }
    summary(&k);
    return 0;
}

int sb_one(int count, char *const *arguments)
{
    sb_setting s;
    char problem[SB_TEXT];
    if (!sb_parse(count, arguments, &s, problem)) {
        fprintf(stderr, "same_bits_test one: %s\n", problem);
        return 2;
    }
    sb_setting r = sb_reference_of(&s);
    sb_record want;
    if (!sb_train(&r, &want, problem))
        return report(&r, problem), 1;
    uint64_t digest = sb_digest(&want);
    bool same = sb_check(&s, &want, problem);
    if (same)
        printf("%016llx: the same as on one device\n", (unsigned long long)digest);
    else
        report(&s, problem);
    sb_record_free(&want);
    return !same;
}
