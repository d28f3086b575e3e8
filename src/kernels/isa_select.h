/*
 * The files of src/kernels/cpu that rest on the compiler's vectoriser are built
 * once per instruction set (meson.build gives each build LS__ISA_SUFFIX). Each
 * exports a table of functions; this picks the table for this processor.
 *
 *     // my.h
 *     typedef struct ls__my { void (*twice)(const float *, float *, int64_t); } ls__my;
 *     LS__ISA_TABLE(ls__my, ls__my_table);
 *     // cpu/my.c, compiled three times
 *     const ls__my LS__ISA(ls__my_table) = { twice };
 *     // a caller
 *     LS__PICK(ls__my_table)->twice(x, y, n);
 *
 * The kernels give the same bits in every build (explicit fma, fixed order of
 * sums), so the choice is about speed alone.
 */
#ifndef LS__KERNELS_ISA_SELECT_H
#define LS__KERNELS_ISA_SELECT_H

typedef enum ls__isa_level { LS__ISA_BASE, LS__ISA_AVX2, LS__ISA_AVX512 } ls__isa_level;

/* The best this processor has, capped by the environment variable LOCKSTEP_ISA
 * ("base", "avx2", "avx512"), read once. */
ls__isa_level ls__isa(void);

#if defined(__x86_64__)
#define LS__ISA_TABLE(type, name) extern const type name##_base, name##_avx2, name##_avx512
#define LS__PICK(name)                                                                           \
    (ls__isa() == LS__ISA_AVX512 ? &name##_avx512                                                  \
                                 : (ls__isa() == LS__ISA_AVX2 ? &name##_avx2 : &name##_base))
#else
#define LS__ISA_TABLE(type, name) extern const type name##_base
#define LS__PICK(name) (&name##_base)
#endif

#endif
