/*
 * A run that is stopped, saved, and goes on in other objects, on as many devices or on others, has the
 * bits of one that was never stopped: weights, slots, counters, copies of replicas, and where the
 * input stands.
 */
#include "train/checkpoint_test_support.h"

enum { STEPS = 17 }; /* an epoch has six */

static digest never_stopped(void)
{
    run r;
    begin(&r, "/cpu:0");
    train(&r, STEPS);
    digest d = state_of(&r);
    end(&r);
    return d;
}

static void save_after(const char *devices, int steps)
{
    run r;
    begin(&r, devices);
    train(&r, steps);
    ls_checkpoint c = checkpoint_of(&r);
    went_well(ls_checkpoint_save(in_dir("x.safetensors"), &c));
    end(&r);
}

static void same_bits_on_any_placement(void **state)
{
    (void)state;
    static const char *const devices[] = { "/cpu:0", "/cpu:0,/cpu:1" };
    const digest want = never_stopped();
    for (int before = 0; before < 2; before++)
        for (int after = 0; after < 2; after++)
            for (int steps = 1; steps <= STEPS; steps += 5) {
                save_after(devices[before], steps);
                run r;
                begin(&r, devices[after]);
                ls_checkpoint c = checkpoint_of(&r);
                went_well(ls_checkpoint_restore(in_dir("x.safetensors"), &c));
                assert_null(c.extra);
                assert_int_equal(ls_steps(r.s), steps);
                assert_int_equal(ls_iterations(r.o), steps);
                train(&r, STEPS - steps);
                assert_string_equal(state_of(&r).text, want.text);
                end(&r);
            }
}

/* Into objects that have trained already, with a step that was traced. */
static void back_to_where_it_was(void **state)
{
    (void)state;
    run r;
    begin(&r, "/cpu:0,/cpu:1");
    ls_checkpoint c = checkpoint_of(&r);
    train(&r, 4);
    const digest then = state_of(&r);
    went_well(ls_checkpoint_save(in_dir("x.safetensors"), &c));
    train(&r, STEPS - 4);
    const digest want = state_of(&r);
    for (int i = 0; i < 2; i++) {
        ls_iterator_free(r.input); /* epochs are counted by the dataset: a new one */
        LS_FRAME
            c.input = r.input = ls_iterate(ls_distribute(r.s, rows()));
        went_well(ls_checkpoint_restore(in_dir("x.safetensors"), &c));
        assert_string_equal(state_of(&r).text, then.text);
        train(&r, STEPS - 4);
        assert_string_equal(state_of(&r).text, want.text);
    }
    assert_int_equal(ls_function_traces(r.step), 2); /* whole batches, and the last of an epoch */
    end(&r);
    assert_string_equal(never_stopped().text, want.text);
}

/* Stopped between two parts of a batch: what every replica has summed up goes on. */
static void between_parts(void **state)
{
    (void)state;
    digest end_of[2];
    for (int stopped = 0; stopped < 2; stopped++) {
        run r;
        begin_with(&r, "/cpu:0,/cpu:1", V, small_adam(true));
        ls_function *part = ls_trace(part_step, &r);
        ls_checkpoint c = checkpoint_of(&r);
        if (!stopped) {
            train(&r, 3);
            train_by(&r, part, 2);
            went_well(ls_checkpoint_save(in_dir("x.safetensors"), &c));
        } else {
            went_well(ls_checkpoint_restore(in_dir("x.safetensors"), &c));
        }
        train_by(&r, part, 1);
        train(&r, 2);
        end_of[stopped] = state_of(&r);
        ls_function_free(part);
        end(&r);
    }
    assert_string_equal(end_of[0].text, end_of[1].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(same_bits_on_any_placement, clean),
        cmocka_unit_test_setup(back_to_where_it_was, clean),
        cmocka_unit_test_setup(between_parts, clean),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
