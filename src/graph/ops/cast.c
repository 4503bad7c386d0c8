/* cast: to another type. All are kept as floats, so a cast rounds, and that to whole numbers cuts
 * off. */
#include <string.h>

#include "base/half.h"
#include "graph/ops/elementwise.h"

static const hwnas_attr_row attrs[] = {
    {.name = "to", .kind = HWNAS_ATTR_INT, .fallback = 0, .low = 0, .high = HWNAS_N_DTYPES - 1,
     .help = "the type"}, /* src/onnx/: its number there */
    {0},
};

static hwnas_status infer(const hwnas_graph *graph, const hwnas_node *node, hwnas_tensor *out)
{
    out->dtype = (hwnas_dtype)node->attrs->ints[0];
    return hwnas_infer_same(graph, node, out);
}

/* Between these, both excluded, a value becomes one of the type by cutting off alone. */
static const struct bounds {
    float low, high;
} bounds[HWNAS_N_DTYPES] = {
    [HWNAS_INT64] = {-0x1p31F, 0x1p31F}, [HWNAS_UINT64] = {-1, 0x1p31F},
    [HWNAS_INT32] = {-0x1p31F, 0x1p31F}, [HWNAS_UINT32] = {-1, 0x1p31F},
    [HWNAS_INT16] = {-32769, 32768},     [HWNAS_UINT16] = {-1, 65536},
    [HWNAS_INT8] = {-129, 128},          [HWNAS_UINT8] = {-1, 256},
};

static void compute(const hwnas_graph *graph, const hwnas_node *node, const float *const *inputs,
                    float *output)
{
    const hwnas_dtype dtype = hwnas_node_output(graph, node)->dtype;
    const struct bounds b = bounds[dtype];
    const int64_t n = hwnas_tensor_count(hwnas_node_output(graph, node));
    const float *in = inputs[0];
    if (dtype == HWNAS_BFLOAT16 || dtype == HWNAS_FLOAT16)
        for (int64_t i = 0; i < n; i++)
            output[i] = dtype == HWNAS_FLOAT16 ? hwnas_half_value(hwnas_half_of(in[i]))
                                               : hwnas_bfloat16_value(hwnas_bfloat16_of(in[i]));
    else if (!hwnas_dtype_is_whole(dtype))
        memcpy(output, in, (size_t)n * sizeof *in);
    else
        for (int64_t i = 0; i < n; i++)
            output[i] = in[i] > b.low && in[i] < b.high ? (float)(int32_t)in[i]
                                                        : hwnas_as_dtype(in[i], dtype);
}

const hwnas_op hwnas_op_cast = {
    .id = HWNAS_OP_CAST,
    .name = "cast",
    .onnx = "Cast",
    .help = "the same values in another type",
    .attrs = attrs,
    .is_internal = true,
    .min_inputs = 1,
    .max_inputs = 1,
    .is_elementwise = true,
    .infer = infer,
    .compute = compute,
};
