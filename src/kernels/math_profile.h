/* What may touch the bits of a result on this machine; see ls_math_profile in <lockstep/checkpoint.h>. */
#ifndef LS__KERNELS_MATH_PROFILE_H
#define LS__KERNELS_MATH_PROFILE_H

/* Lives as long as the process. */
const char *ls__math_profile(void);

#endif
