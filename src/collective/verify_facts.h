/*
 * What the verifier knows of one chunk while it follows its hops: facts, found by what they are
 * about. A hash table of a size fixed when it is opened; forgetting all is one step.
 */
#ifndef LS__COLLECTIVE_VERIFY_FACTS_H
#define LS__COLLECTIVE_VERIFY_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ls__fact_kind {
    LS__FACT_HAS,  /* a: rank, b: node */
    LS__FACT_SENT, /* a: from << 16 | to, b: node, c: round */
    LS__FACT_MADE, /* a: node, by an add; b, c: 0 */
    LS__FACT_SUM   /* a + b, expressions */
} ls__fact_kind;

typedef struct ls__fact {
    uint32_t stamp; /* of another chunk: the slot is free */
    uint32_t kind, a, b, c;
    uint32_t expression;
    bool own; /* HAS: a replica of the rank's own, or a fold */
    bool used;
    int rank, hop; /* which hop made it so; hop -1: so from the start */
} ls__fact;

typedef struct ls__facts {
    ls__fact *slots;
    uint32_t *order; /* slots in the order in which facts came */
    size_t mask, n;
    uint32_t stamp;
} ls__facts;

/* For up to `most` facts at a time; false: out of memory. */
bool ls__facts_open(ls__facts *f, size_t most);
void ls__facts_close(ls__facts *f);
void ls__facts_forget(ls__facts *f);

/* NULL: not known. */
ls__fact *ls__fact_find(const ls__facts *f, ls__fact_kind kind, uint32_t a, uint32_t b, uint32_t c);

/* A new one; NULL: known already. */
ls__fact *ls__fact_new(ls__facts *f, ls__fact_kind kind, uint32_t a, uint32_t b, uint32_t c);

#endif
