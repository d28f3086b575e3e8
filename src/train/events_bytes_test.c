/*
 * The bytes of events are those that protobuf's own writer makes (the texts below were made with the
 * Python package's SerializeToString, of the messages named beside them), and histograms count right.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/wire_write.h"
#include "train/events.h"
#include "train/events_node.h"

/* ---- bytes ---------------------------------------------------------------------------------------- */

static const double WALL = 1234.5;

/* Whether the bytes from `at` on are these; then where they end. */
static size_t has(const ls__buffer *b, size_t at, const char *hex)
{
    size_t n = strlen(hex) / 2;
    assert_true(b->used >= at + n);
    for (size_t i = 0; i < n; i++) {
        char two[3] = { hex[2 * i], hex[2 * i + 1], '\0' };
        if ((unsigned char)b->at[at + i] != strtoul(two, NULL, 16))
            fail_msg("byte %zu is %02x, not %s", at + i, (unsigned char)b->at[at + i], two);
    }
    return at + n;
}

static void is(ls__buffer *b, const char *hex)
{
    assert_false(b->failed);
    assert_int_equal(b->used, strlen(hex) / 2);
    has(b, 0, hex);
    ls__buffer_free(b);
}

static void small_events(void **state)
{
    (void)state;
    ls__buffer b = { 0 };
    /* Event(wall_time=1234.5, file_version="brain.Event:2") */
    ls__event_version(&b, WALL);
    is(&b, "0900000000004a93401a0d627261696e2e4576656e743a32");
    /* Event(wall_time=1234.5, step=300, summary=Summary(value=[Value(tag="loss",
     * simple_value=0.125)])) */
    ls__event_scalar(&b, WALL, 300, "loss", 0.125);
    is(&b, "0900000000004a934010ac022a0d0a0b0a046c6f7373150000003e");
    /* step=0, simple_value=0 */
    ls__event_scalar(&b, WALL, 0, "loss", 0);
    is(&b, "0900000000004a93402a0d0a0b0a046c6f73731500000000");
    /* step=-1, tag="test/\u00fc", simple_value=inf */
    ls__event_scalar(&b, WALL, -1, "test/\xc3\xbc", INFINITY);
    is(&b, "0900000000004a934010ffffffffffffffffff012a100a0e0a07746573742fc3bc150000807f");
    /* step=7, Value(tag="about", metadata=SummaryMetadata(plugin_data=PluginData(
     * plugin_name="text"), data_class=DATA_CLASS_TENSOR), tensor=TensorProto(dtype=DT_STRING,
     * tensor_shape=TensorShapeProto(), string_val=[b"# hi"])) */
    ls__event_text(&b, WALL, 7, "about", "# hi");
    is(&b,
       "0900000000004a934010072a210a1f0a0561626f7574420a080712004204232068694a0a0a060a0474657874"
       "2002");
    /* Event(wall_time=1234.5, graph_def=b"\n\x03\n\x01x") */
    ls__buffer graph = { .at = "\x0a\x03\x0a\x01x", .used = 5 };
    ls__event_graph(&b, WALL, &graph);
    is(&b, "0900000000004a934022050a030a0178");
}

static void a_histogram(void **state)
{
    (void)state;
    ls__buffer b = { 0 };
    ls__histogram h;
    const float values[] = { 0.5, 0.5, 0.5 };
    ls__histogram_of(LS_F32, values, 3, &h);
    ls__event_histogram(&b, WALL, 2, "w", &h);
    /* step=2, Value(tag="w", metadata=..."histograms"..., tensor=TensorProto(dtype=DT_DOUBLE,
     * tensor_shape 30, 3, tensor_content=29 times 0.5, 0.5, 0; 0.5, 0.5, 3)) */
    size_t at =
        has(&b, 0, "0900000000004a934010022afa050af7050a017742df05080212081202081e1202080322d005");
    for (int i = 0; i < 29; i++)
        at = has(&b, at, "000000000000e03f000000000000e03f0000000000000000");
    at = has(&b, at, "000000000000e03f000000000000e03f0000000000000840");
    at = has(&b, at, "4a100a0c0a0a686973746f6772616d732002");
    assert_int_equal(at, b.used);
    ls__buffer_free(&b);
}

static void a_node(void **state)
{
    (void)state;
    ls__buffer b = { 0 };
    const ls__spec matrix = { LS_BF16, 2, { 4, 3 } }, scalar = { LS_F32, 0, { 0 } };
    /* GraphDef(node=[NodeDef(name="conv/relu", op="relu", input=["conv/add", "x:2"])]) */
    size_t node = ls__node_def_begin(&b, "conv/relu", "relu");
    ls__node_def_input(&b, "conv/add", 0);
    ls__node_def_input(&b, "x", 2);
    ls__wire_end(&b, node);
    is(&b, "0a200a09636f6e762f72656c75120472656c751a08636f6e762f6164641a03783a32");
    /* the same with attr _output_shapes: list of shapes (4, 3) and (), and dtype: DT_BFLOAT16 */
    node = ls__node_def_begin(&b, "conv/relu", "relu");
    ls__node_def_input(&b, "conv/add", 0);
    ls__node_def_input(&b, "x", 2);
    ls__node_def_specs(&b, 2, (const ls__spec *[]){ &matrix, &scalar });
    ls__wire_end(&b, node);
    is(&b,
       "0a4f0a09636f6e762f72656c75120472656c751a08636f6e762f6164641a03783a322a200a0e5f6f75747075"
       "745f736861706573120e0a0c3a0812020804120208033a002a0b0a0564747970651202300e");
}

