/*
 * Checkpoints: what is in the file, what is refused (and has then changed nothing), and damage, of which
 * every byte's is noticed. checkpoint_files_test.c has which files there are.
 */
#include "data/crc32c.h"
#include "train/checkpoint.h"
#include "train/checkpoint_test_support.h"

/* ---- files ----------------------------------------------------------------------------------------- */

static void put_sum(unsigned char *at, uint32_t sum)
{
    char text[9];
    snprintf(text, sizeof text, "%08x", sum);
    memcpy(at, text, 8);
}

/* One text of the header is another of the same length, and the checksum is right. */
static void forge(const char *name, const char *from, const char *to)
{
    bytes b = file_bytes(name);
    unsigned char *at = memmem(b.at, b.n, from, strlen(from));
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
    size_t length = b.at[0] | (size_t)b.at[1] << 8;
    memset(b.at + 8 + LS__SAFETENSORS_SUMS_AT, '0', 8);
    put_sum(b.at + 8 + LS__SAFETENSORS_SUMS_AT, ls__crc32c(0, b.at, 8 + length));
    put_file(name, b.at, b.n);
    free_bytes(&b);
}

/* ---- what is in a file ------------------------------------------------------------------------------- */

static void weights_by_name(void **state)
{
    (void)state;
    static const char *const want[] = {
        "b",
        "lockstep/copies/seen/replica_0",
        "lockstep/copies/seen/replica_1",
        "lockstep/copies/seen/replica_2",
        "lockstep/extra/best",
        "lockstep/input",
        "lockstep/optimizers/0/iterations",
        "lockstep/optimizers/0/rate",
        "lockstep/optimizers/0/settings",
        "lockstep/optimizers/0/slots/m/b",
        "lockstep/optimizers/0/slots/m/w",
        "lockstep/optimizers/0/slots/v/b",
        "lockstep/optimizers/0/slots/v/w",
        "seen",
        "w",
    };
    run r;
    begin(&r, "/cpu:0");
    train(&r, 2);
    LS_FRAME {
        ls_checkpoint c = checkpoint_of(&r);
        const char *best = "best";
        c.extra = ls_dict(1, &best, (ls_value *[]){ ls_leaf(ls_scalar(LS_F64, 0.25)) });
        went_well(ls_checkpoint_save(in_dir("x"), &c));
        ls_value *all = ls_safetensors_read(in_dir("x"));
        assert_int_equal(ls_length(all), sizeof want / sizeof *want);
        for (int i = 0; i < ls_length(all); i++)
            assert_string_equal(ls_key(all, i), want[i]);
        ls_tensor *w = ls_read(r.v[0]);
        assert_memory_equal(ls_data(ls_leaf_tensor(ls_get(all, "w"))), ls_data(w),
                            ls_size_in_bytes(w));
        /* weights alone, as of any file of tensors */
        went_well(ls_variables_restore(2, r.v, all));
        /* what is one's own comes back */
        c.extra = NULL;
        went_well(ls_checkpoint_restore(in_dir("x"), &c));
        assert_int_equal(ls_length(c.extra), 1);
        assert_true(ls_to_double(ls_leaf_tensor(ls_get(c.extra, "best"))) == 0.25);
        c.extra = NULL;
        went_well(ls_checkpoint_save(in_dir("x"), &c));
        c.extra = all;
        went_well(ls_checkpoint_restore(in_dir("x"), &c));
        assert_null(c.extra);
    }
    assert_string_equal(said, "");
    end(&r);
}

