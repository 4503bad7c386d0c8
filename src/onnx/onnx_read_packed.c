/* onnx_read_packed.c: ONNX Runtime's MatMulNBits, as onnx_write_packed.c describes it: a
 * dequantize_linear with a scale for each block of inputs, and a matmul. */
#include <string.h>

#include "onnx/onnx_build.h"

typedef hwnas_onnx_builder builder;

enum { A, B, SCALES, ZEROS, ORDER, BIAS };

typedef struct layout {
    int64_t n_in, n_out, block, n_blocks;
    int bits;
} layout;

static layout read_layout(builder *b)
{
    enum { MOST = 1 << 30 };
    layout l = {.n_in = hwnas_onnx_int(b->node, "K", 0),
                .n_out = hwnas_onnx_int(b->node, "N", 0),
                .block = hwnas_onnx_int(b->node, "block_size", 0)};
    const int64_t bits = hwnas_onnx_int(b->node, "bits", 4);
    if (l.n_in < 1 || l.n_out < 1 || l.n_in > MOST || l.n_out > MOST || l.n_in > MOST / l.n_out)
        hwnas_onnx_refuse(b, "K or N", "is not the size of a matrix");
    else if (l.block < 16 || l.block > MOST || (l.block & (l.block - 1)))
        hwnas_onnx_refuse(b, "block_size", "is not a power of 2 from 16 on");
    else if (bits != 4 && bits != 8)
        hwnas_onnx_refuse(b, "bits", "is neither 4 nor 8");
    if (b->status != HWNAS_OK)
        return l;
    l.bits = (int)bits;
    l.n_blocks = (l.n_in + l.block - 1) / l.block;
    return l;
}

/* The values of an input of so many; NULL after a failure. */
static const float *known(builder *b, size_t i, int64_t n, const char *what)
{
    const hwnas_tensor *tensor = hwnas_onnx_build_known(b, i, what);
    if (tensor && hwnas_tensor_count(tensor) != n)
        hwnas_onnx_refuse(b, what, "is not as large as K, N, bits and block_size say");
    return b->status == HWNAS_OK ? tensor->data : NULL;
}

/* The number at a place of a row of bytes, less half of the range. */
static float number_at(const float *row, const layout *l, int64_t place)
{
    const int byte = (int)row[place * l->bits / 8];
    const int number = byte >> (place * l->bits % 8) & ((1 << l->bits) - 1);
    return (float)(number - (1 << (l->bits - 1)));
}

/* Room for `n` rows, one for each place of the result's inputs. */
static float *new_matrix(int *out, builder *b, const char *suffix, int64_t n, const layout *l,
                         bool is_parameter)
{
    hwnas_graph *graph = b->r->graph;
    const int64_t dims[] = {n, l->n_out};
    const char *name = hwnas_arena_printf(graph->arena, "%s.%s", b->name, suffix);
    *out = b->fallback;
    if (b->status == HWNAS_OK)
        b->status =
            hwnas_graph_add_weight(out, graph, name, 2, dims, HWNAS_INIT_ZERO, is_parameter);
    if (b->status != HWNAS_OK)
        return NULL;
    hwnas_tensor *tensor = &graph->tensors[*out];
    float *values = hwnas_arena_alloc(graph->arena, (size_t)hwnas_tensor_bytes(tensor));
    tensor->data = values;
    return values;
}

static void read_codes(int *out, builder *b, const layout *l)
{
    const int64_t per_row = l->n_blocks * l->block * l->bits / 8;
    const float *bytes = known(b, B, l->n_out * per_row, "B");
    const hwnas_tensor *given = bytes ? hwnas_onnx_build_known(b, B, "B") : NULL;
    if (given && given->dtype != HWNAS_UINT8)
        hwnas_onnx_refuse(b, "B", "is not of bytes");
    if (b->status != HWNAS_OK)
        return;
    float *codes = bytes ? new_matrix(out, b, "weights", l->n_in, l, true) : NULL;
    if (!codes)
        return;
    b->r->graph->tensors[*out].dtype = HWNAS_INT8;
    for (int64_t i = 0; i < l->n_in; i++)
        for (int64_t o = 0; o < l->n_out; o++)
            codes[i * l->n_out + o] = number_at(bytes + o * per_row, l, i);
}

static void read_scales(int *out, builder *b, const layout *l)
{
    const float *from = known(b, SCALES, l->n_out * l->n_blocks, "scales");
    float *scales = from ? new_matrix(out, b, "scales", l->n_blocks, l, false) : NULL;
    for (int64_t i = 0; i < l->n_blocks && scales; i++)
        for (int64_t o = 0; o < l->n_out; o++)
            scales[i * l->n_out + o] = from[o * l->n_blocks + i];
}

/* Packed as the weights are, or as floats from the range's beginning. */
static void read_zeros(int *out, builder *b, const layout *l)
{
    const hwnas_tensor *tensor = hwnas_onnx_build_known(b, ZEROS, "zero_points");
    const bool is_packed = tensor && hwnas_dtype_is_whole(tensor->dtype);
    const int64_t per_row = is_packed ? (l->n_blocks * l->bits + 7) / 8 : l->n_blocks;
    const float *from = tensor ? known(b, ZEROS, l->n_out * per_row, "zero_points") : NULL;
    float *zeros = from ? new_matrix(out, b, "zeros", l->n_blocks, l, false) : NULL;
    if (!zeros)
        return;
    if (is_packed)
        b->r->graph->tensors[*out].dtype = HWNAS_INT8;
    for (int64_t i = 0; i < l->n_blocks; i++)
        for (int64_t o = 0; o < l->n_out; o++)
            zeros[i * l->n_out + o] = is_packed ? number_at(from + o * per_row, l, i)
                                                : from[o * per_row + i] - (1 << (l->bits - 1));
}

hwnas_status hwnas_onnx_read_matmul_n_bits(int *out, hwnas_onnx_reader *r,
                                           const Onnx__NodeProto *node, const char *name)
{
    builder b;
    int x, inputs[3], n = 2;
    TRY(hwnas_onnx_build(&b, &x, r, node, name));
    const layout l = read_layout(&b);
    if (b.status == HWNAS_OK && hwnas_onnx_has_input(node, ORDER))
        hwnas_onnx_refuse(&b, "g_idx", "is not understood: blocks of inputs in their order are");
    if (b.status != HWNAS_OK)
        return hwnas_onnx_built(out, &b, x);
    read_codes(&inputs[0], &b, &l);
    read_scales(&inputs[1], &b, &l);
    if (hwnas_onnx_has_input(node, ZEROS) && b.status == HWNAS_OK)
        read_zeros(&inputs[n++], &b, &l);
    const hwnas_attr attrs[] = {hwnas_attr_int(0), hwnas_attr_int(l.block)};
    const int kernel = hwnas_onnx_make_n(&b, HWNAS_OP_DEQUANTIZE_LINEAR, attrs, n, inputs);
    x = hwnas_onnx_make(&b, HWNAS_OP_MATMUL, NULL, x, kernel);
    if (hwnas_onnx_has_input(node, BIAS))
        x = hwnas_onnx_make(&b, HWNAS_OP_ADD, NULL, x, hwnas_onnx_build_input(&b, BIAS));
    return hwnas_onnx_built(out, &b, x);
}
