/*
 * SHA-256 against the vectors of the standard, and against what Python's hashlib gives for every
 * length around the borders of blocks, in pieces of every size.
 */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void check(const void *data, size_t bytes, const char *want)
{
    ls__sha256 s;
    char got[65];
    ls__sha256_begin(&s);
    ls__sha256_add(&s, data, bytes);
    ls__sha256_end(&s, got);
    assert_string_equal(got, want);
}

static void vectors(void **state)
{
    (void)state;
    check("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    check(two, strlen(two), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_million(void **state)
{
    (void)state;
    char as[1000], got[65];
    ls__sha256 s;
    memset(as, 'a', sizeof as);
    ls__sha256_begin(&s);
    for (int i = 0; i < 1000; i++)
        ls__sha256_add(&s, as, sizeof as);
    ls__sha256_end(&s, got);
    assert_string_equal(got, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The digests of 0, 1, ... 255 bytes 0, 1, 2, ..., one behind the other, as hexadecimal digits, have
 * this digest:
 *     hashlib.sha256("".join(hashlib.sha256(bytes(range(n))).hexdigest()
 *                            for n in range(256)).encode()).hexdigest() */
static void all_lengths(void **state)
{
    (void)state;
    unsigned char bytes[256];
    ls__sha256 all, s;
    char got[65], cut[65];
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    ls__sha256_begin(&all);
    for (size_t n = 0; n < 256; n++) {
        ls__sha256_begin(&s);
        ls__sha256_add(&s, bytes, n);
        ls__sha256_end(&s, got);
        ls__sha256_add(&all, got, 64);
        for (size_t piece = 1; piece <= 65 && piece < n; piece += 4) {
            ls__sha256_begin(&s);
            for (size_t at = 0; at < n; at += piece)
                ls__sha256_add(&s, bytes + at, n - at < piece ? n - at : piece);
            ls__sha256_end(&s, cut);
            assert_string_equal(cut, got);
        }
    }
    ls__sha256_end(&all, got);
    assert_string_equal(got, "c6af0de529d59e462ef135e191c98cb5a7e18ca9d6e63e3d62c82afe131a25d4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(a_million),
        cmocka_unit_test(all_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
