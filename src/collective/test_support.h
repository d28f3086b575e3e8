/*
 * What unit tests of src/collective share. A test includes this instead of cmocka.h and what that
 * wants included before it.
 */
#ifndef LS__COLLECTIVE_TEST_SUPPORT_H
#define LS__COLLECTIVE_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/sanitized.h"

/* 1 when a sanitizer makes everything several times slower: then tests go less far. */
#define SANITIZED LS__SANITIZED

#endif
