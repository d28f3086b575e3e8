/*
 * The list of passes, and their switches. Adding a pass is a line here, a
 * declaration in pass.h and a file.
 */
#include <stdio.h>
#include <string.h>

#include "trace/pass.h"

const ls__pass ls__passes[] = {
    { "dead", true, ls__pass_dead, "what nobody needs is not computed" },
    { "common", true, ls__pass_common, "what is computed twice is computed once" },
    { "writes-last", true, ls__pass_writes_last, "writes come after what can fail" },
    { "fuse-pool", false, ls__pass_fuse_pool, "relu's backward before the pool's" },
    { "fuse-loss", true, ls__pass_fuse_loss, "softmax loss and its gradient in one" },
    { "fuse-attention", false, ls__pass_fuse_attention, "attention written by hand" },
    { "fuse-heads", true, ls__pass_fuse_heads, "attention without moving heads" },
    { "fuse-conv", false, ls__pass_fuse_conv, "convolution, bias, relu" },
    { "fuse-conv-pool", false, ls__pass_fuse_conv_pool, "convolution, bias, pool, relu" },
    { "winograd", false, ls__pass_winograd, "3 x 3 convolutions in fewer products" },
    { "fuse-matmul", true, ls__pass_fuse_matmul, "product, bias, activation" },
    { "pack", false, ls__pass_pack, "weights of products packed" },
    { "layout", false, ls__pass_layout, "blocked layouts between convolutions" },
    { "fuse-chain", true, ls__pass_fuse_chain, "element-wise chains" },
    { "fuse-update", true, ls__pass_fuse_update, "all updates of an optimizer in one" },
    { "products", true, NULL, "gradients of dense layers inside the update" },
    { "early", true, NULL, "such updates before all replicas are done" },
    { "buckets", true, NULL, "gradients side by side" },
    { "memory", true, NULL, "memory used again after its last use" },
    { NULL, false, NULL, NULL },
};

static int find(const char *name, size_t length)
{
    for (int i = 0; ls__passes[i].name; i++)
        if (strlen(ls__passes[i].name) == length && memcmp(ls__passes[i].name, name, length) == 0)
            return i;
    return -1;
}

static ls_status unknown(const char *who, const char *name, size_t length)
{
    char names[200] = "";
    for (int i = 0, at = 0; ls__passes[i].name; i++)
        at += snprintf(names + at, sizeof names - (size_t)at, "%s%s", i ? ", " : "",
                       ls__passes[i].name);
    return ls__hint(ls__fail(LS_INVALID, "%s: there is no pass '%.*s'", who, (int)length, name),
                    "there are %s; or all", names);
}

ls_status ls__pass_set_parse(const char *who, const char *names, ls__pass_set *out)
{
    ls__pass_set set = 0;
    for (const char *at = names ? names : ""; *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        int i = find(at, length);
        if (i < 0 && !(length == 3 && memcmp(at, "all", 3) == 0))
            return unknown(who, at, length);
        set |= i < 0 ? ~(ls__pass_set)0 : (ls__pass_set)1 << i;
        at += length;
    }
    *out = set;
    return LS_OK;
}

ls__pass_set ls__pass_bit(const char *name)
{
    int i = find(name, strlen(name));
    return i < 0 ? 0 : (ls__pass_set)1 << i;
}

bool ls__pass_is_off(ls__pass_set off, const char *name)
{
    return (off & ls__pass_bit(name)) != 0;
}

ls_status ls__passes_run(ls__graph *g, ls__pass_set off)
{
    bool sweep = !ls__pass_is_off(off, "dead");
    for (int i = 0; ls__passes[i].name; i++) {
        if (!ls__passes[i].run || off >> i & 1)
            continue;
        ls__error_scope scope;
        ls__error_scope_open(&scope);
        ls_status st = ls__passes[i].run(g);
        if (!st && sweep) /* what the pass left behind would hide patterns from the next */
            st = ls__pass_dead(g);
        st = ls__error_scope_close(&scope, st, "pass '%s'", ls__passes[i].name);
        if (st)
            return st;
    }
    /* A pass that breaks an invariant must not get as far as wrong numbers. */
    return ls__graph_verify(g);
}
