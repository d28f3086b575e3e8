/*
 * What the operators on pictures share. A picture is [height, width, channels];
 * a batch has an axis before these, so the axes are counted from the end.
 */
#ifndef LS__OPS_PICTURE_H
#define LS__OPS_PICTURE_H

#include "dispatch/call.h"

/* LS_SHAPE unless the input is a picture or a batch of them. */
ls_status ls__want_picture(const ls_call *c, int input);

/* The same of an argument `x`, for functions made of several rows. */
ls_status ls__check_picture(const char *who, const ls_tensor *x);

/* An i64 vector, to be filled in. */
ls_tensor *ls__indices_new(const char *who, int64_t count);

#endif
