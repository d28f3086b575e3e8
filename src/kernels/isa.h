/*
 * How a file that is compiled once per instruction set names what it exports:
 * LS__ISA(ls__pool_table) is ls__pool_table_avx2 in the AVX2 build. The build
 * gives -DLS__ISA_SUFFIX=_base, _avx2 or _avx512. See isa_select.h for the
 * caller's side.
 */
#ifndef LS__KERNELS_ISA_H
#define LS__KERNELS_ISA_H

#ifndef LS__ISA_SUFFIX
#define LS__ISA_SUFFIX _base
#endif

#define LS__ISA_PASTE2(name, suffix) name##suffix
#define LS__ISA_PASTE(name, suffix) LS__ISA_PASTE2(name, suffix)
#define LS__ISA(name) LS__ISA_PASTE(name, LS__ISA_SUFFIX)

#endif
