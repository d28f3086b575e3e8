/*
 * export.h: how a public name is marked. Nothing here is called; every other
 * header includes it.
 */
#ifndef LOCKSTEP_EXPORT_H
#define LOCKSTEP_EXPORT_H

#ifdef __cplusplus
#define LS_BEGIN_DECLS extern "C" {
#define LS_END_DECLS }
#else
#define LS_BEGIN_DECLS
#define LS_END_DECLS
#endif

#if defined(__GNUC__)
#define LS_API __attribute__((visibility("default")))
#define LS_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#else
#define LS_API
#define LS_PRINTF(format_at, args_at)
#endif

/* A name of its own for each line, so that blocks like LS_FRAME nest. */
#define LS__JOIN_(a, b) a##b
#define LS__JOIN(a, b) LS__JOIN_(a, b)
#define LS__UNIQUE(prefix) LS__JOIN(prefix, __LINE__)

#endif
