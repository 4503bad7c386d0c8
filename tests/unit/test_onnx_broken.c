/* test_onnx_broken.c: bytes that are no model, or one that is broken, are refused, and nothing
 * crashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/unit/attributes.h"
#include "tests/unit/onnx_fixture.h"

/* Whatever comes out is asked all that a command would ask before it runs anything. */
static bool survives(const void *bytes, size_t length)
{
    /* In a block of its own size, so that a sanitizer sees a read past its end. */
    void *copy = malloc(length ? length : 1);
    memcpy(copy, bytes, length);
    hwnas_graph *graph = NULL;
    hwnas_status status = hwnas_onnx_read(&graph, "garbage", copy, length);
    free(copy);
    if (status != HWNAS_OK) {
        assert_null(graph);
        assert_true(status == HWNAS_E_INPUT || status == HWNAS_E_UNSUPPORTED);
        assert_true(hwnas_last_error()->message[0]);
        return false;
    }
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    hwnas_graph_digest(graph);
    void *again = NULL;
    assert_int_equal(hwnas_onnx_write(&again, &length, graph, HWNAS_ONNX_SEEDS), HWNAS_OK);
    free(again);
    hwnas_graph_free(graph);
    return true;
}

static void a_file_cut_short_is_refused(void **state)
{
    (void)state;
    hwnas_graph *graph = make_network();
    char *bytes = NULL;
    size_t length;
    assert_int_equal(hwnas_onnx_write((void **)&bytes, &length, graph, HWNAS_ONNX_SEEDS), HWNAS_OK);
    /* Without its last field, the metadata, it still is a model. */
    size_t n_models = 0;
    for (size_t n = 0; n < length; n++)
        n_models += survives(bytes, n);
    assert_int_equal(n_models, 1);
    assert_true(survives(bytes, length));
    free(bytes);
    hwnas_graph_free(graph);
}

static void mutations_do_not_crash(void **state)
{
    (void)state;
    const char *asked = getenv("HWNAS_TEST_MUTATIONS"); /* more, for a long run */
    long n_mutations = asked ? atol(asked) : 4000;
    hwnas_graph *graph = make_network();
    hwnas_rng rng = hwnas_rng_new(20260801, 0);
    for (int form = 0; form < 2; form++) {
        uint8_t *bytes = NULL;
        size_t length;
        assert_int_equal(
            hwnas_onnx_write((void **)&bytes, &length, graph, (hwnas_onnx_weights)form), HWNAS_OK);
        for (long i = 0; i < n_mutations; i++) {
            size_t n = length;
            uint8_t *changed = malloc(2 * length);
            memcpy(changed, bytes, length);
            for (uint32_t k = 1 + hwnas_rng_below(&rng, 4); k; k--) {
                size_t at = hwnas_rng_below(&rng, (uint32_t)n);
                size_t run = hwnas_rng_below(&rng, 16) + 1;
                if (run > n - at)
                    run = n - at;
                switch (hwnas_rng_below(&rng, 5)) {
                case 0:
                    changed[at] ^= (uint8_t)(1u << hwnas_rng_below(&rng, 8));
                    break;
                case 1:
                    changed[at] = (uint8_t)hwnas_rng_u32(&rng);
                    break;
                case 2: /* something that counts, made large */
                    changed[at] = 0xff;
                    break;
                case 3: /* a run left out */
                    memmove(changed + at, changed + at + run, n - at - run);
                    n -= n > run ? run : 0;
                    break;
                case 4: /* a run doubled */
                    if (n + run <= 2 * length) {
                        memmove(changed + at + run, changed + at, n - at);
                        n += run;
                    }
                    break;
                }
            }
            survives(changed, n);
            free(changed);
        }
        free(bytes);
    }
    hwnas_graph_free(graph);
}

/* Puts a length-delimited field before what `buffer` ends with. */
static uint8_t *prepend_field(uint8_t *start, const uint8_t *end, unsigned tag)
{
    size_t length = (size_t)(end - start);
    uint8_t varint[10];
    int n = 0;
    do {
        varint[n] = (uint8_t)((length & 0x7f) | (length > 0x7f ? 0x80 : 0));
        n++;
    } while (length >>= 7);
    start -= n;
    memcpy(start, varint, (size_t)n);
    *--start = (uint8_t)(tag << 3 | 2);
    return start;
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    /* graph { node { attribute { g { node { attribute { g ... */
    enum { SIZE = 1 << 21, MODEL_GRAPH = 7, GRAPH_NODE = 1, NODE_ATTRIBUTE = 5, ATTRIBUTE_G = 6 };
    uint8_t *buffer = hwnas_alloc(SIZE), *end = buffer + SIZE, *start = end;
    while (start - buffer > 64) {
        start = prepend_field(start, end, ATTRIBUTE_G);
        start = prepend_field(start, end, NODE_ATTRIBUTE);
        start = prepend_field(start, end, GRAPH_NODE);
    }
    start = prepend_field(start, end, MODEL_GRAPH);
    assert_false(survives(start, (size_t)(end - start)));
    assert_non_null(strstr(hwnas_last_error()->message, "broken at byte"));
    free(buffer);
}

static void many_empty_messages_are_refused(void **state)
{
    (void)state;
    /* graph { initializer {} initializer {} ... }: two bytes each, some 250 once unpacked. */
    enum { SIZE = 1 << 22, MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5 };
    uint8_t *buffer = hwnas_alloc(SIZE), *end = buffer + SIZE, *start = end;
    while (start - buffer > 64) {
        *--start = 0;
        *--start = GRAPH_INITIALIZER << 3 | 2;
    }
    start = prepend_field(start, end, MODEL_GRAPH);
    assert_false(survives(start, (size_t)(end - start)));
    free(buffer);
}

/* A node of two equal inputs at most, whose other attributes are the defaults. */
static hwnas_status try_axis(const hwnas_op *op, int axis)
{
    const int64_t dims[] = {2, 3, 4, 5};
    char text[32];
    int inputs[2], output;
    hwnas_graph *graph = hwnas_graph_new("axes", 1);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            hwnas_graph_add_input(&inputs[i], graph, i ? "b" : "a", HWNAS_FLOAT32, 4, dims),
            HWNAS_OK);
    snprintf(text, sizeof text, "axis=%d", axis);
    hwnas_attr *attrs = attributes(op, text);
    hwnas_status status = hwnas_graph_add_node(&output, graph, op, "node", attrs,
                                               op->min_inputs < 2 ? 1 : 2, inputs, true);
    free(attrs);
    hwnas_graph_free(graph);
    return status;
}

/* Counted from the end twice, axis -7 of four would be axis 1. */
static void an_axis_that_is_not_there_is_refused(void **state)
{
    (void)state;
    int n = 0;
    for (const hwnas_op *const *op = hwnas_ops; *op; op++) {
        bool has_axis = false;
        for (const hwnas_attr_row *row = (*op)->attrs; row->name; row++)
            has_axis |= !strcmp(row->name, "axis") && row->kind == HWNAS_ATTR_INT;
        if (!has_axis || try_axis(*op, 1) != HWNAS_OK)
            continue;
        n++;
        for (int axis = 5; axis <= 8; axis++)
            if (try_axis(*op, -axis) == HWNAS_OK || try_axis(*op, axis) == HWNAS_OK)
                fail_msg("%s takes axis %d or -%d of four", (*op)->name, axis, axis);
    }
    assert_true(n >= 6);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_axis_that_is_not_there_is_refused),
        cmocka_unit_test(a_file_cut_short_is_refused),
        cmocka_unit_test(mutations_do_not_crash),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(many_empty_messages_are_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
