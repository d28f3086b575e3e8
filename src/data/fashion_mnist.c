/*
 * Fashion-MNIST, as Debian's package dataset-fashion-mnist installs it.
 */
#include <lockstep/data.h>
#include <lockstep/ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define PACKAGE_DIR "/usr/share/datasets/fashion-mnist"

static ls_tensor *read_part(const char *who, const char *dir, const char *prefix, const char *what)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s-%s.gz", dir, prefix, what);
    if (length < 0 || (size_t)length >= sizeof path) {
        ls__fail(LS_INVALID, "%s: the directory's name is too long", who);
        return NULL;
    }
    ls__error_scope scope; /* an error of before stays the first */
    ls__error_scope_open(&scope);
    ls_tensor *t = ls_read_idx(path);
    if (!t && ls_error_pending() == LS_NOT_FOUND) {
        ls_error();
        ls__hint(ls__fail(LS_NOT_FOUND, "'%s' is not there", path),
                 "install Debian's dataset-fashion-mnist, or set LOCKSTEP_FASHION_MNIST to the "
                 "directory of its files");
    }
    ls__error_scope_close(&scope, LS_OK, "%s", who);
    return t;
}

static ls_value *read_both(const char *who, const char *which)
{
    bool train = which && strcmp(which, "train") == 0;
    if (!train && !(which && strcmp(which, "test") == 0)) {
        ls__hint(ls__fail(LS_INVALID, "%s: no part '%s'", who, which ? which : "NULL"),
                 "the parts are \"train\" and \"test\"");
        return NULL;
    }
    const char *dir = getenv("LOCKSTEP_FASHION_MNIST");
    if (!dir || !dir[0])
        dir = PACKAGE_DIR;
    const char *prefix = train ? "train" : "t10k";
    ls_tensor *parts[] = { read_part(who, dir, prefix, "images-idx3-ubyte"),
                           read_part(who, dir, prefix, "labels-idx1-ubyte") };
    if (!parts[0] || !parts[1])
        return NULL;
    if (ls_rank(parts[0]) != 3 || ls_rank(parts[1]) != 1 ||
        ls_dim(parts[0], 0) != ls_dim(parts[1], 0)) {
        ls__fail(LS_CORRUPT, "%s: images %s and labels %s do not belong together", who,
                 ls_describe(parts[0]), ls_describe(parts[1]));
        return NULL;
    }
    return ls_tensors(2, parts);
}

ls_value *ls_read_fashion_mnist(const char *which)
{
    return read_both("ls_read_fashion_mnist", which);
}

ls_dataset *ls_fashion_mnist(const char *which)
{
    ls_value *both = read_both("ls_fashion_mnist", which);
    if (!both)
        return NULL;
    ls_tensor *rows[] = { ls_expand_dims(ls_item(both, 0), -1), ls_item(both, 1) };
    return ls_slices(ls_tensors(2, rows));
}
