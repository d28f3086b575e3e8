/*
 * Models from files: compiled with the headers that belong to the command, loaded, named; what is wrong
 * with one is told in one line, and nothing is left on the disk.
 */
#include "model_file.h"

#include <signal.h>
#include <sys/wait.h>

#include "process.h"
#include "test_model.h"

static void assert_opens(const char *path, const char *name)
{
    model_file m;
    int status = -1;
    hear();
    bool opened = model_file_open(&train_cli, path, &m, &status);
    assert_string_equal(heard(), "");
    assert_true(opened);
    assert_true(m.foreign);
    assert_string_equal(m.name, name);
    assert_string_equal(ls_model_name(m.model), name);
    assert_string_equal(ls_model_input(m.model), "f32[4]");
    assert_int_equal(ls_model_build(m.model), LS_OK);
    LS_FRAME {
        ls_tensor *y = ls_model_forward(m.model, ls_ones(LS_F32, LS_DIMS(2, 4)), false);
        assert_string_equal(ls_describe(y), "f32[2,3]");
    }
    ls_model_free(m.model);
}

/* The first line told, with %s for the folder and ... for a rest that others wrote; `more` says whether others follow. */
static void assert_no_model(const char *path, const char *line, bool more)
{
    model_file m;
    int status = -1;
    hear();
    bool opened = model_file_open(&train_cli, path, &m, &status);
    const char *text = heard();
    char expected[2048], first[2048];
    snprintf(expected, sizeof expected, line, folder, folder);
    snprintf(first, sizeof first, "%.*s", (int)strcspn(text, "\n"), text);
    char *rest = strstr(expected, "...");
    if (rest && strlen(first) > (size_t)(rest - expected))
        strcpy(rest, first + (rest - expected));
    assert_string_equal(first, expected);
    assert_true(more == (strlen(text) > strlen(first) + 1));
    assert_false(opened);
    assert_int_equal(status, EXIT_USAGE);
    assert_int_equal(ls_error_pending(), LS_OK);
}

static void a_file_is_compiled_and_opened(void **state)
{
    (void)state;
    assert_opens(write_text("mine.c", MODEL), "mine.c");
    assert_opens(write_text("with space.c", MODEL), "with space.c");
}

/* Both of one example. */
static void the_example_is_a_model(void **state)
{
    (void)state;
    char path[4096];
    snprintf(path, sizeof path, "%s/../examples/model_file.c", getenv("LOCKSTEP_TEST_DIR"));
    for (int free_form = 0; free_form < 2; free_form++) {
        model_file m;
        int status = -1;
        if (free_form)
            setenv("CC", "cc  -DFREE_FORM=1 ", 1);
        assert_true(model_file_open(&train_cli, path, &m, &status));
        unsetenv("CC");
        assert_string_equal(m.name, "model_file.c");
        assert_string_equal(ls_model_what(m.model),
                            free_form ? "a residual layer" : "three layers");
        assert_int_equal(ls_model_build(m.model), LS_OK);
        LS_FRAME {
            ls_tensor *x = ls_ones(LS_F32, LS_DIMS(2, 28, 28, 1));
            assert_string_equal(ls_describe(ls_model_forward(m.model, x, true)), "f32[2,10]");
        }
        ls_model_free(m.model);
    }
}

static void a_shared_library_is_opened(void **state)
{
    (void)state;
    char line[1024];
    write_text("own.c", "typedef struct m m; m *ls_model_named(const char *);\n"
                        "m *lockstep_model(void) { return ls_model_named(\"mlp\"); }\n");
    snprintf(line, sizeof line, "cd %s && cc -shared -fPIC -o own.so own.c", folder);
    assert_int_equal(system(line), 0);
    model_file m;
    int status = -1;
    assert_true(model_file_open(&train_cli, in_folder("own.so"), &m, &status));
    assert_string_equal(m.name, "own.so");
    ls_model_free(m.model);
}

static void names_are_models(void **state)
{
    (void)state;
    model_file m;
    int status = -1;
    assert_true(model_file_open(&train_cli, "cnn", &m, &status));
    assert_string_equal(m.name, "cnn");
    assert_false(m.foreign);
    ls_model_free(m.model);
    assert_no_model(
        "cmn",
        "lockstep train: unknown model 'cmn'; did you mean 'cnn'? There are cnn cnn2 mlp "
        "resnet gpt, FILE.c and FILE.so",
        false);
    assert_no_model("zebra",
                    "lockstep train: unknown model 'zebra'; there are cnn cnn2 mlp resnet gpt, "
                    "FILE.c and FILE.so",
                    false);
}

