/*
 * LS__SANITIZED: 1 in a build with the address or thread sanitizer. Such a build keeps no stock of memory
 * of its own, so that the sanitizer sees every misuse; and tests do fewer rounds.
 */
#ifndef LS__BASE_SANITIZED_H
#define LS__BASE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LS__SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LS__SANITIZED 1
#endif
#endif
#ifndef LS__SANITIZED
#define LS__SANITIZED 0
#endif

#endif
