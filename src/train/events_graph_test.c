/*
 * Graphs for TensorBoard, read back by the reader of the wire format: names are unique and good, inputs
 * are nodes, calls lie in the layers of their variables, and replicas are joined where they meet.
 */
#include <lockstep.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/wire.h"
#include "train/events.h"

/* ---- reading ---------------------------------------------------------------------------------------- */

enum { NODES = 400, INPUTS = 24, NAME = 120 };

typedef struct node {
    char name[NAME], op[NAME];
    char inputs[INPUTS][NAME];
    int n_inputs;
    int shapes; /* -1: there is no such attribute */
} node;

static struct {
    node at[NODES];
    int n;
} graph;

static void copy(char *to, const uint8_t *from, const uint8_t *end)
{
    assert_true(end - from < NAME);
    memcpy(to, from, (size_t)(end - from));
    to[end - from] = '\0';
}

/* The next field, which must be bytes: from w->at to *inner. */
static uint32_t field(ls__wire *w, const uint8_t *end, const uint8_t **inner)
{
    uint32_t tag;
    assert_true(ls__wire_tag(w, end, &tag));
    assert_int_equal(tag & 7, LS__WIRE_BYTES);
    assert_true(ls__wire_length(w, end, inner));
    return tag >> 3;
}

/* The number of shapes in { key, { list { shape... } } }. */
static void read_attr(node *to, ls__wire w, const uint8_t *end)
{
    const uint8_t *inner;
    char key[NAME];
    assert_int_equal(field(&w, end, &inner), 1);
    copy(key, w.at, inner);
    w.at = inner;
    if (strcmp(key, "_output_shapes") != 0)
        return;
    assert_int_equal(field(&w, end, &inner), 2);
    assert_int_equal(field(&w, end, &inner), 1);
    for (to->shapes = 0; w.at < end; w.at = inner, to->shapes++)
        assert_int_equal(field(&w, end, &inner), 7);
}

static void read_node(ls__wire w, const uint8_t *end)
{
    const uint8_t *inner;
    node *to = &graph.at[graph.n++];
    *to = (node){ .shapes = -1 };
    for (; w.at < end; w.at = inner) {
        uint32_t number = field(&w, end, &inner);
        if (number == 1)
            copy(to->name, w.at, inner);
        else if (number == 2)
            copy(to->op, w.at, inner);
        else if (number == 3 && to->n_inputs < INPUTS)
            copy(to->inputs[to->n_inputs++], w.at, inner);
        else if (number == 5)
            read_attr(to, w, inner);
    }
}

static const node *find(const char *name)
{
    const node *found = NULL;
    size_t length = strcspn(name, ":");
    for (int i = 0; i < graph.n; i++)
        if (strlen(graph.at[i].name) == length && !strncmp(graph.at[i].name, name, length)) {
            assert_null(found); /* no two have one name */
            found = &graph.at[i];
        }
    return found;
}

static const node *the(const char *name)
{
    const node *n = find(name);
    if (!n)
        fail_msg("there is no node '%s'", name);
    return n;
}

