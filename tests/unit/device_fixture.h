/* device_fixture.h: graphs in tests, node by node, and what one device makes of them against what
 * another does. */
#ifndef HWNAS_TESTS_DEVICE_FIXTURE_H
#define HWNAS_TESTS_DEVICE_FIXTURE_H

#include "device/device.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

void ok(hwnas_status status);
hwnas_device *open_device(const char *spelling, int threads);
/* Appends a node of one or two inputs. */
int add(hwnas_graph *graph, const char *op_name, const char *attrs_text, int a, int b);
/* Dimensions that are 0 are not there; there are four at most. */
int add_input_of(hwnas_graph *graph, hwnas_dtype dtype, const int64_t *dims);
int add_input(hwnas_graph *graph, const int64_t *dims);

typedef struct op_case {
    const char *op, *attrs;
    int64_t dims[2][4]; /* of the inputs, as add_input() has them */
} op_case;

hwnas_graph *graph_of_op(const op_case *c);
/* Between -1 and 1; yours to free(). */
float *random_values(int64_t n, uint64_t stream);
/* Values of all outputs together. */
int64_t count_outputs(const hwnas_graph *graph);
/* What the graph gives for random inputs that depend on `stream`, one output behind the other.
 * Yours to free(). */
float *outcome(hwnas_device *device, const hwnas_graph *graph, uint64_t stream);
float *outcome_in(hwnas_precision precision, hwnas_device *device, const hwnas_graph *graph,
                  uint64_t stream);
/* Runs `a` on one device and `b` on another; they must agree. Returns the relative error. */
double compare(const char *what, hwnas_device *on, const hwnas_graph *a, hwnas_device *truth,
               const hwnas_graph *b, uint64_t stream);

#endif
