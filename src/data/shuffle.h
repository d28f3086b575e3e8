/*
 * A shuffle from inside: what shuffle.c (drawing), shuffle_slots.c (the buffer and what is known of its
 * past) and shuffle_save.c, shuffle_load.c and shuffle_marks.c (positions) share.
 *
 * After draw k the buffer has `filled` slots, one of which, the hole, is the one draw k emptied. Draw
 * k + 1 begins by filling the hole: with the next element of the input or, when it has ended, with the
 * last slot, which is gone then. Before the first draw there is no hole, and the buffer is filled up.
 *
 *     draw 1 of buffer 4     0 1 2 3   ->  slot 2       0 1 _ 3
 *     draw 2                 0 1 4 3   ->  slot 0       _ 1 4 3
 *     the input has ended    3 1 4     ->  slot 2       3 1 _
 *
 * So the state after draw k follows from that after draw k + 1 and a note of what draw k + 1 did. A failure
 * of the input is an event like a draw: it changes nothing, but a position may be behind it. Notes
 * are kept of all events that may still be asked for.
 *
 * Elements of the input are numbered as they come; where it is light, one that fails leaves a number out.
 * Of an element in the buffer its number is known and, where the input is light, the words that
 * stand before it: enough to read it again.
 */
#ifndef LS__DATA_SHUFFLE_H
#define LS__DATA_SHUFFLE_H

#include "base/status.h"
#include "data/iterator.h"
#include "data/kept.h"

typedef struct ls__shuffle_options {
    int64_t buffer;
    uint64_t seed;
    bool once; /* the same order in every iteration */
} ls__shuffle_options;

/* A position of an input that is not light, from where to go through it again. */
typedef struct ls__shuffle_mark {
    int64_t number; /* of the element that follows */
    ls__bytes_out bytes;
} ls__shuffle_mark;

enum { LS__SHUFFLE_BLOCK = 64, LS__SHUFFLE_MOST_AT_ONCE = 256 };

typedef struct ls__shuffle {
    ls__it *input;
    int origin_words; /* of an element's origin: the input's if that is light, else 0 */
    bool again;       /* the input gives an element's data again: they are not kept */

    ls__chunk ahead; /* elements of the input */
    int next;        /* those before it are in the buffer */
    int kept;        /* those before it are in the buffer, or in `coming` */
    ls__kept *coming[LS__SHUFFLE_MOST_AT_ONCE];
    int64_t pulled;   /* number of the next element */
    int64_t *before;  /* where the input stands before it */
    int64_t failures; /* of the input since the last element */
    bool ended;

    int leaves;                /* of an element; known with the first */
    const ls_value *structure; /* the same */
    ls__store store;           /* of elements, unless they can be had again */
    int64_t room, filled;
    int64_t *slots; /* `room` of them: see ls__shuffle_slot */

    int64_t events, draws; /* so far */
    int64_t hole;          /* -1 before the first draw */
    uint64_t key;
    uint64_t random[2 * LS__SHUFFLE_BLOCK]; /* of a block of draws and the next */
    int64_t random_block;                   /* of which; -1: none */

    int64_t *notes; /* of events first_noted .. events: see ls__shuffle_note */
    size_t note_room, note_first, note_count;
    int64_t first_noted;

    ls__shuffle_mark *marks; /* oldest first */
    int n_marks, mark_room;
    int64_t next_mark;
    ls__error_record no_marks; /* why the input cannot be saved */

    int64_t bytes, declared; /* held beside the store; of which, and of it, ls__it_holds was told */
} ls__shuffle;

/* ---- slots ----------------------------------------------------------------------------------- */

/* Room for so many slots (as soon as the leaves are known), and for notes of so many events more.
 * LS_NO_MEMORY. */
ls_status ls__shuffle_make_room(ls__shuffle *s, const ls__shuffle_options *o, int64_t slots);
ls_status ls__shuffle_make_notes_room(ls__shuffle *s, int events);

/* A slot: [what is in it][its origin: number, words before]. In it is nothing (0: the hole), an element that can be had
 * again (LS__SHUFFLE_AGAIN), or the address of one that is kept. */
enum { LS__SHUFFLE_AGAIN = 1 };

