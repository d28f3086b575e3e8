/*
 * Reads case files (case.h describes the format). A file is read whole into an
 * array of cases, each of which owns the data of its tensors.
 */
#include "support/case.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char problem[512];

const char *case_problem(void)
{
    return problem;
}

bool case_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    return false;
}

/* ---- numbers and tensors --------------------------------------------------- */

static uint16_t bf16_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)(bits >> 16); /* files hold values that bf16 has exactly */
}

double case_at(ls_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case LS_F32:
        return ((const float *)data)[i];
    case LS_F64:
        return ((const double *)data)[i];
    case LS_I32:
        return ((const int32_t *)data)[i];
    case LS_I64:
        return (double)((const int64_t *)data)[i];
    case LS_U8:
    case LS_BOOL:
        return ((const uint8_t *)data)[i];
    case LS_BF16: {
        uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
    default:
        return 0;
    }
}

static bool put(case_tensor *t, int64_t i, const char *word)
{
    char *end = NULL;
    switch (t->dtype) {
    case LS_F32:
        ((float *)t->data)[i] = strtof(word, &end);
        break;
    case LS_F64:
        ((double *)t->data)[i] = strtod(word, &end);
        break;
    case LS_I32:
        ((int32_t *)t->data)[i] = (int32_t)strtoll(word, &end, 10);
        break;
    case LS_I64:
        ((int64_t *)t->data)[i] = strtoll(word, &end, 10);
        break;
    case LS_U8:
    case LS_BOOL:
        ((uint8_t *)t->data)[i] = (uint8_t)strtoll(word, &end, 10);
        break;
    case LS_BF16:
        ((uint16_t *)t->data)[i] = bf16_bits(strtof(word, &end));
        break;
    default:
        return case_fail("elements of a dtype that has none in case files");
    }
    return *end == '\0' || case_fail("'%s' is no %s", word, ls_dtype_name(t->dtype));
}

static ls_dtype dtype_named(const char *name, size_t length)
{
#define MATCH(dtype, value, text, bytes)                                                           \
    if (length == strlen(text) && !strncmp(name, text, length))                                    \
        return dtype;
    LS_DTYPE_LIST(MATCH)
#undef MATCH
    return (ls_dtype)0;
}

/* "f32[2,3]" */
static bool read_spec(const char *word, case_tensor *t)
{
    const char *open = strchr(word, '[');
    t->dtype = open ? dtype_named(word, (size_t)(open - word)) : (ls_dtype)0;
    if (!t->dtype)
        return case_fail("'%s' is no tensor such as f32[2,3]", word);
    t->rank = 0;
    t->count = 1;
    const char *at = open + 1;
    while (*at && *at != ']') {
        char *end;
        int64_t size = strtoll(at, &end, 10);
        if (end == at || t->rank == LS_MAX_RANK || (*end != ',' && *end != ']'))
            return case_fail("'%s' is no tensor such as f32[2,3]", word);
        t->dims[t->rank++] = size;
        t->count *= size;
        at = *end == ',' ? end + 1 : end;
    }
    return !strcmp(at, "]") || case_fail("'%s' is no tensor such as f32[2,3]", word);
}

/* The rest of the line: the spec, and all elements or none. */
static bool read_tensor(char **rest, case_tensor *t)
{
    const char *word = strtok_r(NULL, " ", rest);
    if (!word || !read_spec(word, t))
        return word ? false : case_fail("a tensor is missing");
    word = strtok_r(NULL, " ", rest);
    if (!word)
        return true;
    t->data = calloc((size_t)t->count + 1, 8);
    if (!t->data)
        return case_fail("out of memory");
    int64_t i = 0;
    for (; word; word = strtok_r(NULL, " ", rest), i++)
        if (i == t->count || !put(t, i, word))
            return i == t->count ? case_fail("more than %lld elements", (long long)i) : false;
    return i == t->count || case_fail("%lld elements, not %lld", (long long)i, (long long)t->count);
}

static bool read_indexed(char **rest, case_tensor *t)
{
    const char *word = strtok_r(NULL, " ", rest);
    t->index = word ? atoi(word) : -1;
    return read_tensor(rest, t);
}

/* ---- lines ------------------------------------------------------------------- */

static bool copy_word(char *to, size_t room, const char *word)
{
    if (!word || strlen(word) >= room)
        return case_fail("a name is missing or too long");
    strcpy(to, word);
    return true;
}

