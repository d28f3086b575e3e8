/* What a function of the program is called, for errors that name one. */
#ifndef LS__OS_SYMBOL_H
#define LS__OS_SYMBOL_H

#include <stddef.h>

/* Writes "name" when the linker kept it (static functions have none), else "program+0x1234":
 * the file and where in it, else the address. Cut at `size`. Returns `out`. */
const char *ls__symbol_name(const void *function, char *out, size_t size);

#endif
