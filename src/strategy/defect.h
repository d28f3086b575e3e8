/*
 * Defects on purpose, to see that the tests find them. In the library LS__DEFECT is false and
 * costs nothing; tests/random_defects_test.c is built from its own copy of these sources with
 * LS__DEFECTS defined, and switches them on one by one.
 */
#ifndef LS__STRATEGY_DEFECT_H
#define LS__STRATEGY_DEFECT_H

typedef enum ls__defect_name {
    LS__NO_DEFECT,
    LS__LOST_CANCEL,       /* replicas that wait are not told of another's failure */
    LS__SWAPPED_RESULTS,   /* grouping exchanges the first two replicas */
    LS__WRONG_ORDER,       /* sums go from the last replica to the first */
    LS__WRONG_ARGUMENT,    /* a replica gets its neighbour's component */
    LS__LOST_UNDO,         /* a failed run keeps what it wrote */
    LS__HIGHEST_ERROR,     /* the highest replica's error is reported */
    LS__MERGED_TWICE,      /* the merge function is called twice */
    LS__FIRST_FOR_ALL,     /* every replica gets replica 0's part of a merge */
    LS__LOST_ERROR,        /* an error that a replica left unread is forgotten */
    LS__MEAN_BY_DEVICES,   /* the mean divides by the number of devices */
    LS__DRAWS_BY_DEVICE,   /* random draws depend on the device */
    LS__STEP_AFTER_FAILURE /* a failed run counts as a step */
} ls__defect_name;

#ifdef LS__DEFECTS
struct ls__schedule;
extern int ls__defect;
/* Changes the schedule by which a strategy adds up (tests/altered_hops_test.c); NULL: as it is. */
extern void (*ls__alter_schedule)(struct ls__schedule *schedule);
#define LS__DEFECT(name) (ls__defect == (name))
#else
#define LS__DEFECT(name) 0
#endif

#endif
