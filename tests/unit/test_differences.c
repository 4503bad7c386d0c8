/* Two computations of one network: sums that a person can follow, and inputs in another order. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "graph/op.h"
#include "precision/differences.h"

static void ok(hwnas_status status)
{
    if (status != HWNAS_OK)
        fail_msg("%s", hwnas_last_error()->message);
}

static void test_errors(void **state)
{
    (void)state;
    hwnas_error_sums sums = {0};
    hwnas_error_add(&sums, (const float[]){3, 0}, (const float[]){4, 0}, 2);
    hwnas_error_add(&sums, (const float[]){-3.5F}, (const float[]){-3}, 1);
    hwnas_output_error error = hwnas_error_of(&sums);
    assert_float_equal(error.largest, 0.25, 1e-12); /* 1 of 4 */
    assert_float_equal(error.noise, sqrt((1 + 0.25) / (16 + 9)), 1e-12);
    sums = (hwnas_error_sums){0};
    hwnas_error_add(&sums, (const float[]){0.5F}, (const float[]){0}, 1);
    error = hwnas_error_of(&sums);
    assert_float_equal(error.largest, 0.5, 0); /* of zeros the difference itself */
}

static void test_not_finite(void **state)
{
    (void)state;
    hwnas_error_sums sums = {0};
    hwnas_error_add(&sums, (const float[]){-INFINITY, NAN, 1}, (const float[]){NAN, -INFINITY, 1},
                    3);
    assert_float_equal(hwnas_error_of(&sums).largest, 0, 0);
    hwnas_error_add(&sums, (const float[]){NAN}, (const float[]){1}, 1);
    assert_true(isinf(hwnas_error_of(&sums).largest));
    sums = (hwnas_error_sums){0};
    hwnas_error_add(&sums, (const float[]){1}, (const float[]){INFINITY}, 1);
    assert_true(isinf(hwnas_error_of(&sums).largest));
}

/* x - y, whose inputs stand in the order of `names`, that of y at place `y`; the node `other` is of
 * the second alone. */
static hwnas_graph *difference(const char *const names[2], int y, const char *other)
{
    int inputs[2], at[2], out;
    const int64_t dims[2][2] = {{1, 3}, {1, 1}}; /* x is longer than y */
    hwnas_graph *graph = hwnas_graph_new("difference", 1);
    for (int i = 0; i < 2; i++) {
        const int which = i == y;
        ok(hwnas_graph_add_input(&inputs[i], graph, names[i], HWNAS_FLOAT32, 2, dims[which]));
        at[which] = inputs[i];
    }
    ok(hwnas_graph_add_node(&out, graph, hwnas_op_by_name("sub"), "minus", NULL, 2, at, false));
    if (other)
        ok(hwnas_graph_add_node(&out, graph, hwnas_op_by_name("neg"), other, NULL, 1, &out, false));
    hwnas_graph_add_output(graph, out);
    return graph;
}

/* Two samples: in the order of the first network each. */
static void find(hwnas_differences *out, hwnas_graph *const graphs[2])
{
    static const float samples[] = {1, 2, 3, 10, 4, 5, 6, -20};
    hwnas_side sides[2];
    hwnas_device *device;
    ok(hwnas_device_open(&device, "ref", NULL));
    for (int s = 0; s < 2; s++)
        sides[s] = (hwnas_side){"a network", graphs[s], device, HWNAS_F32};
    ok(hwnas_differences_find(out, sides, 2, samples, NULL));
    hwnas_device_close(device);
}

static void test_no_value_is_finite(void **state)
{
    (void)state;
    hwnas_error_sums sums = {0};
    hwnas_error_add(&sums, (const float[]){NAN, INFINITY}, (const float[]){NAN, INFINITY}, 2);
    assert_true(isinf(hwnas_error_of(&sums).largest));
    assert_true(isinf(hwnas_error_of(&sums).noise));
}

static void test_inputs_in_another_order(void **state)
{
    (void)state;
    hwnas_graph *const graphs[] = {difference((const char *const[]){"x", "y"}, 1, NULL),
                                   difference((const char *const[]){"y", "x"}, 0, NULL)};
    hwnas_differences found;
    find(&found, graphs);
    assert_int_equal(found.n_outputs, 1);
    assert_float_equal(found.outputs[0].value, 26, 0); /* 6 + 20 */
    assert_float_equal(found.outputs[0].error.largest, 0, 0);
    assert_int_equal(found.n_nodes, 1);
    assert_string_equal(found.nodes[0].name, "minus");
    assert_float_equal(found.nodes[0].value, 26, 0);
    hwnas_differences_done(&found);
    for (int s = 0; s < 2; s++)
        hwnas_graph_free(graphs[s]);
}

/* Two that compute the same, 6 + 20, when their inputs are paired as they should be; both are
 * freed. */
static void assert_same(hwnas_graph *first, hwnas_graph *second)
{
    hwnas_graph *const graphs[] = {first, second};
    hwnas_differences found;
    find(&found, graphs);
    assert_float_equal(found.outputs[0].value, 26, 0);
    assert_float_equal(found.outputs[0].error.largest, 0, 0);
    hwnas_differences_done(&found);
    hwnas_graph_free(first);
    hwnas_graph_free(second);
}

/* One input of each has a name that the other lacks: the other one is still found by its name. */
static void test_inputs_of_other_names(void **state)
{
    (void)state;
    assert_same(difference((const char *const[]){"x", "y"}, 1, NULL),
                difference((const char *const[]){"y", "z"}, 0, NULL));
}

/* Numbers that an exporter gave say nothing, unless all are there. */
static void test_inputs_of_numbers(void **state)
{
    (void)state;
    assert_same(difference((const char *const[]){"12", "15"}, 1, NULL),
                difference((const char *const[]){"15", "18"}, 1, NULL));
}

static void test_nodes_of_other_names(void **state)
{
    (void)state;
    hwnas_graph *const graphs[] = {difference((const char *const[]){"x", "y"}, 1, NULL),
                                   difference((const char *const[]){"x", "y"}, 1, "minus_two")};
    hwnas_differences found;
    find(&found, graphs);
    assert_float_equal(found.outputs[0].error.largest, 2, 0); /* of another sign */
    assert_int_equal(found.n_nodes, 1);
    assert_float_equal(found.nodes[0].difference, 0, 0);
    assert_int_equal(found.n_others[0], 0);
    assert_int_equal(found.n_others[1], 1);
    hwnas_differences_done(&found);
    for (int s = 0; s < 2; s++)
        hwnas_graph_free(graphs[s]);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_no_value_is_finite),
        cmocka_unit_test(test_inputs_in_another_order),
        cmocka_unit_test(test_inputs_of_other_names),
        cmocka_unit_test(test_inputs_of_numbers),
        cmocka_unit_test(test_nodes_of_other_names),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