static void check_names(void)
{
    for (int i = 0; i < graph.n; i++) {
        const node *n = &graph.at[i];
        assert_true(n->op[0] != '\0');
        assert_null(strstr(n->name, "//"));
        assert_int_equal(strspn(n->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789._-/"),
                         strlen(n->name));
        assert_true(n->name[0] != '_' && n->name[0] != '-' && n->name[0] != '/');
        the(n->name);
        for (int k = 0; k < n->n_inputs; k++) {
            const node *from = the(n->inputs[k]);
            const char *colon = strchr(n->inputs[k], ':');
            assert_true((colon ? atoi(colon + 1) : 0) < from->shapes); /* it has that output */
        }
    }
}

static void read_graph(const ls_function *f)
{
    ls__buffer b = { 0 };
    assert_int_equal(ls__graph_def("test", f, &b), LS_OK);
    assert_false(b.failed);
    const uint8_t *end = (const uint8_t *)b.at + b.used, *inner;
    ls__wire w = { .at = (const uint8_t *)b.at };
    for (graph.n = 0; w.at < end; w.at = inner)
        if (field(&w, end, &inner) == 1)
            read_node(w, inner);
    ls__buffer_free(&b);
    check_names();
}

static bool takes(const char *name, const char *input)
{
    const node *n = the(name);
    for (int i = 0; i < n->n_inputs; i++)
        if (strcmp(n->inputs[i], input) == 0)
            return true;
    return false;
}

/* ---- steps ------------------------------------------------------------------------------------------- */

typedef struct model {
    ls_variable *v[4];
    ls_optimizer *optimizer;
} model;

static void make(model *m, const char *first)
{
    char name[100];
    snprintf(name, sizeof name, "%s/kernel", first);
    m->v[0] = ls_variable_new(name, ls_ones(LS_F32, LS_DIMS(4, 3)), true);
    snprintf(name, sizeof name, "%s/bias", first);
    m->v[1] = ls_variable_new(name, ls_zeros(LS_F32, LS_DIMS(3)), true);
    m->v[2] = ls_variable_new("out/kernel", ls_ones(LS_F32, LS_DIMS(3, 2)), true);
    m->v[3] = ls_variable_new("out/bias", ls_zeros(LS_F32, LS_DIMS(2)), true);
    m->optimizer = ls_adam(NULL);
}

static void unmake(model *m)
{
    ls_optimizer_free(m->optimizer);
    for (int i = 0; i < 4; i++)
        ls_variable_free(m->v[i]);
}

static ls_value *train_step(ls_value *batch, void *user)
{
    model *m = user;
    ls_tape *tape = ls_tape_open();
    ls_tensor *h = ls_relu(ls_dense(ls_item(batch, 0), ls_read(m->v[0]), ls_read(m->v[1])));
    h = ls_dense(h, ls_read(m->v[2]), ls_read(m->v[3]));
    ls_tensor *loss = ls_mean(ls_sparse_softmax_xent(h, ls_item(batch, 1)), LS_ALL_AXES, false);
    ls_minimize(m->optimizer, tape, loss, 4, m->v);
    return ls_leaf(loss);
}

static ls_value *batch(void)
{
    ls_tensor *both[] = { ls_ones(LS_F32, LS_DIMS(8, 4)), ls_zeros(LS_I32, LS_DIMS(8)) };
    return ls_tensors(2, both);
}

static void alone(void **state)
{
    (void)state;
    model m;
    LS_FRAME {
        make(&m, "hidden");
        ls_function *step = ls_trace(train_step, &m);
        assert_non_null(ls_function_call(step, batch()));
        read_graph(step);
        ls_function_free(step);
        unmake(&m);
    }
    assert_string_equal(the("hidden/kernel")->op, "Variable");
    assert_int_equal(the("hidden/kernel")->shapes, 1);
    assert_string_equal(the("argument_1")->op, "Placeholder");
    assert_true(takes("hidden/kernel/read", "hidden/kernel"));
    assert_true(takes("hidden/matmul", "argument_0"));
    assert_true(takes("hidden/matmul", "hidden/kernel/read"));
    assert_true(takes("hidden/relu", "hidden/add"));
    assert_true(takes("out/matmul", "hidden/relu"));
    assert_true(takes("loss/sparse_softmax_xent", "out/add"));
    assert_int_equal(the("loss/sparse_softmax_xent")->shapes, 2);
    assert_true(takes("gradients/loss/sparse_softmax_xent_grad", "loss/sparse_softmax_xent:1"));
    assert_true(takes("gradients/hidden/relu_grad", "hidden/relu"));
    assert_non_null(find("gradients/out/matmul_1"));
    assert_true(takes("updates/hidden/adam_update", "hidden/kernel/m"));
    assert_true(takes("result_0", "loss/mean"));
    assert_null(find("result_1"));
}

static void replicas(void **state)
{
    (void)state;
    model m;
    LS_FRAME {
        ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .replicas = 3));
        assert_non_null(s);
        assert_int_equal(ls_scope_enter(s), LS_OK);
        make(&m, "hidden");
        assert_int_equal(ls_scope_leave(s), LS_OK);
        ls_function *step = ls_trace(train_step, &m);
        assert_non_null(ls_run(s, step, batch()));
        read_graph(step);
        ls_function_free(step);
        unmake(&m);
        ls_strategy_free(s);
    }
    assert_true(takes("hidden/matmul", "hidden/kernel/read"));
    assert_null(find("meet"));
    assert_null(find("meet_writes"));
    /* replica 0's gradient, and the others' */
    assert_true(takes("ls_minimize/sum_replicas", "gradients/hidden/matmul"));
    assert_true(takes("ls_minimize/sum_replicas", "ls_minimize/replica_1"));
    assert_true(takes("ls_minimize/sum_replicas", "ls_minimize/replica_2:3"));
    assert_string_equal(the("ls_minimize/replica_2")->op, "Replica");
    assert_int_equal(the("ls_minimize/replica_2")->shapes, 4);
    assert_null(find("ls_minimize/replica_0"));
    assert_true(takes("ls_minimize/out/adam_update", "out/kernel/v"));
    assert_true(takes("result_0", "loss/mean"));
}

/* What a meeting gives is used: the edge goes from its program to the replica's. */
static ls_value *reduced_step(ls_value *arguments, void *user)
{
    (void)user;
    ls_tensor *x = ls_item(arguments, 0);
    ls_tensor *sum =
        ls_leaf_tensor(ls_all_reduce(ls_get_replica_context(), LS_SUM, ls_leaf(ls_relu(x))));
    ls_tensor *again =
        ls_leaf_tensor(ls_all_reduce(ls_get_replica_context(), LS_MEAN, ls_leaf(ls_exp(sum))));
    return ls_leaf(ls_mul(again, sum));
}

