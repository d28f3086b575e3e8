/*
 * The data sets that `train` uses when none is named. All of Fashion-MNIST is read, which
 * takes a moment: what is damaged is found here and not in the middle of a training.
 */
#include <lockstep.h>
#include <string.h>

#include "doctor.h"

/* What went wrong, without the name of the function that says it. */
static const char *what_went_wrong(void)
{
    const char *text = ls_error_text(), *rest = strstr(text, ": ");
    return rest && strncmp(text, "ls_", 3) == 0 ? rest + 2 : text;
}

static void check_fashion_mnist(doctor *d)
{
    int64_t images[2] = { 0 };
    LS_FRAME
        for (int i = 0; i < 2; i++) {
            ls_value *both = ls_read_fashion_mnist(i == 0 ? "train" : "test");
            images[i] = both ? ls_dim(ls_item(both, 0), 0) : 0;
        }
    ls_status code = ls_error();
    if (code == LS_OK)
        doctor_say(d, DOCTOR_OK, "Fashion-MNIST", "", "%lld and %lld images were read",
                   (long long)images[0], (long long)images[1]);
    else if (code == LS_NOT_FOUND || code == LS_UNSUPPORTED)
        doctor_say(d, DOCTOR_WARN, "Fashion-MNIST", ls_error_hint(), "%s", what_went_wrong());
    else
        doctor_say(d, DOCTOR_FAIL, "Fashion-MNIST",
                   "install Debian's dataset-fashion-mnist anew, or fetch its files again", "%s",
                   what_went_wrong());
}

static void check_bible(doctor *d)
{
    char path[4096];
    if (doctor_find_program("bible", path, sizeof path))
        doctor_say(d, DOCTOR_OK, "text for gpt", "", "%s prints it", path);
    else
        doctor_say(d, DOCTOR_WARN, "text for gpt",
                   "install Debian's bible-kjv, or give 'train gpt' a text: --data FILE",
                   "there is no program 'bible' on PATH");
}

static doctor_check *const checks[] = { check_fashion_mnist, check_bible };

const doctor_group doctor_data = { "Data sets", sizeof checks / sizeof checks[0], checks };
