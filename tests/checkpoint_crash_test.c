/*
 * Checkpoints when things go wrong below: the process is killed before each call of the system that
 * writes, or half-way through it; each of them fails; the disk is full, or read-only. What was there is
 * whole, what is new is whole or not there, and what was left is cleaned up, but nothing that
 * somebody still writes.
 *
 * The linker puts the functions below in front of the system's (--wrap). Processes that die are this
 * program again: CHILD DIRECTORY MODE N.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <lockstep/checkpoint.h>
#include <lockstep/ops.h>

#include "os/file_test_support.h"

/* More than a buffer of the writer's: a file is several calls. */
enum { COUNT = 150000 };

enum { NEVER = -1 };
static long countdown = NEVER; /* calls until it happens */
static enum { DIE, DIE_HALFWAY, STOP, FAIL, FAIL_HALFWAY } what;
static int error_of_it;
static bool happened;
static int told_to = -1; /* who is told that this process has stopped */

/* Whether it happens in this call; to who dies, it does. */
static bool happens(void)
{
    if (countdown < 0 || countdown-- != 0)
        return false;
    happened = true;
    if (what == DIE)
        raise(SIGKILL);
    return true;
}

ssize_t __real_write(int file, const void *data, size_t n);
ssize_t __wrap_write(int file, const void *data, size_t n);
ssize_t __wrap_write(int file, const void *data, size_t n)
{
    if (!happens())
        return __real_write(file, data, n);
    if (what == DIE_HALFWAY && __real_write(file, data, n / 2) >= 0)
        raise(SIGKILL);
    if (what == STOP && __real_write(file, data, n / 2) >= 0 && __real_write(told_to, "", 1) == 1)
        for (;;)
            pause();
    if (what == FAIL_HALFWAY) {
        what = FAIL;
        countdown = 0; /* the rest of it */
        return __real_write(file, data, n / 2);
    }
    errno = error_of_it;
    return -1;
}

#define WRAP(name, parameters, ...)                                                                \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        if (!happens())                                                                            \
            return __real_##name(__VA_ARGS__);                                                     \
        if (what == DIE_HALFWAY && __real_##name(__VA_ARGS__) <= 0) /* done, and then */           \
            raise(SIGKILL);                                                                        \
        errno = error_of_it;                                                                       \
        return -1;                                                                                 \
    }
WRAP(fsync, (int file), file)
WRAP(rename, (const char *from, const char *to), from, to)
WRAP(unlink, (const char *path), path)

/* ---- a run --------------------------------------------------------------------------------------- */

static ls_variable *v;

static ls_checkpoint run_of(double value)
{
    LS_FRAME {
        ls_tensor *t = ls_full(LS_F32, LS_DIMS(COUNT), value);
        if (!v)
            v = ls_variable_new("v", t, true);
        ls_assign(v, t);
    }
    return (ls_checkpoint){ .size = sizeof(ls_checkpoint), .n_variables = 1, .variables = &v };
}

static ls_status save(const char *directory, int64_t step, int keep)
{
    ls_checkpoint c = run_of((double)step);
    return ls_checkpoint_save_step(directory, &c, step, keep);
}

/* The newest is a whole one: all its values are that of its step. Which. */
static int64_t check_newest(const char *directory)
{
    char path[200];
    int64_t step = 0;
    ls_checkpoint c = run_of(-1);
    if (ls_checkpoint_newest(directory, path, sizeof path) || ls_checkpoint_restore(path, &c))
        fail_msg("%s", ls_error_report());
    assert_int_equal(sscanf(strrchr(path, '/'), "/step-%ld", &step), 1);
    LS_FRAME {
        const float *at = ls_data(ls_read(v));
        for (int i = 0; i < COUNT; i++)
            assert_true(at[i] == (float)step);
    }
    return step;
}

static bool there(const char *name)
{
    return access(in_dir(name), F_OK) == 0;
}

static int clean(void **state)
{
    (void)state;
    ls_error();
    countdown = NEVER;
    happened = false;
    empty_test_dir();
    return 0;
}

/* ---- other processes ------------------------------------------------------------------------------- */

static pid_t start(const char *directory, const char *mode, long n)
{
    extern char **environ;
    char number[24];
    snprintf(number, sizeof number, "%ld", n);
    char *const args[] = { "child", (char *)(uintptr_t)directory, (char *)(uintptr_t)mode, number,
                           NULL };
    pid_t child;
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ), 0);
    return child;
}

static int status_of(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

static int write_on(const char *directory, const char *mode, long n)
{
    what = mode[0] == 'd' ? DIE : mode[0] == 'h' ? DIE_HALFWAY : STOP;
    told_to = (int)n;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* one that stops is not left behind */
    countdown = what == STOP ? 1 : n;
    return save(directory, 2, 1) ? 1 : 0;
}

static void killed(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++) {
        int deaths = 0, news = 0;
        for (long n = 0;; n++) {
            empty_test_dir();
            assert_int_equal(save(test_dir, 1, 1), LS_OK);
            const int status = status_of(start(test_dir, half ? "half" : "die", n));
            const int64_t newest = check_newest(test_dir);
            assert_true(newest == 1 || newest == 2);
            if (WIFEXITED(status)) {
                assert_int_equal(WEXITSTATUS(status), 0);
                assert_int_equal(newest, 2);
                assert_int_equal(entries(), 1);
                break;
            }
            assert_int_equal(WTERMSIG(status), SIGKILL);
            deaths++;
            news += newest == 2;
            /* Who comes next finds no rest of it. */
            assert_int_equal(save(test_dir, 3, 1), LS_OK);
            assert_int_equal(check_newest(test_dir), 3);
            assert_int_equal(entries(), 1);
        }
        /* three of data, the file, its name, the directory, the old one */
        assert_true(deaths >= 7);
        assert_true(news >= 2 && news < deaths);
    }
}

