/* What the build says of its libraries is what it was compiled with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include <lockstep.h>

/* Whether the build has it; false too if it is not in the list. */
static bool has(const char *wanted)
{
    const char *name, *version;
    for (int i = 0; (name = ls_build_library(i, &version)); i++)
        if (strcmp(name, wanted) == 0)
            return version != NULL;
    return false;
}

static void versions_are_there_for_what_was_found(void **state)
{
    (void)state;
    const char *name, *version;
    int count = 0;
    for (; (name = ls_build_library(count, &version)); count++) {
        assert_true(name[0]);
        assert_true(!version || isdigit((unsigned char)version[0]));
    }
    assert_int_equal(count, 8);
    assert_true(has("jansson")); /* is always needed */
#ifdef LS_HAVE_DNNL
    assert_true(has("oneDNN"));
#else
    assert_false(has("oneDNN"));
#endif
#ifdef LS_HAVE_HWLOC
    assert_true(has("hwloc"));
#else
    assert_false(has("hwloc"));
#endif
#ifdef LS_HAVE_ISAL
    assert_true(has("isa-l"));
#else
    assert_false(has("isa-l"));
#endif
}

static void beyond_the_list_there_is_none(void **state)
{
    (void)state;
    const char *version = "kept";
    assert_null(ls_build_library(-1, &version));
    assert_null(ls_build_library(8, &version));
    assert_string_equal(version, "kept");
    assert_string_equal(ls_build_library(0, NULL), "oneDNN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_there_for_what_was_found),
        cmocka_unit_test(beyond_the_list_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
