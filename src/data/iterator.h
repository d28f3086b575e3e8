/*
 * How stages are run. A stage's iterator is pulled by whoever comes after it, a chunk of elements at a
 * time, on one thread at a time.
 *
 * Positions (DESIGN rule J). Stages run ahead of what was taken, so a stage is never asked where it
 * is: each element carries the position that follows it, as a fixed number of words. For most
 * iterators the words are all of it ("light"): they can go there again. A few have more to them
 * (what is in a shuffle's buffer): their words are a counter, and save() finds out what the state
 * was at that count, for any element that is still on its way. release() tells which are not.
 *
 *     source      [next index]                            light
 *     batch       [0][those of the last element in it]    as light as what it is made of
 *     take        [elements left][those of its input]
 *     shuffle     [draws and failures so far]             save(): what was in the buffer then
 *
 * Words are positions of this iteration of this dataset. Bytes that save() writes hold for every
 * process; they depend on the elements taken alone, not on how far somebody ran ahead.
 */
#ifndef LS__DATA_ITERATOR_H
#define LS__DATA_ITERATOR_H

#include "data/dataset.h"
#include "data/element.h"
#include "data/position.h"

/* What all stages of one iterator of a user's share. */
typedef struct ls__going {
    _Atomic int64_t skipped; /* damaged records left out */
    _Atomic int64_t bytes;   /* held in buffers */
} ls__going;

/* Who runs threads in front of a stage asks them to stop: pulls of all that the stage is made of fail
 * then, so that none goes on for ever (a filter that nothing passes, of data without end). */
typedef struct ls__stop {
    _Atomic bool asked;
    const struct ls__stop *outer; /* of threads that those threads work for; NULL: there are none */
} ls__stop;

typedef struct ls__opening {
    ls__going *going;
    uint64_t iteration;   /* which iteration of the dataset: 0, 1, ... */
    const ls__stop *stop; /* NULL: there are no threads in front of it */
    bool later;           /* rows of batches may be missing yet (gathered.h) */
} ls__opening;

typedef struct ls__it ls__it;

struct ls__it {
    const struct ls__stage *stage;
    ls_dataset *dataset; /* counted */
    void *state;         /* the stage's own struct */
    ls__opening how;
    int words;
    bool light;
    bool later;     /* as it was opened; `how`, for its inputs, has it where elements are handed on */
    bool none_lost; /* the last pull failed, and all elements are still to come (see pull) */
};

/* A stage. All but `open` are called with an opened iterator; what may be missing says so. */
typedef struct ls__stage {
    const char *name;   /* "batch" */
    size_t state_bytes; /* of its own struct, zeros when open is called */

    /* Opens inputs and sets words and light. On failure close is called, too. */
    ls_status (*open)(ls__it *it);
    void (*close)(ls__it *it);

    /* Up to `most` (1 or more) elements, at least one, into a chunk that is empty and that it
     * makes room in. LS_END: there is none left. On failure the chunk is empty, elements that come
     * before the failure having been given by an earlier pull, and the next pull goes on behind
     * it. What failed is an element that is lost, and counts for who counts elements; unless it
     * sets none_lost: then it is less (a row of a batch), and the next element is the one that was to
     * come. */
    ls_status (*pull)(ls__it *it, int most, ls__chunk *out);

    /* The data of the element that follows these words, all of them LASTING, wherever the iterator stands: for who
     * keeps many. Cannot fail. NULL: they have to be pulled. */
    void (*again)(ls__it *it, const int64_t *words, ls__datum *data);

    /* Where the next pull begins; after a failure that is behind it. A position like an element's. */
    void (*words_now)(ls__it *it, int64_t *words);

    /* Light ones only: stand there. */
    ls_status (*go)(ls__it *it, const int64_t *words);

    /* The position of these words, of an element pulled since the last release; and its reverse,
     * for an iterator that was just opened. NULL for stages that are always light.
     * LS_UNSUPPORTED, LS_CORRUPT. */
    ls_status (*save)(ls__it *it, const int64_t *words, ls__bytes_out *to);
    ls_status (*load)(ls__it *it, ls__bytes_in *from);

    /* No position before these words, of an element or behind a failure, will be asked for any more.
     * NULL: nothing to do. */
    void (*release)(ls__it *it, const int64_t *words);

    /* An element as users get it, in the innermost frame; takes over what the chunk owns of it. NULL:
     * ls__element_value. */
    ls_value *(*value)(ls__it *it, ls__chunk *c, int i);

    /* Of dataset trees, for sharing them out (autoshard.c, distribute.c). */
    unsigned flags;
    int64_t (*batch)(
        const ls_dataset *d); /* stages that batch: the rows of a whole one. NULL: none */
} ls__stage;

