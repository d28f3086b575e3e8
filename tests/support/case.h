/*
 * Case files: what an operator is given and what it must give, as text.
 *
 *     # a comment
 *     case matmul/transposed
 *     op matmul
 *     attr transpose_a 1
 *     in f64[4,3] 0.5 -1.25 ...
 *     in f64[4,2] ...
 *     out f64[3,2] ...
 *     seed 0 f64[3,2] ...         the gradient that arrives at output 0
 *     grad 1 f64[4,2] ...         the gradient that input 1 then gets
 *     tol 1e-6                    instead of the usual one of the dtype
 *     nofd                        finite differences mean nothing at these inputs
 *     nosecond                    ... and neither do those of the gradient
 *     end
 *
 * A tensor is written as ls_describe writes it, f32[] being one number, then
 * its elements in row-major order; none at all means zeros. Floats are decimal
 * or C hex floats, nan, inf, -inf. Outputs are in the order of the row's; a row
 * may have more (values it saves for its gradient), which are not looked at.
 *
 * An attribute is a number, a dtype's name, a list `1,2`, `-` for the empty
 * list, or `all`, a list of count -1. What a case does not name is zero.
 *
 * A case that must fail has, in place of `out`,
 *
 *     fail LS_SHAPE matmul f64[4,3] "inner sizes"
 *
 * the status and what the error's text or hint must contain: words, or phrases
 * in quotes.
 *
 * A case names a row, or a public function that is made of rows (ls_dense...).
 */
#ifndef LS__TESTS_CASE_H
#define LS__TESTS_CASE_H

#include <lockstep/operator.h>

enum { CASE_MOST = 8, CASE_WORDS = 12 };

typedef struct case_tensor {
    int index; /* of a seed or gradient: which output or input it belongs to */
    ls_dtype dtype;
    int rank;
    int64_t dims[LS_MAX_RANK];
    int64_t count;
    void *data; /* NULL: zeros */
} case_tensor;

typedef struct case_attr {
    char name[32];
    char text[160];
} case_attr;

typedef struct test_case {
    char name[96];
    char op[48];
    int line; /* in its file */
    int n_attrs, n_in, n_out, n_seed, n_grad, n_words;
    case_attr attrs[CASE_MOST];
    case_tensor in[CASE_MOST], out[CASE_MOST], seed[CASE_MOST], grad[CASE_MOST];
    double tol; /* 0: the usual */
    bool nofd, nosecond;
    ls_status fail; /* LS_OK: must succeed */
    char words[CASE_WORDS][96];
} test_case;

typedef struct case_file {
    char path[512];
    int count;
    test_case *cases;
} case_file;

/* false, with what is wrong in case_problem(), when the file cannot be read or
 * does not follow the format. */
bool case_file_read(const char *path, case_file *out);
void case_file_free(case_file *file);

/* The folder tests/, from LOCKSTEP_TEST_DIR; and the .txt files of one of its
 * folders, sorted: malloc'ed strings in a malloc'ed array. -1 on failure. */
const char *case_root(void);
int case_list(const char *folder, char ***paths);
void case_list_free(int count, char **paths);

/* Whether `path` is the file of one of these operators. */
bool case_file_of(const char *path, int count, char **names);

/* A test program (case_main.c) whose every test is a golden file, its path the
 * test's state; with arguments, only the files of these operators. */
int case_main(const char *group, void (*test_file)(void **state), int argc, char **argv);

/* What the last false, -1 or NULL of this file was about; "" when the library
 * itself refused, which ls_error then tells. */
const char *case_problem(void);
bool case_fail(const char *format, ...) LS_PRINTF(1, 2);

/* ---- running (case_call.c) ---------------------------------------------- */

ls_tensor *case_make(const case_tensor *t);

/* The row, or NULL when the case names a public function that is none (or
 * nothing at all). */
const ls_op *case_row(const test_case *c);

/* Whether case_call can run a case of this operator: a row or such a function. */
bool case_known(const char *op);

/* Calls the operator of `c` with its attributes on these inputs: its outputs.
 * The other makes the inputs too and writes them to `inputs`. */
ls_value *case_call(const test_case *c, int count, ls_tensor *const *inputs);
ls_value *case_run(const test_case *c, ls_tensor **inputs);

/* The same through the public function of that name, ls_OP, which packs the
 * attributes itself (case_functions.c lists them). */
bool case_has_function(const char *op);
ls_value *case_call_function(const test_case *c, int count, ls_tensor *const *inputs);

/* Their names, in the order of the list; NULL after the last. */
const char *case_function_at(int i);

/* What an attribute's text says. */
int64_t case_to_int(const char *text);
void case_to_ints(const char *text, ls_ints *out);

/* ---- asking -------------------------------------------------------------- */

/* Element i as a double, of data of any dtype that maths takes. */
double case_at(ls_dtype dtype, const void *data, int64_t i);

/* Whether finite differences of the first, and of the second, order apply: f64
 * inputs that have a gradient and elements, away from kinks. */
bool case_has_fd(const test_case *c);
bool case_has_second(const test_case *c);

/* Whether an input or output has no elements. */
bool case_is_empty(const test_case *c);

/* The first input of a float dtype, -1 when there is none; and the dtype of the
 * case when that input is the one which counts (of its first output when it has no
 * inputs). */
int case_float_input(const test_case *c);
ls_dtype case_dtype(const test_case *c, int input);

/* Whether both give their operator tensors of the same shapes (and, where it
 * takes none, get such). */
bool case_same_shapes(const test_case *a, const test_case *b);

/* ---- probing (case_probe.c) ------------------------------------------------- */

/* Whether the operator takes the case's inputs when those of the dtype of `input`
 * are ones of this dtype instead. */
bool case_accepts(const test_case *c, int input, ls_dtype dtype);

/* Whether `row` runs in the backward pass of the case, or in that of its gradient. */
bool case_reaches(const test_case *c, const ls_op *row);

#endif
