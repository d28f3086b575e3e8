/*
 * What tells one program of a traced function from another: the structure of the
 * arguments, dtype, shape and device of every tensor in them, and the context of the
 * call (replica, numeric checks, kernel threads, device). As bytes, so that asking
 * is one comparison.
 */
#ifndef LS__TRACE_SIGNATURE_H
#define LS__TRACE_SIGNATURE_H

#include <lockstep/value.h>

typedef struct ls__signature {
    unsigned char *bytes; /* of the innermost frame, or `few` */
    size_t size, room;
    unsigned char few[512];
} ls__signature;

ls_status ls__signature_of(const ls_value *arguments, ls__signature *out);

/* The same in pieces, for who has other things to put in; a value may be distributed. */
void ls__signature_begin(ls__signature *s);
ls_status ls__signature_number(ls__signature *s, int64_t number);
ls_status ls__signature_value(ls__signature *s, const ls_value *v, bool with_devices);

/* "(f32[64,28,28,1], i32[64])" in a buffer of the frame. */
const char *ls__signature_text(const ls_value *arguments);

#endif