static void what_does_not_compile_says_why(void **state)
{
    (void)state;
    setenv("LC_ALL", "C", 1);
    assert_no_model(
        write_text("bad.c", HEAD "ls_model *lockstep_model(void)\n{\n    return 1 +;\n}\n"),
        "lockstep train: '%s/bad.c' does not compile with cc: %s/bad.c:4:15: error: "
        "expected expression...",
        true);
    assert_no_model(
        write_text("calls.c", "void *lockstep_model(void) { return ls_model_mew(); }\n"),
        "lockstep train: '%s/calls.c' does not compile with cc: %s/calls.c:1:37: error: "
        "...",
        true);
    assert_no_model(in_folder("none.c"),
                    "lockstep train: cannot read the model '%s/none.c': No such file or directory; "
                    "give its path",
                    false);
}

static void many_messages_are_cut(void **state)
{
    (void)state;
    static char text[20000];
    int at = 0;
    for (int i = 0; i < 200; i++)
        at += sprintf(text + at, "nonsense_%d x%d;\n", i, i);
    const char *path = write_text("long.c", text);
    model_file m;
    int status = -1, lines = 0;
    hear();
    assert_false(model_file_open(&train_cli, path, &m, &status));
    const char *told = heard();
    for (const char *c = told; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, 32);
    assert_non_null(strstr(told, "\n(and more)\n"));
}

/* Warnings are shown, and are no obstacle. */
static void warnings_are_shown(void **state)
{
    (void)state;
    const char *path = write_text("warns.c", "static int unused_one;\n" MODEL);
    model_file m;
    int status = -1;
    hear();
    bool opened = model_file_open(&train_cli, path, &m, &status);
    assert_non_null(strstr(heard(), "unused_one"));
    assert_true(opened);
    ls_model_free(m.model);
}

static void compilers_are_looked_for(void **state)
{
    (void)state;
    char *path = strdup(getenv("PATH"));
    const char *good = write_text("mine.c", MODEL);
    setenv("CC", "no-such-compiler -x", 1);
    assert_no_model(
        good,
        "lockstep train: cannot compile '%s/mine.c' with 'no-such-compiler -x': it is not "
        "installed; it is what CC says",
        false);
    setenv("CC", "", 1);
    setenv("PATH", folder, 1);
    assert_no_model(good,
                    "lockstep train: cannot compile '%s/mine.c': there is no cc, gcc or clang; "
                    "install Debian's gcc, set CC to a compiler, or give a .so",
                    false);
    setenv("PATH", path, 1);
    setenv("TMPDIR", "/nowhere", 1);
    model_file m;
    int status = -1;
    hear();
    assert_false(model_file_open(&train_cli, good, &m, &status));
    assert_string_equal(heard(),
                        "lockstep train: cannot make a directory in '/nowhere' to compile in: "
                        "No such file or directory; TMPDIR says where else there is room\n");
    assert_int_equal(status, EXIT_FAILED);
    unsetenv("CC");
    free(path);
}

static void libraries_that_are_none_are_told(void **state)
{
    (void)state;
    unsigned char elf[64] = { 0x7f, 'E', 'L', 'F', 1, 2, 1, [16] = 0, 3, 0, 21 };
    assert_no_model(in_folder("none.so"),
                    "lockstep train: cannot read the model '%s/none.so': No such file or "
                    "directory; give its path",
                    false);
    assert_no_model(
        write_text("text.so", "hello"),
        "lockstep train: the model '%s/text.so' is no shared library; 'cc -shared -fPIC -o "
        "mine.so mine.c' makes one",
        false);
    char expected[256];
    write_file("other.so", elf, sizeof elf);
    model_file m;
    int status = -1;
    hear();
    assert_false(model_file_open(&train_cli, in_folder("other.so"), &m, &status));
    snprintf(expected, sizeof expected, "the model '%s/other.so' is for machines of ", folder);
    assert_non_null(strstr(heard(), expected));
    assert_int_equal(status, EXIT_USAGE);
}

