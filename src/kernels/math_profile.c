/*
 * The math profile, as one text. Our own kernels give the same bits with every instruction set, oneDNN's
 * do not, and its blocking looks at the processor's caches: so it names oneDNN, the set it may use,
 * and the processor.
 */
#include "kernels/math_profile.h"

#include <stdio.h>
#include <string.h>

#include "os/thread.h"

#ifdef LS_HAVE_DNNL
#include "kernels/cpu/dnnl_engine.h"
#endif

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static char text[256];

/* The name the processor has for itself, blanks in it made one, and its family, model and stepping: under
 * a hypervisor many have one name. */
static void describe_processor(char out[96])
{
    char name[49] = "", number[32] = "";
#if defined(__x86_64__)
    unsigned most, word[4], unused;
    if (__get_cpuid(0x80000000, &most, &unused, &unused, &unused) && most >= 0x80000004)
        for (unsigned i = 0; i < 3; i++) {
            __get_cpuid(0x80000002 + i, &word[0], &word[1], &word[2], &word[3]);
            memcpy(name + 16 * i, word, 16);
        }
    if (__get_cpuid(1, &word[0], &unused, &unused, &unused))
        snprintf(number, sizeof number, " (%02x-%02x-%02x)",
                 (word[0] >> 8 & 15) + (word[0] >> 20 & 255),
                 (word[0] >> 4 & 15) | (word[0] >> 12 & 240), word[0] & 15);
#endif
    size_t used = 0;
    for (const char *at = name; *at; at++)
        if (*at > ' ' && *at <= '~')
            out[used++] = *at;
        else if (used > 0 && at[1] > ' ')
            out[used++] = ' ';
    out[used] = '\0';
    if (used == 0)
        strcpy(out, "a processor without a name");
    strcat(out, number);
}

static void describe(void)
{
    char library[64] = "no oneDNN", processor[96];
#ifdef LS_HAVE_DNNL
    ls__dnnl_describe(library, sizeof library);
#endif
    describe_processor(processor);
    snprintf(text, sizeof text, "lockstep %s, %s, %s", LS_VERSION, library, processor);
}

const char *ls__math_profile(void)
{
    static ls__once described;
    ls__call_once(&described, describe);
    return text;
}