static void records(void **state)
{
    (void)state;
    run r;
    begin(&r, "/cpu:0,/cpu:1");
    train(&r, 3);
    LS_FRAME {
        ls_checkpoint c = checkpoint_of(&r);
        ls_checkpoint_record about = { .size = sizeof about };
        c.seed = UINT64_MAX;
        c.command = "lockstep train 'caf\xe9' \xe2\x82\xac\n";
        went_well(ls_checkpoint_save(in_dir("x"), &c));
        went_well(ls_checkpoint_look(in_dir("x"), &about));
        assert_string_equal(about.version, LS_VERSION);
        assert_string_equal(about.profile, ls_math_profile());
        assert_string_equal(about.model, "small");
        assert_string_equal(about.command, "lockstep train 'caf?' \xe2\x82\xac\n");
        assert_int_equal(about.replicas, V);
        assert_int_equal(about.pipelines, 1);
        assert_true(about.seed == UINT64_MAX);
        assert_int_equal(about.steps, 3);
        assert_true(about.same_bits);
        /* a name that is no UTF-8 is still one's own */
        c.model = "caf\xe9.c";
        c.command = NULL;
        went_well(ls_checkpoint_save(in_dir("x"), &c));
        went_well(ls_checkpoint_restore(in_dir("x"), &c));
        went_well(ls_checkpoint_look(in_dir("x"), &about));
        assert_null(about.command);
        c.model = NULL;
        went_well(ls_checkpoint_save(in_dir("x"), &c));
        went_well(ls_checkpoint_look(in_dir("x"), &about));
        assert_null(about.model);
        went_well(ls_checkpoint_restore(in_dir("x"), &c));
        c.model = "small";
        assert_int_equal(ls_checkpoint_restore(in_dir("x"), &c), LS_INVALID);
        failed(LS_INVALID, "no model by name");
        about.size = 8;
        assert_int_equal(ls_checkpoint_look(in_dir("x"), &about), LS_INVALID);
        failed(LS_INVALID, "a record of 8 bytes");
        assert_int_equal(ls_checkpoint_look(in_dir("x"), NULL), LS_INVALID);
        failed(LS_INVALID, "a record of 0 bytes");
    }
    end(&r);
}

static void profiles(void **state)
{
    (void)state;
    const char *profile = ls_math_profile();
    assert_ptr_equal(profile, ls_math_profile());
    assert_true(
        strncmp(profile, "lockstep " LS_VERSION ", ", strlen("lockstep " LS_VERSION ", ")) == 0);
#ifdef LS_HAVE_DNNL
    assert_non_null(strstr(profile, ", oneDNN "));
#else
    assert_non_null(strstr(profile, ", no oneDNN, "));
#endif
    run r;
    begin(&r, "/cpu:0");
    ls_checkpoint c = checkpoint_of(&r);
    went_well(ls_checkpoint_save(in_dir("x"), &c));
    forge("x", "profile\":\"lockstep", "profile\":\"Lockstep");
    went_well(ls_checkpoint_restore(in_dir("x"), &c));
    assert_non_null(strstr(said, "Lockstep " LS_VERSION));
    assert_non_null(strstr(said, profile));
    end(&r);
}

/* ---- digests ----------------------------------------------------------------------------------------- */

static void digests(void **state)
{
    (void)state;
    run one, two;
    char weights[2][LS_DIGEST_MAX];
    begin(&one, "/cpu:0");
    begin(&two, "/cpu:0,/cpu:1");
    assert_string_equal(state_of(&one).text, state_of(&two).text);
    train(&one, 2);
    train(&two, 2);
    assert_string_equal(state_of(&one).text, state_of(&two).text);
    went_well(ls_weights_digest(WEIGHTS, one.v, weights[0]));
    went_well(ls_weights_digest(2, two.v, weights[1])); /* "seen" is not trained */
    assert_string_equal(weights[0], weights[1]);

    /* Each part of a state is in it. */
    ls_checkpoint c = checkpoint_of(&one), without = c;
    char all[LS_DIGEST_MAX], other[LS_DIGEST_MAX];
    went_well(ls_state_digest(&c, all));
    went_well(ls_set_steps(one.s, 99));
    assert_string_not_equal(state_of(&one).text, all);
    went_well(ls_set_steps(one.s, 2));
    went_well(ls_set_rate(one.o, 0.5));
    assert_string_not_equal(state_of(&one).text, all);
    without = c;
    without.input = NULL;
    went_well(ls_state_digest(&without, other));
    assert_string_not_equal(other, all);
    train(&two, 1);
    went_well(ls_weights_digest(2, two.v, weights[1]));
    assert_string_not_equal(weights[0], weights[1]);

    assert_int_equal(ls_weights_digest(2, NULL, other), LS_INVALID);
    failed(LS_INVALID, "NULL");
    assert_int_equal(ls_weights_digest(1, (ls_variable *[]){ NULL }, other), LS_INVALID);
    failed(LS_INVALID, "NULL");
    assert_int_equal(ls_state_digest(&c, NULL), LS_INVALID);
    failed(LS_INVALID, "NULL");
    assert_int_equal(ls_state_digest(NULL, other), LS_INVALID);
    failed(LS_INVALID, "of 0 bytes");
    end(&one);
    end(&two);
}

