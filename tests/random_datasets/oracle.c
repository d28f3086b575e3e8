/*
 * What a program should give: sources and stages of several inputs; oracle_stages.c has the others.
 */
#include "random_datasets/oracle.h"

#include <stdlib.h>
#include <string.h>

rd_it *rd_it_open(rd_oracle *o, const rd_node *node, rd_scope *scope)
{
    rd_it *it = rd_room(o->pool, sizeof *it);
    it->o = o;
    it->node = node;
    it->scope = scope;
    for (int i = 0; i < node->n_in; i++)
        it->in[i] = rd_it_open(o, node->in[i], scope);
    return it;
}

void rd_list_add(rd_oracle *o, rd_list *list, rd_element *e)
{
    if (list->n == list->room) {
        int room = 2 * list->room + 16;
        rd_element **at = rd_room(o->pool, (size_t)room * sizeof *at);
        if (list->n)
            memcpy(at, list->at, (size_t)list->n * sizeof *at);
        list->at = at;
        list->room = room;
    }
    list->at[list->n++] = e;
}

/* ---- sources -------------------------------------------------------------------------------- */

static ls_status next_name(rd_it *it, rd_element **out)
{
    const rd_file *files[RD_FILES_OF_A_SET];
    int64_t at = it->at++;
    for (int i = 0; i < it->node->n_patterns; i++) {
        int n = rd_files_matching(it->node->pattern[i], files);
        if (at < n) {
            *out = rd_string(it->o->pool, files[at]->name, (int)strlen(files[at]->name));
            return LS_OK;
        }
        at -= n;
    }
    return LS_END;
}

/* The next record of a file; LS_END: it has no more. */
static ls_status next_of_file(rd_it *it, rd_element **out)
{
    const rd_node *node = it->node;
    const rd_record *r = it->file->record;
    rd_record part;
    if (node->code == RD_FIXED) {
        int64_t from = node->b + node->a * it->at;
        if (from + node->a > r->length - (3 - node->b))
            return LS_END;
        part = (rd_record){ r->data + from, (int)node->a };
    } else {
        if (it->at == it->file->n)
            return LS_END;
        part = r[it->at];
    }
    it->at++;
    if (part.length < 0)
        return LS_CORRUPT;
    *out = rd_string(it->o->pool, "", 0);
    (*out)->leaf[0].cells->string = part.data;
    (*out)->leaf[0].cells->length = part.length;
    return LS_OK;
}

static ls_status next_record(rd_it *it, rd_element **out)
{
    for (;;) {
        if (!it->file) {
            rd_element *name;
            rd_set set;
            ls_status st = rd_it_next(it->in[0], &name);
            if (st)
                return st;
            it->file =
                rd_file_named(name->leaf[0].cells->string, name->leaf[0].cells->length, &set);
            if (!it->file)
                abort();
            it->at = 0;
        }
        ls_status st = next_of_file(it, out);
        if (st == LS_END)
            it->file = NULL;
        else if (st != LS_CORRUPT || !it->node->flag)
            return st;
    }
}

static ls_status next_of_source(rd_it *it, rd_element **out)
{
    const rd_node *node = it->node;
    const rd_element *given = it->scope->given;
    int64_t at = it->at++;
    uint64_t h;
    switch (node->code) {
    case RD_RANGE:
        if (at >= node->b)
            return LS_END;
        *out = rd_number(it->o->pool, (int64_t)((uint64_t)node->a + node->seed * (uint64_t)at));
        return LS_OK;
    case RD_RANGE_OF:
        h = rd_hash(given);
        if (at >= (int64_t)(h / 100 % (uint64_t)node->a))
            return LS_END;
        *out = rd_number(it->o->pool, (int64_t)(h % 100) + at);
        return LS_OK;
    case RD_GIVEN:
        *out = (rd_element *)(uintptr_t)given;
        return at ? LS_END : LS_OK;
    case RD_GIVEN_ROWS:
        if (at >= given->leaf[0].dims[0])
            return LS_END;
        *out = rd_row(it->o->pool, given, at);
        return LS_OK;
    default:
        if (at >= node->a)
            return LS_END;
        *out = rd_content(it->o->pool, node, at);
        return LS_OK;
    }
}

/* ---- several inputs ------------------------------------------------------------------------- */

