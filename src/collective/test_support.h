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

/* 1 when a sanitizer makes everything several times slower: then tests go less far. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