/* ---- histograms ----------------------------------------------------------------------------------- */

static int64_t total(const ls__histogram *h)
{
    int64_t sum = 0;
    for (int i = 0; i < LS__BUCKETS; i++)
        sum += h->counts[i];
    return sum;
}

/* Every bucket has just the values between its edges, which do not go down. */
static void counts_are_right(const double *x, int n)
{
    ls__histogram h;
    ls__histogram_of(LS_F64, x, n, &h);
    int finite = 0;
    for (int k = 0; k < n; k++)
        finite += isfinite(x[k]) != 0;
    for (int i = 0; i < LS__BUCKETS; i++) {
        int64_t want = 0;
        double left = h.edges[i], right = h.edges[i + 1];
        assert_true(isfinite(left) && left <= right);
        for (int k = 0; k < n; k++)
            want += x[k] >= left && (x[k] < right || (i == LS__BUCKETS - 1 && x[k] == right));
        assert_int_equal(h.counts[i], want);
    }
    assert_int_equal(total(&h), finite);
}

static void buckets(void **state)
{
    (void)state;
    double x[1000];
    for (int i = 0; i < 1000; i++)
        x[i] = sin(i) * exp(i % 17); /* far apart, and close */
    counts_are_right(x, 1000);
    for (int i = 0; i < 1000; i++)
        x[i] = i % 31; /* on the edges */
    counts_are_right(x, 1000);
    for (int i = 0; i < 1000; i++)
        x[i] = 0.1 * (i % 31); /* nearly on them */
    counts_are_right(x, 1000);
    counts_are_right((const double[]){ -1.7e308, 1.7e308, 0, 1 }, 4);
    counts_are_right((const double[]){ 0, 5e-324, 1e-323, -5e-324 }, 4);
    counts_are_right((const double[]){ 1, NAN, 2, INFINITY, -INFINITY, 3, -NAN }, 7);

    /* two neighbours: the edges between are one of them */
    ls__histogram h;
    ls__histogram_of(LS_F64, (const double[]){ 1, nextafter(1, 2), 1 }, 3, &h);
    assert_true(h.edges[0] == 1 && h.edges[LS__BUCKETS] == nextafter(1, 2));
    assert_int_equal(total(&h), 3);
}

static void no_values(void **state)
{
    (void)state;
    ls__histogram h, zero;
    memset(&zero, 0, sizeof zero);
    ls__histogram_of(LS_F32, NULL, 0, &h);
    assert_memory_equal(&h, &zero, sizeof h);
    ls__histogram_of(LS_F64, (const double[]){ NAN, INFINITY, -INFINITY }, 3, &h);
    assert_memory_equal(&h, &zero, sizeof h);
    ls__histogram_of(LS_F64, (const double[]){ NAN, -7, INFINITY }, 3, &h);
    assert_true(h.edges[0] == -7 && h.edges[LS__BUCKETS] == -7);
    assert_int_equal(h.counts[LS__BUCKETS - 1], 1);
    assert_int_equal(total(&h), 1);
}

static void all_dtypes(void **state)
{
    (void)state;
    ls__histogram h;
    ls__histogram_of(LS_I64, (const int64_t[]){ -10, 20, 20 }, 3, &h);
    assert_true(h.edges[0] == -10 && h.edges[1] == -9 && h.edges[LS__BUCKETS] == 20);
    assert_true(h.counts[0] == 1 && h.counts[LS__BUCKETS - 1] == 2);
    ls__histogram_of(LS_U8, (const uint8_t[]){ 0, 255 }, 2, &h);
    assert_true(h.edges[0] == 0 && h.edges[LS__BUCKETS] == 255);
    ls__histogram_of(LS_BOOL, (const uint8_t[]){ 0, 1, 1 }, 3, &h);
    assert_true(h.counts[0] == 1 && h.counts[LS__BUCKETS - 1] == 2);
    ls__histogram_of(LS_BF16, (const uint16_t[]){ 0x3f80, 0x4000 }, 2, &h); /* 1, 2 */
    assert_true(h.edges[0] == 1 && h.edges[LS__BUCKETS] == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_events), cmocka_unit_test(a_histogram), cmocka_unit_test(a_node),
        cmocka_unit_test(buckets),      cmocka_unit_test(no_values),   cmocka_unit_test(all_dtypes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
