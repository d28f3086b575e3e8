/*
 * The proof of the same bits can fail: mistakes in src/strategy that depend on the placement, on the
 * order of sums, or on a step that failed are each found by a training of a few steps. This is built
 * from its own copy of src/strategy with LS__DEFECTS (src/strategy/defect.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "same_bits/same_bits.h"
#include "strategy/defect.h"
#include "strategy/strategy_support.h"

int ls__defect = LS__NO_DEFECT;
void (*ls__alter_schedule)(struct ls__schedule *schedule);

static const struct {
    int defect;
    const char *name;
} defects[] = {
    { LS__NO_DEFECT, "none" },
    { LS__WRONG_ORDER, "wrong order" },
    { LS__DRAWS_BY_DEVICE, "draws by device" },
    { LS__MEAN_BY_DEVICES, "mean by devices" },
    { LS__SWAPPED_RESULTS, "swapped results" },
    { LS__WRONG_ARGUMENT, "wrong argument" },
    { LS__LOST_UNDO, "lost undo" },
    { LS__STEP_AFTER_FAILURE, "step after failure" },
};

static void each_is_found(void **state)
{
    (void)state;
    char problem[SB_TEXT], text[SB_TEXT];
    sb_setting s = sb_reference(1, 5, 4);
    s.kind = SB_EXACT;
    sb_record want;
    if (!sb_train(&s, &want, problem))
        fail_msg("%s", problem);
    s.devices = 3;
    s.failure = SB_LATE;
    int missed = 0;
    for (size_t i = 0; i < sizeof defects / sizeof *defects; i++)
        for (s.kind = SB_EXACT; s.kind <= SB_EAGER; s.kind++) {
            ls__defect = defects[i].defect;
            bool same = sb_check(&s, &want, problem);
            ls__defect = LS__NO_DEFECT;
            print_message("%s, %s: %s\n", defects[i].name, s.kind == SB_EAGER ? "eager" : "traced",
                          same ? "not found" : problem);
            if (same != (i == 0)) {
                print_error("  which is wrong; again: one %s\n", sb_text(&s, text));
                missed++;
            }
        }
    sb_record_free(&want);
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { TEST(each_is_found) };
    return RUN_TESTS(tests);
}