/* ---- what is refused ------------------------------------------------------------------------------------- */

static void refused(run *r, ls_checkpoint *c, const char *path, ls_status want, const char *word)
{
    const digest before = state_of(r);
    ls_value *extra = c->extra;
    assert_int_equal(ls_checkpoint_restore(path, c), want);
    failed(want, word);
    assert_ptr_equal(c->extra, extra);
    assert_string_equal(state_of(r).text, before.text);
}

static void other_runs(void **state)
{
    (void)state;
    run r, other;
    begin(&r, "/cpu:0");
    train(&r, 4);
    ls_checkpoint c = checkpoint_of(&r), d;
    went_well(ls_checkpoint_save(in_dir("x"), &c));
    end(&r);

    begin_with(&other, "/cpu:0", 2, small_adam(false));
    d = checkpoint_of(&other);
    refused(&other, &d, in_dir("x"), LS_INVALID, "saved with 3 replicas, this run has 2");
    d.model = "large";
    refused(&other, &d, in_dir("x"), LS_INVALID, "of model 'small', this run trains 'large'");
    end(&other);

    begin_with(&other, "/cpu:0", V, ls_adam(NULL)); /* other clipping */
    d = checkpoint_of(&other);
    refused(&other, &d, in_dir("x"), LS_INVALID, "clip_global_norm is 0, it was saved with 0.5");
    end(&other);
    begin_with(&other, "/cpu:0", V, ls_sgd(NULL));
    d = checkpoint_of(&other);
    refused(&other, &d, in_dir("x"), LS_INVALID, "is SGD without momentum, what was saved is Adam");
    end(&other);

    begin(&other, "/cpu:0");
    train(&other, 1);
    d = checkpoint_of(&other);
    d.n_optimizers = 2;
    d.optimizers = (ls_optimizer *[]){ other.o, other.o };
    refused(&other, &d, in_dir("x"), LS_INVALID, "fewer optimizers were saved than the 2");
    d.n_optimizers = 1;
    went_well(ls_checkpoint_restore(in_dir("x"), &d));
    d.n_optimizers = 2;
    went_well(ls_checkpoint_save(in_dir("two"), &d));
    d.n_optimizers = 1;
    refused(&other, &d, in_dir("two"), LS_INVALID, "more optimizers were saved than the 1");
    d = checkpoint_of(&other);
    ls_variable *more[WEIGHTS + 1], *wide[WEIGHTS];
    memcpy(more, other.v, sizeof other.v);
    memcpy(wide, other.v, sizeof other.v);
    LS_FRAME
        LS_SCOPE (other.s) {
            more[WEIGHTS] = ls_variable_new("more", ls_scalar(LS_F32, 1), true);
            wide[0] = ls_variable_new("w", ls_zeros(LS_F32, LS_DIMS(4, 4)), true);
        }
    d.n_variables++;
    d.variables = more;
    refused(&other, &d, in_dir("x"), LS_NOT_FOUND, "'more'");
    d.n_variables--;
    d.variables = wide;
    refused(&other, &d, in_dir("x"), LS_SHAPE, "f32[4,4]");
    d.variables = other.v + 1; /* its slots are of more */
    d.n_variables = 2;
    refused(&other, &d, in_dir("x"), LS_NOT_FOUND, "no variable 'w'");

    /* Another dataset. */
    d = checkpoint_of(&other);
    LS_FRAME
        d.input = ls_iterate(ls_distribute(other.s, ls_take(rows(), 4)));
    refused(&other, &d, in_dir("x"), LS_INVALID, "another dataset");
    ls_iterator_free(d.input);
    /* Without the input it does. */
    d = checkpoint_of(&other);
    d.input = NULL;
    went_well(ls_checkpoint_restore(in_dir("x"), &d));
    went_well(ls_checkpoint_save(in_dir("y"), &d));
    d.input = other.input;
    refused(&other, &d, in_dir("y"), LS_NOT_FOUND, "no position");
    /* And weights alone, for who evaluates. */
    d.input = NULL;
    d.n_optimizers = 0;
    went_well(ls_checkpoint_restore(in_dir("y"), &d));
    ls_variable_free(more[WEIGHTS]);
    ls_variable_free(wide[0]);
    end(&other);
}

/* ---- an input that cannot go there --------------------------------------------------------------------- */