static void models_without_a_model_are_told(void **state)
{
    (void)state;
    assert_no_model(
        write_text("empty.c", "int nothing;\n"),
        "lockstep train: the model '%s/empty.c' does not define lockstep_model; it must "
        "define 'ls_model *lockstep_model(void)'",
        false);
    assert_no_model(
        write_text("null.c", "void *lockstep_model(void) { return 0; }\n"),
        "lockstep train: the model '%s/null.c': lockstep_model() returned NULL; it must "
        "return a model (ls_model_new)",
        false);
    assert_no_model(
        write_text("fails.c", HEAD "ls_model *lockstep_model(void)\n"
                                   "{ return ls_model_new(LS_MODEL(.name = \"x\")); }\n"),
        "lockstep train: the model '%s/fails.c': ls_model_new: 'x' has no .input...", false);
    /* A layer failed, and nobody looked. */
    assert_no_model(write_text("half.c", HEAD
                               "ls_model *lockstep_model(void)\n{\n"
                               "    ls_model *m = ls_model_new(LS_MODEL(.input = \"f32[4]\"));\n"
                               "    ls_dense_layer(m, LS_DENSE_LAYER(.units = 0));\n"
                               "    return m;\n}\n"),
                    "lockstep train: the model '%s/half.c': ls_dense_layer: ...", false);
    assert_no_model(
        write_text("open.c", "void *nowhere(void);\n"
                             "void *lockstep_model(void) { return nowhere(); }\n"),
        "lockstep train: the model '%s/open.c' cannot be loaded: undefined symbol: nowhere", false);
}

/* ---- which headers ------------------------------------------------------------------------------------- */

/* This program as it would be installed: PREFIX/bin, and headers in PREFIX/include. */
static void installed_headers_are_found(void **state)
{
    (void)state;
    char self[4096], libraries[4200], line[16384];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    snprintf(line, sizeof line, "mkdir -p %s/bin %s/include/lockstep && cp '%s' %s/bin/lockstep",
             folder, folder, self, folder);
    assert_int_equal(system(line), 0);
    write_text("include/lockstep.h", "");
    write_text("include/lockstep/train.h", "#error installed headers\n");
    *strrchr(self, '/') = '\0';
    snprintf(libraries, sizeof libraries, "%s/src", self);
    setenv("LD_LIBRARY_PATH", libraries, 1);
    char installed[256], path[256];
    snprintf(installed, sizeof installed, "%s/bin/lockstep", folder);
    snprintf(path, sizeof path, "%s", write_text("mine.c", MODEL));
    char *argv[] = { installed, "open", path, NULL };
    cli_bytes out;
    int ended;
    assert_int_equal(cli_run_program(argv, NULL, true, &out, &ended), 0);
    unsetenv("LD_LIBRARY_PATH");
    assert_non_null(strstr(out.at, "#error installed headers"));
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), EXIT_USAGE);
    free(out.at);
}

/* A signal that comes while the compiler runs ends the command, when what it made is gone. */
static void ending_leaves_nothing(void **state)
{
    (void)state;
    char self[4096], path[256], compiler[256];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    snprintf(path, sizeof path, "%s", write_text("mine.c", MODEL));
    snprintf(compiler, sizeof compiler, "%s",
             write_text("compiler", "#!/bin/sh\nkill -TERM $PPID\nexec cc \"$@\"\n"));
    assert_int_equal(chmod(compiler, 0700), 0);
    setenv("CC", compiler, 1);
    char *argv[] = { self, "open", path, NULL };
    cli_bytes out;
    int ended;
    assert_int_equal(cli_run_program(argv, NULL, true, &out, &ended), 0);
    unsetenv("CC");
    assert_string_equal(out.at, "");
    assert_true(WIFSIGNALED(ended));
    assert_int_equal(WTERMSIG(ended), SIGTERM);
    free(out.at);
}

/* What this program does when it is started again, elsewhere. */
static int open_only(const char *path)
{
    model_file m;
    int status = EXIT_DONE;
    if (model_file_open(&train_cli, path, &m, &status))
        ls_model_free(m.model);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "open") == 0)
        return open_only(argv[2]);
#define FILE_TEST(fn) cmocka_unit_test_setup_teardown(fn, make_folders, remove_folders)
    const struct CMUnitTest tests[] = {
        FILE_TEST(a_file_is_compiled_and_opened),
        FILE_TEST(the_example_is_a_model),
        FILE_TEST(a_shared_library_is_opened),
        FILE_TEST(names_are_models),
        FILE_TEST(what_does_not_compile_says_why),
        FILE_TEST(many_messages_are_cut),
        FILE_TEST(warnings_are_shown),
        FILE_TEST(compilers_are_looked_for),
        FILE_TEST(libraries_that_are_none_are_told),
        FILE_TEST(models_without_a_model_are_told),
        FILE_TEST(installed_headers_are_found),
        FILE_TEST(ending_leaves_nothing),
    };
    unsetenv("CC");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
