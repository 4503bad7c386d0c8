/* matmul: matrix product of the last two dimensions; those before are a batch, where a 1 is
 * repeated. */
#include <string.h>

#include "graph/ops/elementwise.h"

/* The operand's dimension `i` counted from the end; 1 where it has none. */
static int64_t from_end(const hwnas_tensor *tensor, int i)
{
    return i < tensor->rank ? tensor->dims[tensor->rank - 1 - i] : 1;
}

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    const hwnas_tensor *a = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *b = hwnas_node_input(graph, node, 1);
    bool fits = a->rank >= 2 && b->rank >= 2 && from_end(a, 0) == from_end(b, 1);
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 2; fits && i < out->rank; i++) {
        const int64_t x = from_end(a, i), y = from_end(b, i);
        fits = x == y || x == 1 || y == 1;
        out->dims[out->rank - 1 - i] = x > y ? x : y;
    }
    if (!fits)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "'matmul' cannot multiply the shapes %s and %s",
                          hwnas_tensor_shape(a).s, hwnas_tensor_shape(b).s);
    out->dims[out->rank - 2] = from_end(a, 1);
    out->dims[out->rank - 1] = from_end(b, 0);
    return hwnas_check_macs(node, out, from_end(a, 0));
}

static int64_t macs(const hwnas_graph *graph, const hwnas_node *node)
{
    return hwnas_tensor_count(hwnas_node_output(graph, node)) *
           from_end(hwnas_node_input(graph, node, 0), 0);
}

/* Where the operand's matrix for number `at` of the output's matrices begins. */
static int64_t matrix_offset(const hwnas_tensor *in, const hwnas_tensor *out, int64_t at)
{
    int64_t offset = 0, step = from_end(in, 0) * from_end(in, 1);
    for (int i = 2; i < out->rank; i++) {
        const int64_t n = from_end(out, i);
        offset += from_end(in, i) == 1 ? 0 : at % n * step;
        step *= from_end(in, i);
        at /= n;
    }
    return offset;
}

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_tensor *a = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *b = hwnas_node_input(graph, node, 1);
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    const int64_t rows = from_end(out, 1), columns = from_end(out, 0), inner = from_end(a, 0);
    const int64_t n_matrices = hwnas_tensor_count(out) / (rows * columns);
    for (int64_t m = 0; m < n_matrices; m++) {
        const float *x = inputs[0] + matrix_offset(a, out, m);
        const float *y = inputs[1] + matrix_offset(b, out, m);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++) {
                double sum = 0;
                for (int64_t i = 0; i < inner; i++)
                    sum += (double)x[r * inner + i] * y[i * columns + c];
                output[(m * rows + r) * columns + c] = (float)sum;
            }
    }
}

const hwnas_op hwnas_op_matmul = {
    .id = HWNAS_OP_MATMUL,
    .class = HWNAS_CLASS_PRODUCT,
    .name = "matmul",
    .onnx = "MatMul",
    .help = "matrix product of the last two dimensions of two tensors",
    .attrs = hwnas_no_attrs,
    .min_inputs = 2,
    .max_inputs = 2,
    .keeps_zeros = true,
    .joins = true,
    .infer = infer,
    .macs = macs,
    .compute = compute,
};
