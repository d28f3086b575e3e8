/*
 * Crashes of a user's code are told in one line. They are had in another process: this program, started
 * again.
 */
#include "crash_guard.h"

#include <signal.h>
#include <sys/wait.h>

#include "model_file.h"
#include "process.h"
#include "test_model.h"

/* What this program does when it is started again. */
static int crash(const char *how, const char *path)
{
    const cli c = { .name = "lockstep train", .json = strcmp(how, "json") == 0 };
    model_file m;
    int status;
    crash_guard_install(&c, "the model \"mine.c\"");
    if (strcmp(how, "saved") == 0) {
        crash_guard_saved("run/step-000000009.safetensors");
        crash_guard_saved("run/step-000000010.safetensors");
        crash_guard_step(17);
        raise(SIGFPE);
    }
    if (strcmp(how, "json") == 0) {
        crash_guard_saved("a\\b");
        abort();
    }
    if (strcmp(how, "exit") == 0)
        exit(0);
    bool opened = model_file_open(&c, path, &m, &status);
    crash_guard_remove();
    if (!opened)
        return status;
    ls_model_free(m.model);
    return EXIT_DONE;
}

static void assert_crashes(const char *how, const char *path, int status, const char *told)
{
    char *argv[] = { "/proc/self/exe", "crash", (char *)how, (char *)path, NULL };
    char self[4096];
    ssize_t n = readlink(argv[0], self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    argv[0] = self;
    cli_bytes out;
    int ended;
    assert_int_equal(cli_run_program(argv, NULL, true, &out, &ended), 0);
    assert_string_equal(out.at, told);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), status);
    free(out.at);
}

static void crashes_are_told(void **state)
{
    (void)state;
    const char *in_call =
        write_text("crash.c", "void *lockstep_model(void) { *(volatile int *)0 = 1; return 0; }\n");
    assert_crashes("call", in_call, EXIT_FAILED,
                   "lockstep train: the model \"mine.c\" crashed (SIGSEGV) in lockstep_model()\n");
    const char *loading = write_text(
        "load.c",
        "#include <stdlib.h>\n__attribute__((constructor)) static void early(void) { abort(); }\n");
    assert_crashes("load", loading, EXIT_FAILED,
                   "lockstep train: the model \"mine.c\" crashed (SIGABRT) while it was loaded\n");
    const char *deep = /* the stack is full: the handler has its own */
        write_text("deep.c", "int (*volatile again)(void);\n"
                             "int lockstep_model(void)\n"
                             "{ volatile char a[10000]; a[9] = 1; return again() + a[9]; }\n"
                             "__attribute__((constructor)) static void set(void)\n"
                             "{ again = lockstep_model; }\n");
    assert_crashes("deep", deep, EXIT_FAILED,
                   "lockstep train: the model \"mine.c\" crashed (SIGSEGV) in lockstep_model()\n");
    assert_crashes("saved", "", EXIT_FAILED,
                   "lockstep train: the model \"mine.c\" crashed (SIGFPE) in step 17; the last "
                   "checkpoint, run/step-000000010.safetensors, is whole\n");
    assert_crashes(
        "json", "", EXIT_FAILED,
        "lockstep train: the model \"mine.c\" crashed (SIGABRT); the last checkpoint, a\\b, is "
        "whole\n{\"event\":\"error\",\"code\":\"LS_INVALID\",\"text\":\"the model "
        "\\\"mine.c\\\" crashed (SIGABRT)\",\"hint\":\"the last checkpoint, a\\\\b, is "
        "whole\"}\n");
    assert_crashes("none", write_text("mine.c", MODEL), EXIT_DONE, "");
    assert_crashes("exit", "", EXIT_FAILED,
                   "lockstep train: the model \"mine.c\" ended the program (exit)\n");
}

static void a_guard_is_removed(void **state)
{
    (void)state;
    struct sigaction before, meanwhile, after;
    assert_int_equal(sigaction(SIGSEGV, NULL, &before), 0);
    crash_guard_install(&train_cli, "the model mine.c");
    assert_int_equal(sigaction(SIGSEGV, NULL, &meanwhile), 0);
    crash_guard_remove();
    assert_int_equal(sigaction(SIGSEGV, NULL, &after), 0);
    assert_true(meanwhile.sa_handler != before.sa_handler);
    assert_true(after.sa_handler == before.sa_handler);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "crash") == 0)
        return crash(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(crashes_are_told, make_folders, remove_folders),
        cmocka_unit_test(a_guard_is_removed),
    };
    unsetenv("CC");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