static ls_status next_of_zip(rd_it *it, rd_element **out)
{
    rd_element *parts[RD_INPUTS];
    for (int i = 0; i < it->node->n_in; i++) {
        ls_status st = rd_it_next(it->in[i], &parts[i]);
        if (st)
            return st;
    }
    *out = rd_listed(it->o->pool, it->node->n_in, parts);
    return LS_OK;
}

static ls_status next_of_concatenation(rd_it *it, rd_element **out)
{
    for (; it->turn < 2; it->turn++) {
        ls_status st = rd_it_next(it->in[it->turn], out);
        if (st != LS_END)
            return st;
    }
    return LS_END;
}

/* Opens what the next element of the input leads to, in place `at`. */
static ls_status open_body(rd_it *it, int64_t at)
{
    rd_element *e;
    ls_status st = rd_it_next(it->in[0], &e);
    if (st)
        return st;
    rd_scope *scope = rd_room(it->o->pool, sizeof *scope);
    scope->given = e;
    it->inner[at] = rd_it_open(it->o, it->node->body, scope);
    return LS_OK;
}

static ls_status next_of_flat_map(rd_it *it, rd_element **out)
{
    for (;;) {
        ls_status st = it->inner[0] ? rd_it_next(it->inner[0], out) : LS_END;
        if (st != LS_END)
            return st;
        it->inner[0] = NULL;
        st = open_body(it, 0);
        if (st)
            return st;
    }
}

static void advance(rd_it *it)
{
    it->turn = (it->turn + 1) % it->node->a;
    it->given = 0;
}

/* TensorFlow's order: a place whose dataset has ended is passed, and filled when its turn comes
 * again. */
static ls_status next_of_interleave(rd_it *it, rd_element **out)
{
    for (;;) {
        int open = 0;
        for (int i = 0; i < it->node->a; i++)
            open += it->inner[i] != NULL;
        if (!open && it->ended)
            return LS_END;
        if (it->inner[it->turn]) {
            ls_status st = rd_it_next(it->inner[it->turn], out);
            if (st == LS_END) {
                it->inner[it->turn] = NULL;
                advance(it);
                continue;
            }
            if (++it->given == it->node->b)
                advance(it);
            return st;
        }
        if (it->ended)
            advance(it);
        else if (open_body(it, it->turn))
            it->ended = true;
    }
}

/* ---- all of them ---------------------------------------------------------------------------- */

const char rd_too_much_work[] = "too much work";

ls_status rd_it_next(rd_it *it, rd_element **out)
{
    ls_status st;
    if (it->o->why)
        return LS_END;
    if (++it->o->steps > RD_MOST_STEPS) {
        it->o->why = rd_too_much_work;
        return LS_END;
    }
    switch (it->node->code) {
    case RD_FILES:
        return next_name(it, out);
    case RD_TFRECORDS:
    case RD_TEXT_LINES:
    case RD_FIXED:
        return next_record(it, out);
    case RD_ZIP:
        return next_of_zip(it, out);
    case RD_CONCATENATE:
        return next_of_concatenation(it, out);
    case RD_FLAT_MAP:
        return next_of_flat_map(it, out);
    case RD_INTERLEAVE:
        return next_of_interleave(it, out);
    default:
        return rd_it_next_stage(it, out, &st) ? st : next_of_source(it, out);
    }
}

struct rd_memory *rd_memory_new(void)
{
    struct rd_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        abort();
    memory->scope = rd_room(&memory->pool, sizeof *memory->scope);
    return memory;
}

void rd_memory_free(struct rd_memory *memory)
{
    if (memory)
        rd_pool_free(&memory->pool);
    free(memory);
}

bool rd_predict(const rd_program *p, struct rd_memory *memory, rd_orders *orders, int epoch,
                rd_lines *out, const char **why)
{
    rd_oracle o = { .pool = &memory->pool, .orders = orders, .epoch = epoch };
    rd_it *it = rd_it_open(&o, p->root, memory->scope);
    ls_status st = LS_OK;
    while (st != LS_END && !rd_lines_full(out)) {
        rd_element *e = NULL;
        rd_text text = { 0 };
        st = rd_it_next(it, &e);
        if (st == LS_OK)
            rd_print_element(&text, e);
        else
            rd_print(&text, st == LS_END ? "end" : "! %s", ls_status_name(st));
        out->element[out->n] = e;
        rd_lines_add(out, text.at);
        rd_text_free(&text);
    }
    *why = o.why;
    return !o.why;
}
