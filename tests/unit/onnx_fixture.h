/* onnx_fixture.h: a network with every operator, and what comes back of one that was written. */
#ifndef HWNAS_TESTS_ONNX_FIXTURE_H
#define HWNAS_TESTS_ONNX_FIXTURE_H

#include "graph/graph.h"
#include "onnx/onnx.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* An attribute of `n` integers. */
hwnas_attr integers(int n, int64_t a, int64_t b, int64_t c, int64_t d);
/* Adds a layer of one input, or of two when `b` is not -1. */
int add(hwnas_graph *graph, const char *op, const char *name, int a, int b,
        const hwnas_attr *attrs);
/* Of images, with all operators for them. */
hwnas_graph *make_network(void);

/* All values of all tensors, by the operators' own plain C; given back to free_values(). */
float **compute(const hwnas_graph *graph);
void free_values(float **values, const hwnas_graph *graph);

void assert_same_outputs(const hwnas_graph *a, const hwnas_graph *b);
hwnas_graph *written_and_read(const hwnas_graph *graph, hwnas_onnx_weights weights, size_t *length);
/* The same graph, with the same outputs. */
void assert_comes_back(const hwnas_graph *graph, hwnas_onnx_weights weights);

#endif