typedef struct counter {
    int64_t next;
    bool refuses;
} counter;

static ls_status count_on(void *state, ls_value **out)
{
    counter *c = state;
    *out = ls_leaf(ls_scalar_int(LS_I64, c->next++));
    return LS_OK;
}

static ls_tensor *save_count(void *state)
{
    const counter *c = state;
    return ls_from(LS_U8, LS_DIMS(sizeof c->next), &c->next);
}

static ls_status load_count(void *state, const ls_tensor *from)
{
    counter *c = state;
    int64_t next;
    ls_status st = ls_copy_out(from, &next, sizeof next);
    if (!st && c->refuses && next == 3)
        return LS_IO;
    c->next = next;
    return st;
}

/* Found out when all else was checked: it goes on where it was, and nothing has changed. */
static void an_input_that_fails(void **state)
{
    (void)state;
    counter count = { 0 };
    ls_variable *v = NULL;
    LS_FRAME {
        ls_generator g;
        ls_generator_init(&g);
        g.user = &count;
        g.next = count_on;
        g.save = save_count;
        g.load = load_count;
        v = ls_variable_new("v", ls_scalar(LS_F32, 1), true);
        ls_iterator *it = ls_iterate(ls_generate(&g));
        ls_checkpoint c = { .size = sizeof c, .n_variables = 1, .variables = &v, .input = it };
        ls_value *n;
        for (int i = 0; i < 3; i++)
            went_well(ls_next(it, &n));
        went_well(ls_checkpoint_save(in_dir("x"), &c));
        for (int i = 0; i < 3; i++)
            went_well(ls_next(it, &n));
        went_well(ls_assign(v, ls_scalar(LS_F32, 2)));
        count.refuses = true;
        assert_int_equal(ls_checkpoint_restore(in_dir("x"), &c), LS_IO);
        assert_int_equal(ls_error(), LS_IO);
        assert_true(ls_to_float(ls_read(v)) == 2);
        went_well(ls_next(it, &n));
        assert_int_equal(ls_to_int(ls_leaf_tensor(n)), 6);
        count.refuses = false;
        went_well(ls_checkpoint_restore(in_dir("x"), &c));
        assert_true(ls_to_float(ls_read(v)) == 1);
        went_well(ls_next(it, &n));
        assert_int_equal(ls_to_int(ls_leaf_tensor(n)), 3);
        ls_iterator_free(it);
        ls_variable_free(v);
    }
}

static void other_pipelines(void **state)
{
    (void)state;
    ls_strategy *s[2];
    for (int i = 0; i < 2; i++)
        s[i] = ls_mirrored(LS_MIRRORED(.replicas = 2, .input_pipelines = i + 1));
    ls_checkpoint c = { .size = sizeof c, .strategy = s[0] };
    went_well(ls_checkpoint_save(in_dir("x"), &c));
    c.strategy = s[1];
    assert_int_equal(ls_checkpoint_restore(in_dir("x"), &c), LS_INVALID);
    failed(LS_INVALID, "saved with 1 input pipeline, this run has 2");
    ls_strategy_free(s[0]);
    ls_strategy_free(s[1]);
}

/* No strategy at all, two optimizers, each with variables of its own. */
static void without_a_strategy(void **state)
{
    (void)state;
    for (int turn = 0; turn < 2; turn++)
        LS_FRAME {
            static char then[LS_DIGEST_MAX];
            char now[LS_DIGEST_MAX];
            ls_variable *v[2] = { ls_variable_new("a", ls_ones(LS_F64, LS_DIMS(2)), true),
                                  ls_variable_new("b", ls_ones(LS_F32, LS_DIMS(3)), true) };
            ls_optimizer *o[2] = { ls_adam(NULL), ls_sgd(LS_SGD(.momentum = 0.5)) };
            ls_tensor *g[2] = { ls_ones(LS_F64, LS_DIMS(2)), ls_ones(LS_F32, LS_DIMS(3)) };
            ls_checkpoint c = { .size = sizeof c,
                                .n_variables = 2,
                                .variables = v,
                                .n_optimizers = 2,
                                .optimizers = o };
            if (turn == 1)
                went_well(ls_checkpoint_restore(in_dir("x"), &c));
            for (int i = 0; i < 2; i++)
                went_well(ls_apply_gradients(o[i], 1, &g[i], &v[i]));
            if (turn == 0)
                went_well(ls_checkpoint_save(in_dir("x"), &c));
            for (int i = 0; i < 2 && turn == 0; i++)
                went_well(ls_apply_gradients(o[i], 1, &g[i], &v[i]));
            went_well(ls_state_digest(&c, turn ? now : then));
            if (turn == 1)
                assert_string_equal(now, then);
            for (int i = 0; i < 2; i++) {
                ls_variable_free(v[i]);
                ls_optimizer_free(o[i]);
            }
        }
}