static bool status_named(const char *name, ls_status *out)
{
#define MATCH(status, value, scope, text)                                                          \
    if (name && !strcmp(name, #status)) {                                                          \
        *out = status;                                                                             \
        return true;                                                                               \
    }
    LS_STATUS_LIST(MATCH)
#undef MATCH
    return case_fail("'%s' is no status", name ? name : "");
}

/* fail LS_SHAPE word "a phrase" word */
static bool read_fail(char **rest, test_case *c)
{
    if (!status_named(strtok_r(NULL, " ", rest), &c->fail))
        return false;
    for (char *at = *rest; at && *at;) {
        at += strspn(at, " ");
        if (!*at)
            break;
        char stop = *at == '"' ? '"' : ' ';
        at += stop == '"';
        size_t length = strcspn(at, (char[]){ stop, '\0' });
        if (c->n_words == CASE_WORDS || length >= sizeof c->words[0])
            return case_fail("too many words, or one is too long");
        memcpy(c->words[c->n_words], at, length);
        c->words[c->n_words++][length] = '\0';
        at += length + (at[length] != '\0');
    }
    return true;
}

static bool read_attr(char **rest, test_case *c)
{
    if (c->n_attrs == CASE_MOST)
        return case_fail("too many attributes");
    case_attr *a = &c->attrs[c->n_attrs++];
    return copy_word(a->name, sizeof a->name, strtok_r(NULL, " ", rest)) &&
           copy_word(a->text, sizeof a->text, strtok_r(NULL, " ", rest));
}

static bool read_line(char *line, test_case *c)
{
    char *rest = NULL;
    const char *key = strtok_r(line, " ", &rest);
    if (!strcmp(key, "op"))
        return copy_word(c->op, sizeof c->op, strtok_r(NULL, " ", &rest));
    if (!strcmp(key, "attr"))
        return read_attr(&rest, c);
    if (!strcmp(key, "in") && c->n_in < CASE_MOST)
        return read_tensor(&rest, &c->in[c->n_in++]);
    if (!strcmp(key, "out") && c->n_out < CASE_MOST)
        return read_tensor(&rest, &c->out[c->n_out++]);
    if (!strcmp(key, "seed") && c->n_seed < CASE_MOST)
        return read_indexed(&rest, &c->seed[c->n_seed++]);
    if (!strcmp(key, "grad") && c->n_grad < CASE_MOST)
        return read_indexed(&rest, &c->grad[c->n_grad++]);
    if (!strcmp(key, "fail"))
        return read_fail(&rest, c);
    if (!strcmp(key, "nofd"))
        return c->nofd = true;
    if (!strcmp(key, "nosecond"))
        return c->nosecond = true;
    if (!strcmp(key, "tol")) {
        const char *word = strtok_r(NULL, " ", &rest);
        c->tol = word ? strtod(word, NULL) : 0;
        return c->tol > 0 || case_fail("tol wants a number above 0");
    }
    return case_fail("'%s' is unknown here, or one too many", key);
}

/* A whole case has an operator, a result, and indices that exist. */
static bool check(const test_case *c)
{
    if (!c->op[0] || (c->fail == LS_OK) == (c->n_out == 0))
        return case_fail("a case has an op, and either out or fail");
    for (int i = 0; i < c->n_seed; i++)
        if (c->seed[i].index < 0 || c->seed[i].index >= c->n_out)
            return case_fail("seed %d: there is no such output", c->seed[i].index);
    for (int i = 0; i < c->n_grad; i++)
        if (c->grad[i].index < 0 || c->grad[i].index >= c->n_in)
            return case_fail("grad %d: there is no such input", c->grad[i].index);
    return (c->n_grad > 0) == (c->n_seed > 0) || case_fail("grad and seed go together");
}

static test_case *add_case(case_file *file)
{
    if (file->count % 16 == 0) {
        size_t room = (size_t)file->count + 16;
        test_case *more = realloc(file->cases, room * sizeof *more);
        if (!more)
            return NULL;
        file->cases = more;
    }
    test_case *c = &file->cases[file->count++];
    memset(c, 0, sizeof *c);
    return c;
}

static bool read_lines(FILE *in, case_file *file, int *number)
{
    char *line = NULL;
    size_t room = 0;
    test_case *c = NULL;
    bool ok = true;
    while (ok && getline(&line, &room, in) >= 0) {
        ++*number;
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        if (!strncmp(line, "case ", 5)) {
            ok = !c || case_fail("the case before has no end");
            c = ok ? add_case(file) : NULL;
            ok = c && copy_word(c->name, sizeof c->name, line + 5);
            if (c)
                c->line = *number;
        } else if (!c) {
            ok = case_fail("a line outside of a case");
        } else if (!strcmp(line, "end")) {
            ok = check(c);
            c = NULL;
        } else {
            ok = read_line(line, c);
        }
    }
    free(line);
    return ok && (!c || case_fail("the last case has no end"));
}

bool case_file_read(const char *path, case_file *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->path, sizeof out->path, "%s", path);
    FILE *in = fopen(path, "r");
    if (!in)
        return case_fail("%s: %s", path, strerror(errno));
    int number = 0;
    bool ok = read_lines(in, out, &number);
    fclose(in);
    if (ok)
        return true;
    char what[sizeof problem];
    memcpy(what, problem, sizeof what);
    case_file_free(out);
    return case_fail("%s:%d: %s", path, number, what);
}