/* What a process that lives has begun is its own. */
static void still_writing(void **state)
{
    (void)state;
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = start(test_dir, "stop", ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_true(there("step-000000002.safetensors.part"));
    assert_int_equal(save(test_dir, 3, 1), LS_OK);
    assert_true(there("step-000000002.safetensors.part"));
    assert_int_equal(save(test_dir, 2, 1), LS_IO); /* nor is it written by two */
    assert_non_null(strstr(ls_error_text(), "somebody else"));
    ls_error();
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_true(WIFSIGNALED(status_of(child)));
    assert_int_equal(save(test_dir, 4, 1), LS_OK);
    assert_false(there("step-000000002.safetensors.part"));
    assert_int_equal(check_newest(test_dir), 4);
    assert_int_equal(entries(), 1);
    close(ends[0]);
}

/* ---- calls that fail ------------------------------------------------------------------------------- */

static int warnings;

static void count_warnings(ls_log_level level, const char *message, void *user)
{
    (void)message;
    (void)user;
    warnings += level == LS_LOG_WARNING;
}

static void refused(void **state)
{
    (void)state;
    int files = open_files();
    ls_log_set(count_warnings, NULL, LS_LOG_WARNING);
    for (int half = 0; half < 2; half++) {
        int failures = 0;
        for (long n = 0;; n++) {
            empty_test_dir();
            assert_int_equal(save(test_dir, 1, 1), LS_OK);
            what = half ? FAIL_HALFWAY : FAIL;
            error_of_it = ENOSPC;
            happened = false;
            warnings = 0;
            countdown = n;
            ls_status st = save(test_dir, 2, 1);
            countdown = NEVER;
            if (!st && !happened)
                break;
            if (st) {
                failures++;
                assert_int_equal(st, LS_IO);
                assert_non_null(strstr(ls_error_text(), in_dir("step-000000002.safetensors")));
                assert_non_null(strstr(ls_error_text(), strerror(ENOSPC)));
                assert_non_null(strstr(ls_error_hint(), "the disk is full"));
                ls_error();
            }
            /* Where the old one cannot be removed the new one is there all the same. */
            assert_int_equal(check_newest(test_dir), st ? 1 : 2);
            assert_int_equal(entries(), 1 + warnings);
            assert_int_equal(save(test_dir, 3, 1), LS_OK);
            assert_int_equal(entries(), 1);
        }
        assert_true(failures >= 5); /* three of data, the file, its name */
    }
    ls_log_set(NULL, NULL, LS_LOG_WARNING);
    assert_int_equal(open_files(), files);
}

/* Places where not even root may write. */
static void unwritable(void **state)
{
    (void)state;
    assert_int_equal(save("/proc/lockstep-test", 1, 1), LS_IO);
    assert_non_null(strstr(ls_error_text(), "/proc/lockstep-test"));
    ls_error();
    ls_checkpoint c = run_of(1);
    assert_true(ls_checkpoint_save("/proc/lockstep-test", &c) != LS_OK);
    assert_non_null(strstr(ls_error_text(), "/proc/lockstep-test"));
    ls_error();
}

/* ---- a disk that is full indeed -------------------------------------------------------------------- */

enum { SKIPPED = 77 };

/* In a process of its own, whose mounts are gone with it. */
static void on_small_disk(void **state)
{
    const char *directory = *state;
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("none", directory, "tmpfs", 0, "size=1m"))
        exit(SKIPPED);
    strcpy(test_dir, directory);
    assert_int_equal(save(directory, 1, 1), LS_OK);
    assert_int_equal(save(directory, 2, 1), LS_IO); /* there is room for one */
    assert_non_null(strstr(ls_error_text(), "step-000000002"));
    assert_non_null(strstr(ls_error_hint(), "the disk is full"));
    ls_error();
    assert_int_equal(check_newest(directory), 1);
    assert_int_equal(entries(), 1);
    /* Half of one that somebody left is in the way, until it is cleaned up. */
    assert_int_equal(unlink(in_dir("step-000000001.safetensors")), 0);
    char *half = calloc(1, 600000);
    assert_non_null(half);
    put_file("step-000000001.safetensors.part", half, 600000);
    free(half);
    assert_int_equal(save(directory, 2, 1), LS_OK);
    assert_int_equal(entries(), 1);
    if (mount("none", directory, NULL, MS_REMOUNT | MS_RDONLY, NULL))
        exit(SKIPPED);
    assert_int_equal(save(directory, 3, 1), LS_IO);
    assert_non_null(strstr(ls_error_text(), strerror(EROFS)));
    ls_error();
    assert_int_equal(check_newest(directory), 2);
}

static void small_disk(void **state)
{
    (void)state;
    const int status = status_of(start(test_dir, "tmpfs", 0));
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED)
        skip(); /* nobody may mount here */
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[2], "tmpfs") == 0) {
        const struct CMUnitTest alone[] = { cmocka_unit_test_prestate(on_small_disk, argv[1]) };
        return cmocka_run_group_tests(alone, NULL, NULL);
    }
    if (argc == 4)
        return write_on(argv[1], argv[2], atol(argv[3]));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(killed, clean),     cmocka_unit_test_setup(still_writing, clean),
        cmocka_unit_test_setup(refused, clean),    cmocka_unit_test_setup(unwritable, clean),
        cmocka_unit_test_setup(small_disk, clean),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
