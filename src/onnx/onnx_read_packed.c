/* onnx_read_packed.c: ONNX Runtime's MatMulNBits, as onnx_write_packed.c describes it: a
 * dequantize_linear with a scale for each block of inputs, and a matmul. */
#include <stdlib.h>

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

/* The number at a place of a row, whose byte is given, less half of the range. */
static int number_in(unsigned char byte, const layout *l, int64_t place)
{
    const int number = byte >> (place * l->bits % 8) & ((1 << l->bits) - 1);
    return number - (1 << (l->bits - 1));
}

/* Values of a tensor of the file; -1: more than fit. */
static int64_t count_of(const Onnx__TensorProto *from)
{
    int64_t n = 1;
    for (size_t i = 0; i < from->n_dims; i++)
        if (__builtin_mul_overflow(n, from->dims[i], &n))
            return -1;
    return n;
}

/* What is computed of constants, as bytes. */
static const unsigned char *computed_bytes(void **owned, builder *b, size_t i, int64_t n,
                                           const char *what)
{
    const float *values = known(b, i, n, what);
    const hwnas_tensor *tensor = values ? hwnas_onnx_build_known(b, i, what) : NULL;
    if (tensor && tensor->dtype != HWNAS_UINT8)
        hwnas_onnx_refuse(b, what, "is not of bytes");
    if (b->status == HWNAS_OK)
        b->status = hwnas_try_alloc(owned, (size_t)n, b->name);
    if (b->status != HWNAS_OK)
        return NULL;
    unsigned char *bytes = *owned;
    for (int64_t k = 0; k < n; k++)
        bytes[k] = (unsigned char)values[k];
    return bytes;
}

/* The same of an input of bytes, which lie in the file or in `owned`, yours to free(). */
static const unsigned char *known_bytes(void **owned, builder *b, size_t i, int64_t n,
                                        const char *what)
{
    hwnas_onnx_named *value = NULL;
    const unsigned char *bytes = NULL;
    *owned = NULL;
    if (b->status == HWNAS_OK && !hwnas_onnx_has_input(b->node, i))
        hwnas_onnx_refuse(b, what, "is absent");
    if (b->status == HWNAS_OK)
        b->status =
            hwnas_onnx_resolve(&value, b->r, b->node->input[i], hwnas_onnx_describe(b->node).s);
    if (b->status != HWNAS_OK)
        return NULL;
    if (!value->constant)
        return computed_bytes(owned, b, i, n, what);
    if (value->constant->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__UINT8)
        hwnas_onnx_refuse(b, what, "is not of bytes");
    else if (count_of(value->constant) != n)
        hwnas_onnx_refuse(b, what, "is not as large as K, N, bits and block_size say");
    else
        b->status = hwnas_onnx_bytes(&bytes, owned, value->constant, n, b->r->folder);
    return b->status == HWNAS_OK ? bytes : NULL;
}

/* A weight of `n` rows, one for each place of the result's inputs. */
static hwnas_tensor *new_matrix(int *out, builder *b, const char *suffix, int64_t n,
                                const layout *l, bool is_parameter)
{
    hwnas_graph *graph = b->r->graph;
    const int64_t dims[] = {n, l->n_out};
    const char *name = hwnas_arena_printf(graph->arena, "%s.%s", b->name, suffix);
    *out = b->fallback;
    if (b->status == HWNAS_OK)
        b->status =
            hwnas_graph_add_weight(out, graph, name, 2, dims, HWNAS_INIT_ZERO, is_parameter);
    return b->status == HWNAS_OK ? &graph->tensors[*out] : NULL;
}

/* Room for such a matrix's values. */
static float *new_floats(hwnas_tensor *tensor, const builder *b)
{
    float *values = hwnas_arena_alloc(b->r->graph->arena, (size_t)hwnas_tensor_bytes(tensor));
    tensor->data = values;
    return values;
}

/* The file's numbers, in the order of ours. */
static void read_codes(int *out, builder *b, const layout *l)
{
    const int64_t per_row = l->n_blocks * l->block * l->bits / 8;
    void *owned;
    const unsigned char *bytes = known_bytes(&owned, b, B, l->n_out * per_row, "B");
    hwnas_tensor *made = bytes ? new_matrix(out, b, "weights", l->n_in, l, true) : NULL;
    if (made) {
        int8_t *codes = hwnas_arena_alloc(b->r->graph->arena, (size_t)(l->n_in * l->n_out));
        for (int64_t o = 0; o < l->n_out; o++)
            for (int64_t i = 0; i < l->n_in; i++)
                codes[i * l->n_out + o] =
                    (int8_t)number_in(bytes[o * per_row + i * l->bits / 8], l, i);
        made->dtype = HWNAS_INT8;
        made->codes.numbers = codes;
    }
    free(owned);
}

static void read_scales(int *out, builder *b, const layout *l)
{
    const float *from = known(b, SCALES, l->n_out * l->n_blocks, "scales");
    hwnas_tensor *made = from ? new_matrix(out, b, "scales", l->n_blocks, l, false) : NULL;
    float *scales = made ? new_floats(made, b) : NULL;
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
    hwnas_tensor *made = from ? new_matrix(out, b, "zeros", l->n_blocks, l, false) : NULL;
    float *zeros = made ? new_floats(made, b) : NULL;
    if (!zeros)
        return;
    if (is_packed)
        made->dtype = HWNAS_INT8;
    for (int64_t i = 0; i < l->n_blocks; i++)
        for (int64_t o = 0; o < l->n_out; o++) {
            const float *row = from + o * per_row;
            const unsigned char byte = is_packed ? (unsigned char)row[i * l->bits / 8] : 0;
            zeros[i * l->n_out + o] =
                is_packed ? (float)number_in(byte, l, i) : row[i] - (float)(1 << (l->bits - 1));
        }
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
