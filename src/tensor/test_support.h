/*
 * What unit tests of src/tensor and the layers above it share. A test includes
 * this instead of cmocka.h and what that wants included before it.
 */
#ifndef LS__TENSOR_TEST_SUPPORT_H
#define LS__TENSOR_TEST_SUPPORT_H

#include <lockstep/tensor.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Before a test: no error of the one before it. */
static inline int clean(void **state)
{
    (void)state;
    ls_error();
    return 0;
}

/* The last call failed with `want` and said something; takes the error. */
static inline void failed(ls_status want)
{
    if (ls_error_pending() != want)
        fail_msg("wanted %s, got %s", ls_status_name(want), ls_error_report());
    assert_true(strlen(ls_error_text()) > 0);
    ls_error();
}

/* Bytes of tensor memory in use. */
static inline size_t memory(void)
{
    size_t now, peak;
    ls_memory(&now, &peak);
    return now;
}

#endif