enum ls__stage_flags {
    LS__STAGE_READS_FILES = 1, /* input 0 is a dataset of names of files */
    LS__STAGE_OPAQUE = 2,      /* what is behind it cannot be looked through */
    LS__STAGE_DISTRIBUTED = 4, /* takes no further stages */
    LS__STAGE_ONE_STATE = 8,   /* an iterator goes on where others are */
    LS__STAGE_HANDS_ON = 16 /* looks into elements of its input as tensors, or not at all */
};

/* An iterator that waits for ls_initialize to begin. */
ls_iterator *ls__iterator_new(ls_dataset *d);

/* ---- calling: these do what stages need not know ------------------------------------------- */

ls_status ls__it_open(ls_dataset *d, const ls__opening *how, ls__it **out);
void ls__it_close(ls__it *it); /* takes NULL */

static inline bool ls__it_stopped(const ls__it *it)
{
    for (const ls__stop *s = it->how.stop; s; s = s->outer)
        if (atomic_load_explicit(&s->asked, memory_order_relaxed))
            return true;
    return false;
}

ls_status ls__stopped(void); /* LS_CANCELLED: nobody will see it, those who wait for it are going */

/* Whoever pulls in a loop is asked to stop here. */
static inline ls_status ls__it_pull(ls__it *it, int most, ls__chunk *out)
{
    it->none_lost = false;
    return ls__it_stopped(it) ? ls__stopped() : it->stage->pull(it, most, out);
}

/* For a stage whose input's failures are its own. */
static inline ls_status ls__it_pass(ls__it *it, ls__it *input, int most, ls__chunk *out)
{
    ls_status st = ls__it_pull(input, most, out);
    it->none_lost = input->none_lost;
    return st;
}

void ls__it_words(ls__it *it, int64_t *words);
ls_status ls__it_go(ls__it *it, const int64_t *words);

/* Light ones are saved as their words. */
ls_status ls__it_save(ls__it *it, const int64_t *words, ls__bytes_out *to);
ls_status ls__it_load(ls__it *it, ls__bytes_in *from);
void ls__it_release(ls__it *it, const int64_t *words);

/* Counts bytes that a stage holds; negative: holds no more. */
void ls__it_holds(ls__it *it, int64_t bytes);

/* Opens the stage's only input, and takes words and lightness over, with `own` words in front. */
ls_status ls__it_open_input(ls__it *it, int own, ls__it **input);

/* For stages whose state begins with their input, an ls__it *, and whose positions are that one's:
 * all that has to do with positions. */
void ls__pass_words_now(ls__it *it, int64_t *words);
ls_status ls__pass_go(ls__it *it, const int64_t *words);
ls_status ls__pass_save(ls__it *it, const int64_t *words, ls__bytes_out *to);
ls_status ls__pass_load(ls__it *it, ls__bytes_in *from);
void ls__pass_release(ls__it *it, const int64_t *words);
#define LS__PASSES_POSITIONS_ON                                                                    \
    .words_now = ls__pass_words_now, .go = ls__pass_go, .save = ls__pass_save,                     \
    .load = ls__pass_load, .release = ls__pass_release

#endif
