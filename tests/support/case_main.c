/*
 * The main function of a test program over the golden files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/case.h"

int case_main(const char *group, void (*test_file)(void **state), int argc, char **argv)
{
    char **paths;
    int count = case_list("golden", &paths), n = 0;
    if (count <= 0) {
        fprintf(stderr, "no golden files: %s\n", case_problem());
        return 1;
    }
    struct CMUnitTest *tests = calloc((size_t)count, sizeof *tests);
    if (!tests)
        return 1;
    for (int i = 0; i < count; i++)
        if (argc < 2 || case_file_of(paths[i], argc - 1, argv + 1))
            tests[n++] = (struct CMUnitTest){ .name = strrchr(paths[i], '/') + 1,
                                              .test_func = test_file,
                                              .initial_state = paths[i] };
    int failed = _cmocka_run_group_tests(group, tests, (size_t)n, NULL, NULL);
    free(tests);
    case_list_free(count, paths);
    return failed;
}