static ls_value *save_in_step(ls_value *arguments, void *user)
{
    ls_checkpoint_save(in_dir("x"), user);
    return arguments;
}

static void what_cannot_be_saved(void **state)
{
    (void)state;
    run r;
    begin(&r, "/cpu:0,/cpu:1");
    ls_checkpoint c = checkpoint_of(&r), bad;
    LS_FRAME {
        assert_int_equal(ls_checkpoint_save(in_dir("x"), NULL), LS_INVALID);
        failed(LS_INVALID, "of 0 bytes");
        bad = c;
        bad.size = 8;
        assert_int_equal(ls_checkpoint_save(in_dir("x"), &bad), LS_INVALID);
        failed(LS_INVALID, "of 8 bytes");
        bad = c;
        bad.variables = NULL;
        assert_int_equal(ls_checkpoint_save(in_dir("x"), &bad), LS_INVALID);
        failed(LS_INVALID, "3 variables in NULL");
        bad = c;
        bad.optimizers = NULL;
        assert_int_equal(ls_checkpoint_save(in_dir("x"), &bad), LS_INVALID);
        failed(LS_INVALID, "1 optimizers in NULL");
        bad = c;
        bad.optimizers = (ls_optimizer *[]){ NULL };
        assert_int_equal(ls_checkpoint_save(in_dir("x"), &bad), LS_INVALID);
        failed(LS_INVALID, "optimizer is NULL");
        bad = c;
        bad.extra = ls_leaf(ls_scalar(LS_F32, 1));
        assert_int_equal(ls_checkpoint_save(in_dir("x"), &bad), LS_INVALID);
        failed(LS_INVALID, "extra");
        bad.extra = ls_dict(
            1, (const char *[]){ "s" },
            (ls_value *[]){ ls_leaf(ls_from_strings(LS_SCALAR, (const void *[]){ "a" }, NULL)) });
        assert_int_equal(ls_checkpoint_save(in_dir("x"), &bad), LS_SHAPE);
        failed(LS_SHAPE, "bytes");
        char none[LS_DIGEST_MAX];
        assert_int_equal(ls_state_digest(&bad, none), LS_SHAPE);
        failed(LS_SHAPE, "lockstep/extra/s");
        bad = c;
        bad.variables = (ls_variable *[]){ r.v[0], r.v[1], r.v[0] };
        assert_int_equal(ls_checkpoint_save(in_dir("x"), &bad), LS_INVALID);
        failed(LS_INVALID, "'w'");
        ls_variable *own = ls_variable_new("lockstep/w", ls_scalar(LS_F32, 1), true);
        bad.n_variables = 1;
        bad.variables = &own;
        assert_int_equal(ls_checkpoint_save(in_dir("x"), &bad), LS_INVALID);
        failed(LS_INVALID, "lockstep/w");
        ls_variable_free(own);
        assert_int_equal(ls_checkpoint_save(NULL, &c), LS_INVALID);
        failed(LS_INVALID, "NULL");
        assert_null(ls_run_eager(r.s, save_in_step, &c, ls_list(0, NULL)));
        failed(LS_STATE, "by a replica");
        ls_function *f = ls_trace(save_in_step, &c);
        assert_null(ls_function_call(f, ls_list(0, NULL)));
        failed(LS_STATE, "traced");
        ls_function_free(f);
        assert_int_equal(entries(), 0);
    }
    end(&r);
}

/* ---- damage ------------------------------------------------------------------------------------------------ */

static void is_damaged(ls_checkpoint *c, const unsigned char *data, size_t n, size_t which)
{
    const char *path = put_in_memory(data, n);
    if (ls_checkpoint_restore(path, c) != LS_CORRUPT)
        fail_msg("byte %zu: %s", which, ls_error_report());
    failed(LS_CORRUPT, path);
}

