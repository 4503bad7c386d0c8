/* byte_graphs.h: graphs that are quantised, as ONNX files write it: a quantisation and its reverse
 * where values are bytes. */
#ifndef HWNAS_TESTS_BYTE_GRAPHS_H
#define HWNAS_TESTS_BYTE_GRAPHS_H

#include "device_fixture.h"

/* Of a group of tests: `cpu` with one thread and with two, and what they are compared with. */
extern hwnas_device *cpu[2], *ref;
int open_devices(void **state);
int close_devices(void **state);

/* How bytes stand for floats. */
typedef struct byte_form {
    hwnas_dtype dtype;
    float scale, zero;
} byte_form;

/* Signed and not, with a zero point and without; of their scales hardly any sum or product lies
 * between two bytes. */
enum { N_BYTE_FORMS = 4 };
extern const byte_form byte_forms[N_BYTE_FORMS];

/* Each returns the tensor that it makes. A name is chosen for the node. */
int named_node(hwnas_graph *graph, const char *op, int n, const int *inputs);
/* `b` < 0: of one input. */
int pair(hwnas_graph *graph, const char *op, int a, int b);
int number(hwnas_graph *graph, float value, hwnas_dtype dtype);
int to_bytes(hwnas_graph *graph, int x, const byte_form *as);
int to_floats(hwnas_graph *graph, int x, const byte_form *as);
/* Both. */
int in_bytes(hwnas_graph *graph, int x, const byte_form *as);

#endif