static void results_of_meetings(void **state)
{
    (void)state;
    LS_FRAME {
        ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .replicas = 2));
        ls_function *step = ls_trace(reduced_step, NULL);
        assert_non_null(ls_run(s, step, batch()));
        read_graph(step);
        ls_function_free(step);
        ls_strategy_free(s);
    }
    assert_true(takes("relu", "argument_0"));
    const node *exp_node = the("exp"), *mul = the("mul");
    assert_int_equal(exp_node->n_inputs, 1);
    assert_true(strncmp(exp_node->inputs[0], "ls_all_reduce/", 14) == 0);
    assert_int_equal(mul->n_inputs, 2);
    assert_true(strncmp(mul->inputs[0], "ls_all_reduce_1/", 16) == 0);
    assert_string_equal(mul->inputs[1], exp_node->inputs[0]);
}

/* ---- names ------------------------------------------------------------------------------------------- */

static ls_value *odd_step(ls_value *arguments, void *user)
{
    model *m = user;
    ls_tensor *h = ls_dense(ls_item(arguments, 0), ls_read(m->v[0]), ls_read(m->v[1]));
    return ls_leaf(ls_mul(h, ls_ones(LS_F32, LS_DIMS(3))));
}

static void odd_names(void **state)
{
    (void)state;
    const char *odd[] = { "_x/", "a b:c^d", "\xc3\xbc", "-/-", "/", "argument_0", "x//y", "out" };
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        LS_FRAME {
            model m;
            make(&m, odd[i]);
            ls_function *step = ls_trace(odd_step, &m);
            assert_non_null(ls_function_call(step, batch()));
            read_graph(step); /* looks at all names */
            ls_function_free(step);
            unmake(&m);
        }
}

/* What is added to what it began with is its end. */
static ls_value *residual_step(ls_value *arguments, void *user)
{
    model *m = user;
    ls_tensor *h = ls_dense(ls_item(arguments, 0), ls_read(m->v[0]), ls_read(m->v[1]));
    return ls_leaf(ls_add(h, ls_matmul(ls_dense(h, ls_read(m->v[2]), ls_read(m->v[3])),
                                       ls_ones(LS_F32, LS_DIMS(2, 3)))));
}

static void residual(void **state)
{
    (void)state;
    LS_FRAME {
        model m;
        make(&m, "hidden");
        ls_function *step = ls_trace(residual_step, &m);
        assert_non_null(ls_function_call(step, batch()));
        read_graph(step);
        ls_function_free(step);
        unmake(&m);
    }
    assert_true(takes("out/add_1", "hidden/add"));
    assert_true(takes("out/add_1", "out/matmul_1"));
    assert_true(takes("out/matmul_1", "out/constant"));
    assert_string_equal(the("out/constant")->op, "Const");
}

/* A run that is part of a step: all replicas are in its program. */
typedef struct around {
    ls_strategy *strategy;
    model m;
} around;

static ls_value *outer_step(ls_value *arguments, void *user)
{
    around *a = user;
    return ls_leaf(ls_reduce(a->strategy, LS_SUM,
                             ls_run_eager(a->strategy, odd_step, &a->m, arguments), LS_NO_AXIS));
}

static void run_within(void **state)
{
    (void)state;
    LS_FRAME {
        around a = { .strategy = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .replicas = 2)) };
        LS_SCOPE (a.strategy)
            make(&a.m, "hidden");
        ls_function *step = ls_trace(outer_step, &a);
        assert_non_null(ls_function_call(step, batch()));
        read_graph(step);
        ls_function_free(step);
        unmake(&a.m);
        assert_int_equal(ls_strategy_free(a.strategy), LS_OK);
    }
    assert_true(takes("replica_0/hidden/matmul", "argument_0"));
    assert_true(takes("replica_1/hidden/matmul", "argument_0"));
    assert_true(takes("replica_1/hidden/mul", "replica_1/hidden/add"));
}

static void other_programs(void **state)
{
    (void)state;
    ls__buffer b = { 0 };
    model m;
    LS_FRAME {
        assert_int_equal(ls__graph_def("who", NULL, &b), LS_INVALID);
        assert_non_null(strstr(ls_error_text(), "who: the function is NULL"));
        ls_error();
        make(&m, "hidden");
        ls_function *step = ls_trace(train_step, &m);
        assert_int_equal(ls__graph_def("who", step, &b), LS_STATE);
        assert_non_null(strstr(ls_error_text(), "has no program yet"));
        ls_error();
        assert_int_equal(b.used, 0);
        /* on replicas, and then alone: the last one is shown */
        ls_strategy *s = ls_mirrored(LS_MIRRORED(.devices = "/cpu:0", .replicas = 2));
        ls_function *both = ls_trace(odd_step, &m);
        assert_non_null(ls_run(s, both, batch()));
        assert_non_null(ls_function_call(both, batch()));
        read_graph(both);
        assert_true(takes("result_0", "hidden/mul"));
        ls_function_free(both);
        ls_function_free(step);
        unmake(&m);
        ls_strategy_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone),
        cmocka_unit_test(replicas),
        cmocka_unit_test(results_of_meetings),
        cmocka_unit_test(odd_names),
        cmocka_unit_test(residual),
        cmocka_unit_test(run_within),
        cmocka_unit_test(other_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
