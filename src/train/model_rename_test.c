/* A model's other name: taken when it can be one, else nothing changes. */
#include <lockstep/model.h>

#include <string.h>

#include "tensor/test_support.h"

static void refused(ls_model *m, const char *name, const char *word)
{
    assert_int_equal(ls_model_rename(m, name), LS_INVALID);
    assert_non_null(strstr(ls_error_report(), word));
    assert_string_equal(ls_model_name(m), "mine.c");
}

static void models_are_renamed(void **state)
{
    (void)state;
    char longest[122];
    memset(longest, 'x', sizeof longest);
    longest[121] = '\0';
    ls_model *m = ls_model_new(LS_MODEL(.name = "small", .input = "f32[4]"));
    assert_int_equal(ls_model_rename(m, "mine.c"), LS_OK);
    assert_string_equal(ls_model_name(m), "mine.c");
    refused(m, NULL, "ls_model_rename: the name is NULL");
    refused(m, "", "1 to 120 bytes");
    refused(m, longest, "1 to 120 bytes");
    refused(m, "a\nb", "control character");
    longest[120] = '\0';
    assert_int_equal(ls_model_rename(m, longest), LS_OK);
    assert_string_equal(ls_model_name(m), longest);
    assert_int_equal(ls_model_rename(m, ls_model_name(m)), LS_OK); /* its own */
    assert_string_equal(ls_model_name(m), longest);
    ls_model_free(m);
    assert_int_equal(ls_model_rename(NULL, "x"), LS_INVALID);
    assert_string_equal(ls_error_report(), "LS_INVALID: ls_model_rename: the model is NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(models_are_renamed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
