/* Names of functions: known ones, static ones, and no functions. */
#include "os/symbol.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int nameless(int x)
{
    return x + 1;
}

static void a_function_of_a_library(void **state)
{
    (void)state;
    char name[64];
    const void *function = dlsym(RTLD_DEFAULT, "bsearch");
    assert_non_null(function);
    assert_ptr_equal(ls__symbol_name(function, name, sizeof name), name);
    assert_string_equal(name, "bsearch");
}

/* Nothing in between has the name of what comes before it. */
static void inside_a_function(void **state)
{
    (void)state;
    char name[64];
    const char *function = dlsym(RTLD_DEFAULT, "bsearch");
    ls__symbol_name(function + 1, name, sizeof name);
    assert_non_null(strstr(name, "+0x"));
    assert_null(strstr(name, "bsearch"));
}

static void a_static_function(void **state)
{
    (void)state;
    char name[64], want[64];
    const void *function = (const void *)(uintptr_t)nameless;
    Dl_info info;
    assert_true(dladdr(function, &info));
    snprintf(want, sizeof want, "os_symbol_test+%#zx",
             (size_t)((uintptr_t)function - (uintptr_t)info.dli_fbase));
    assert_string_equal(ls__symbol_name(function, name, sizeof name), want);
}

static void no_function(void **state)
{
    (void)state;
    char name[64];
    assert_string_equal(ls__symbol_name((const void *)0x10, name, sizeof name), "0x10");
}

static void little_room(void **state)
{
    (void)state;
    char name[4];
    assert_string_equal(ls__symbol_name(dlsym(RTLD_DEFAULT, "bsearch"), name, sizeof name), "bse");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_of_a_library),
        cmocka_unit_test(inside_a_function),
        cmocka_unit_test(a_static_function),
        cmocka_unit_test(no_function),
        cmocka_unit_test(little_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
