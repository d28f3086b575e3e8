/*
 * The data sets that `train` uses when none is named. The smaller half of Fashion-MNIST is read, so that
 * what is damaged is found; of the larger half the library says when it is used.
 */
#include <lockstep.h>

#include "doctor.h"

static void check_fashion_mnist(doctor *d)
{
    int64_t images = 0;
    LS_FRAME {
        ls_value *both = ls_read_fashion_mnist("test");
        if (both)
            images = ls_dim(ls_item(both, 0), 0);
    }
    ls_status code = ls_error();
    if (code == LS_OK)
        doctor_say(d, DOCTOR_OK, "Fashion-MNIST", "", "%lld test images were read",
                   (long long)images);
    else if (code == LS_NOT_FOUND || code == LS_UNSUPPORTED)
        doctor_say(d, DOCTOR_WARN, "Fashion-MNIST", ls_error_hint(), "%s", ls_error_text());
    else
        doctor_say(d, DOCTOR_FAIL, "Fashion-MNIST",
                   ls_error_hint()[0] ? ls_error_hint() : "install dataset-fashion-mnist anew",
                   "%s", ls_error_text());
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