static void every_byte(void **state)
{
    (void)state;
    run r;
    begin(&r, "/cpu:0");
    train(&r, 1);
    ls_checkpoint c = checkpoint_of(&r);
    went_well(ls_checkpoint_save(in_dir("x"), &c));
    const digest before = state_of(&r);
    bytes b = file_bytes("x");
    for (size_t i = 0; i < 2 * b.n;
         i++) { /* the lowest bit, which keeps most texts texts, and all */
        unsigned char mask = i % 2 ? 1 : 0xff;
        b.at[i / 2] ^= mask;
        is_damaged(&c, b.at, b.n, i / 2);
        b.at[i / 2] ^= mask;
    }
    for (size_t n = 0; n < b.n; n++)
        is_damaged(&c, b.at, n, n);
    assert_string_equal(state_of(&r).text, before.text);
    went_well(ls_checkpoint_restore(put_in_memory(b.at, b.n), &c));
    assert_string_equal(said, "");
    free_bytes(&b);
    end(&r);
}

static void forged_notes(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
        ls_status want;
        const char *word;
    } all[] = {
        { "lockstep.checkpoint\":\"1", "lockstep.checkpoint\":\"2", LS_UNSUPPORTED, "format 2" },
        { "lockstep.checkpoint", "lockstep.checkpoinT", LS_CORRUPT, "no checkpoint" },
        { "lockstep.replicas\":\"3", "lockstep.replicas\":\"0", LS_CORRUPT, "lockstep.replicas" },
        { "lockstep.replicas\":\"3", "lockstep.replicas\":\"x", LS_CORRUPT, "lockstep.replicas" },
        { "lockstep.replicas", "lockstep.repliCAs", LS_CORRUPT, "lockstep.replicas' is missing" },
        { "lockstep.steps\":\"1", "lockstep.steps\":\"-", LS_CORRUPT, "lockstep.steps" },
        { "lockstep.version", "lockstep.Version", LS_CORRUPT, "lockstep.version" },
        { "optimizers/0/iterations", "optimizers/0/iterationS", LS_NOT_FOUND, "iterations" },
        { "optimizers/0/slots/m/w", "optimizers/0/slots/x/w", LS_INVALID, "slots/x/w" },
        { "optimizers/0/slots/m/w", "optimizers/0/slots/m/x", LS_NOT_FOUND, "'x'" },
        { "copies/seen/replica_1", "copies/seen/replica_7", LS_OK, "" }, /* the sum is there */
    };
    run r;
    begin(&r, "/cpu:0");
    train(&r, 1);
    ls_checkpoint c = checkpoint_of(&r);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        went_well(ls_checkpoint_save(in_dir("x"), &c));
        forge("x", all[i].from, all[i].to);
        if (all[i].want)
            refused(&r, &c, in_dir("x"), all[i].want, all[i].word);
        else
            went_well(ls_checkpoint_restore(in_dir("x"), &c));
    }
    /* the package, say, wrote it again: no checksum of ours */
    went_well(ls_checkpoint_save(in_dir("x"), &c));
    bytes b = file_bytes("x");
    b.at[8 + strlen("{\"__metadata__\":")] = '\n';
    put_file("x", b.at, b.n);
    free_bytes(&b);
    refused(&r, &c, in_dir("x"), LS_CORRUPT, "no checkpoint");
    refused(&r, &c, in_dir("none"), LS_NOT_FOUND, "none");
    refused(&r, &c, test_dir, LS_IO, test_dir);
    refused(&r, &c, NULL, LS_INVALID, "NULL");
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(weights_by_name, clean_and_listen),
        cmocka_unit_test_setup(records, clean_and_listen),
        cmocka_unit_test_setup(profiles, clean_and_listen),
        cmocka_unit_test_setup(digests, clean_and_listen),
        cmocka_unit_test_setup(other_runs, clean_and_listen),
        cmocka_unit_test_setup(an_input_that_fails, clean_and_listen),
        cmocka_unit_test_setup(other_pipelines, clean_and_listen),
        cmocka_unit_test_setup(without_a_strategy, clean_and_listen),
        cmocka_unit_test_setup(what_cannot_be_saved, clean_and_listen),
        cmocka_unit_test_setup(every_byte, clean_and_listen),
        cmocka_unit_test_setup(forged_notes, clean_and_listen),
    };
    return cmocka_run_group_tests(tests, make_test_dir, remove_test_dir);
}