void case_file_free(case_file *file)
{
    for (int i = 0; i < file->count; i++)
        for (int k = 0; k < CASE_MOST; k++) {
            free(file->cases[i].in[k].data);
            free(file->cases[i].out[k].data);
            free(file->cases[i].seed[k].data);
            free(file->cases[i].grad[k].data);
        }
    free(file->cases);
    memset(file, 0, sizeof *file);
}

/* ---- folders -------------------------------------------------------------------- */

const char *case_root(void)
{
    const char *root = getenv("LOCKSTEP_TEST_DIR");
    return root ? root : "tests";
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int case_list(const char *folder, char ***paths)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", case_root(), folder);
    DIR *dir = opendir(path);
    if (!dir) {
        case_fail("%s: %s (is LOCKSTEP_TEST_DIR set?)", path, strerror(errno));
        return -1;
    }
    int count = 0;
    *paths = NULL;
    for (struct dirent *e; (e = readdir(dir));) {
        size_t length = strlen(e->d_name);
        if (length < 5 || strcmp(e->d_name + length - 4, ".txt"))
            continue;
        char **more = realloc(*paths, ((size_t)count + 1) * sizeof *more);
        size_t room = strlen(path) + length + 2;
        char *full = malloc(room);
        if (!more || !full)
            abort();
        snprintf(full, room, "%s/%s", path, e->d_name);
        *paths = more;
        more[count++] = full;
    }
    closedir(dir);
    if (count > 1)
        qsort(*paths, (size_t)count, sizeof **paths, by_name);
    return count;
}

void case_list_free(int count, char **paths)
{
    for (int i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
}

bool case_file_of(const char *path, int count, char **names)
{
    for (int i = 0; i < count; i++) {
        char file[128];
        snprintf(file, sizeof file, "/%s.txt", names[i]);
        if (strstr(path, file))
            return true;
    }
    return false;
}

/* ---- asking ------------------------------------------------------------------------ */

bool case_has_fd(const test_case *c)
{
    if (c->nofd || c->fail)
        return false;
    int64_t elements = 0;
    for (int i = 0; i < c->n_grad; i++) {
        if (c->grad[i].dtype != LS_F64)
            return false;
        elements += c->grad[i].count;
    }
    for (int i = 0; i < c->n_out; i++)
        if (ls_dtype_is_float(c->out[i].dtype) && c->out[i].dtype != LS_F64)
            return false;
    return elements > 0;
}

bool case_has_second(const test_case *c)
{
    return case_has_fd(c) && !c->nosecond;
}

bool case_is_empty(const test_case *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].count == 0)
            return true;
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i].count == 0)
            return true;
    return false;
}

int case_float_input(const test_case *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (ls_dtype_is_float(c->in[i].dtype))
            return i;
    return -1;
}

ls_dtype case_dtype(const test_case *c, int input)
{
    return c->n_in == 0 ? c->out[0].dtype : c->in[input < c->n_in ? input : 0].dtype;
}

bool case_same_shapes(const test_case *a, const test_case *b)
{
    int count = a->n_in ? a->n_in : a->n_out;
    const case_tensor *x = a->n_in ? a->in : a->out, *y = b->n_in ? b->in : b->out;
    if (a->n_in != b->n_in || (!a->n_in && a->n_out != b->n_out))
        return false;
    for (int i = 0; i < count; i++)
        if (x[i].rank != y[i].rank ||
            memcmp(x[i].dims, y[i].dims, (size_t)x[i].rank * sizeof x[i].dims[0]) != 0)
            return false;
    return true;
}
