/*
 * Damaged pictures: every truncation and every changed bit and byte of small files gives an error or
 * a picture. A truncated file is always an error. A PNG has checksums, so what is accepted
 * is the picture as it was.
 *
 * The file ends where a page ends that is followed by one that must not be read: what the
 * libraries read is seen here even where a sanitizer does not look into them.
 */
#include <lockstep.h>

#include <sys/mman.h>
#include <unistd.h>

#include "data/image.h"
#include "data/image_test_support.h"

enum { ROOM = 1 << 14, MOST = 1 << 20 };

static uint8_t *fence; /* the end of ROOM bytes */

static int build_fence(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *p =
        mmap(NULL, ROOM + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + ROOM, page, PROT_NONE))
        return -1;
    fence = p + ROOM;
    return 0;
}

static int remove_fence(void **state)
{
    (void)state;
    return munmap(fence - ROOM, ROOM + (size_t)sysconf(_SC_PAGESIZE));
}

typedef ls_tensor *(*decoder)(const ls__image_file *f);

/* The first `size` bytes of b, before the fence. */
static ls__image_file behind_fence(const blob *b, size_t size)
{
    assert_true(size <= ROOM);
    memcpy(fence - size, b->at, size);
    return (ls__image_file){ .who = "test", .at = fence - size, .size = size, .most = MOST };
}

static void refused(ls_tensor *t, const char *name, size_t at)
{
    if (t)
        fail_msg("%s: accepted with damage at byte %zu", name, at);
    ls_status st = ls_error_pending();
    if (st != LS_CORRUPT && st != LS_INVALID && st != LS_UNSUPPORTED)
        fail_msg("%s: damage at byte %zu: %s", name, at, ls_error_report());
    ls_error();
}

static void check_truncations(const char *name, decoder decode)
{
    blob b = load_image(name);
    for (size_t size = 0; size < b.size; size++)
        LS_FRAME {
            ls__image_file f = behind_fence(&b, size);
            refused(decode(&f), name, size);
        }
    free(b.at);
}

/* How many changed files were accepted; `strict`: as the same picture. */
static int check_changes(const char *name, decoder decode, bool strict)
{
    blob b = load_image(name);
    int accepted = 0;
    for (size_t at = 0; at < b.size; at++)
        for (int k = 0; k <= 8; k++)
            LS_FRAME {
                ls__image_file f = behind_fence(&b, b.size);
                ls_tensor *whole = strict ? decode(&f) : NULL;
                fence[(ptrdiff_t)at - (ptrdiff_t)b.size] ^= (uint8_t)(k < 8 ? 1 << k : 0xFF);
                ls_tensor *t = decode(&f);
                if (!t) {
                    refused(t, name, at);
                    continue;
                }
                assert_int_equal(ls_error_pending(), LS_OK);
                accepted++;
                if (strict && (ls_size_in_bytes(t) != ls_size_in_bytes(whole) ||
                               memcmp(ls_data(t), ls_data(whole), ls_size_in_bytes(t))))
                    fail_msg("%s: another picture after damage at byte %zu", name, at);
            }
    free(b.at);
    return accepted;
}

static void damaged_jpegs(void **state)
{
    (void)state;
    if (!READS_JPEG)
        skip();
    static const char *const names[] = { "grey.jpg", "rgb_420.jpg", "rgb_progressive.jpg" };
    for (int i = 0; i < 3; i++) {
        check_truncations(names[i], ls__decode_jpeg);
        assert_true(check_changes(names[i], ls__decode_jpeg, false) > 0);
    }
}

static void damaged_pngs(void **state)
{
    (void)state;
    if (!READS_PNG)
        skip();
    static const char *const names[] = {
        "grey1_interlaced.png", "palette4_clear.png", "rgb8.png",
        "grey16_clear.png",     "grey_alpha8.png",    "pixel.png"
    };
    for (int i = 0; i < 6; i++) {
        check_truncations(names[i], ls__decode_png);
        assert_int_equal(check_changes(names[i], ls__decode_png, true), 0);
    }
}

/* Damage to what is no part of the picture changes nothing. */
static void damaged_texts(void **state)
{
    (void)state;
    if (!READS_PNG)
        skip();
    check_truncations("extra.png", ls__decode_png);
    assert_true(check_changes("extra.png", ls__decode_png, true) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(damaged_jpegs, clean),
        cmocka_unit_test_setup(damaged_pngs, clean),
        cmocka_unit_test_setup(damaged_texts, clean),
    };
    return cmocka_run_group_tests(tests, build_fence, remove_fence);
}