static inline int64_t ls__shuffle_slot_words(const ls__shuffle *s)
{
    return 2 + s->origin_words;
}

static inline int64_t *ls__shuffle_slot(const ls__shuffle *s, int64_t slot)
{
    return s->slots + slot * ls__shuffle_slot_words(s);
}

static inline const int64_t *ls__shuffle_origin(const ls__shuffle *s, int64_t slot)
{
    return ls__shuffle_slot(s, slot) + 1;
}

/* NULL: nothing is kept of it. */
static inline ls__kept *ls__shuffle_kept(const int64_t *slot)
{
    return slot[0] == LS__SHUFFLE_AGAIN ? NULL : (ls__kept *)(uintptr_t)slot[0];
}

/* Pulls elements when there are none ahead: LS_OK also at the end (`ended`). */
ls_status ls__shuffle_pull_ahead(ls__it *it, int most);

/* The next element goes into a slot, which is empty and there is room for; or nowhere. */
void ls__shuffle_fill(ls__shuffle *s, int64_t slot);
void ls__shuffle_pass_over(ls__shuffle *s);

/* The last slot's element moves to another that is empty; there is a slot less. */
void ls__shuffle_close_hole(ls__shuffle *s);

/* Let go of all elements; tell how many bytes are held. */
void ls__shuffle_empty(ls__shuffle *s);
void ls__shuffle_declare(ls__it *it);

/* What an event was, and how things stood after it. */
typedef enum ls__shuffle_event {
    LS__SHUFFLE_FILLED, /* a draw, and the hole before it was filled (or there was none) */
    LS__SHUFFLE_CLOSED, /* a draw, and the hole before it was closed */
    LS__SHUFFLE_FAILED
} ls__shuffle_event;
typedef struct ls__shuffle_note {
    int64_t event, draws, filled, hole, pulled, failures;
    const int64_t *origin; /* of the element drawn */
    const int64_t *stand;  /* where the input stood, if it is light */
} ls__shuffle_note;

/* Of the next event, the state being that after it; `origin` may be NULL if none was drawn. Begin: of what
 * there is, as if nothing had been before. There is room. */
void ls__shuffle_write_note(ls__shuffle *s, ls__shuffle_event event, const int64_t *origin);
void ls__shuffle_begin_notes(ls__shuffle *s);
ls__shuffle_note ls__shuffle_read_note(const ls__shuffle *s, int64_t number);
void ls__shuffle_forget_notes(ls__shuffle *s, int64_t before);

/* ---- positions --------------------------------------------------------------------------------- */

typedef struct ls__shuffle_place {
    int64_t number; /* of an element. Restoring by words: 0 follows the one before, 1 does not */
    int64_t slot;
} ls__shuffle_place;

/* The buffer after some event. */
typedef struct ls__shuffle_past {
    int64_t draws, filled, hole, pulled, failures;
    int64_t *origin; /* of slots; when restoring, words of places behind those of the input */
    ls__shuffle_place *places; /* of all slots but the hole, in the order of the input */
    int64_t n;
    const int64_t *stand; /* the input's words */
} ls__shuffle_past;
void ls__shuffle_free_past(ls__shuffle_past *p);

ls_status ls__shuffle_save(ls__it *it, const int64_t *words, ls__bytes_out *to);
ls_status ls__shuffle_load(ls__it *it, ls__bytes_in *from);

/* Of inputs that are not light. Marks where it stands, unless something is marked; marks positions of it
 * that fall into the elements just pulled ahead, and lets it forget what is before them.
 * LS_NO_MEMORY: call it again. */
ls_status ls__shuffle_mark_start(ls__it *it);
ls_status ls__shuffle_mark_ahead(ls__it *it);
void ls__shuffle_free_marks(ls__shuffle *s);

/* Writes the last mark at or before element `first`, and tells its number; and its reverse: the input
 * stands there, from where the way to go is not longer than `longest`. */
ls_status ls__shuffle_put_mark(const ls__shuffle *s, int64_t first, int64_t *number,
                               ls__bytes_out *to);
ls_status ls__shuffle_get_mark(ls__it *it, ls__bytes_in *from, int64_t *number, int64_t *longest);

#endif
