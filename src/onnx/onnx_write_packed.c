/* onnx_write_packed.c: products with weights of few bits as MatMulNBits, an operator of ONNX
 * Runtime's own, which it has fast code for. (Older readers of ONNX itself have no 4-bit integers.)
 *
 * Its weights lie as results x blocks x bytes of a block; of two 4-bit numbers in a byte the first
 * has the low bits. Numbers are unsigned, with half of their range as zero where nothing else is
 * said. A file that our own runner reads keeps the nodes as they are, so that their numbers
 * agree. */
#include "graph/pack_weights.h"
#include "onnx/onnx_writer.h"

typedef hwnas_onnx_writer writer;

enum { KERNEL = 1, CODES = 0, SCALES, ZEROS };

/* How the matrix of a product lies. */
typedef struct layout {
    int64_t n_in, n_out, block, n_blocks;
    bool is_turned; /* inputs x results */
    int bits;
} layout;

bool hwnas_onnx_find_packed(writer *w)
{
    const hwnas_graph *from = w->from;
    bool *is_read = hwnas_arena_alloc(w->arena, from->n_tensors * sizeof *is_read);
    bool has_any = false;
    w->is_packed_node = hwnas_arena_alloc(w->arena, (from->n_nodes + 1) * sizeof(bool));
    w->is_packed_tensor = hwnas_arena_alloc(w->arena, from->n_tensors * sizeof(bool));
    if (w->weights != HWNAS_ONNX_VALUES)
        return false;
    for (size_t n = 0; n < from->n_nodes; n++) {
        const hwnas_node *node = &from->nodes[n];
        w->is_packed_node[n] = hwnas_is_packed_kernel(from, node);
        has_any |= w->is_packed_node[n];
        for (int i = 0; i < node->n_inputs; i++)
            *(w->is_packed_node[n] ? &w->is_packed_tensor[node->inputs[i]]
                                   : &is_read[node->inputs[i]]) = true;
    }
    for (size_t t = 0; t < from->n_tensors; t++)
        w->is_packed_tensor[t] &= !is_read[t];
    return has_any;
}

static layout layout_of(const writer *w, const hwnas_node *product, const hwnas_node *kernel)
{
    const hwnas_tensor *codes = hwnas_node_input(w->from, kernel, CODES);
    layout l = {.is_turned = product->op->id == HWNAS_OP_MATMUL,
                .block = hwnas_node_attr(kernel, "block_size")->ints[0],
                .bits = hwnas_packed_bits(codes)};
    l.n_in = codes->dims[!l.is_turned];
    l.n_out = codes->dims[l.is_turned];
    l.n_blocks = (l.n_in + l.block - 1) / l.block;
    return l;
}

/* Where the value of a result and a place lies, of `n` places. */
static int64_t at(const layout *l, int64_t n, int64_t result, int64_t place)
{
    return l->is_turned ? place * l->n_out + result : result * n + place;
}

/* Whether MatMulNBits can say it: ONNX Runtime wants blocks of a power of 2, and zero points that
 * are whole numbers of as many bits as the weights, or floats. */
static bool can_write(const hwnas_graph *graph, const hwnas_node *kernel)
{
    enum { LEAST_BLOCK = 16, MOST_BLOCK = 4096 };
    const int64_t block = hwnas_node_attr(kernel, "block_size")->ints[0];
    const int bits = hwnas_packed_bits(hwnas_node_input(graph, kernel, CODES));
    const hwnas_tensor *zeros =
        kernel->n_inputs > ZEROS ? hwnas_node_input(graph, kernel, ZEROS) : NULL;
    if (!bits || block < LEAST_BLOCK || block > MOST_BLOCK || (block & (block - 1)))
        return false;
    if (!hwnas_node_input(graph, kernel, SCALES)->data || (zeros && !zeros->data))
        return false;
    if (!zeros || !hwnas_dtype_is_whole(zeros->dtype))
        return true;
    const int zero_bits = hwnas_packed_bits(zeros);
    return zero_bits && zero_bits <= bits;
}

bool hwnas_onnx_can_write_packed(const hwnas_graph *graph)
{
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (hwnas_is_packed_kernel(graph, &graph->nodes[n]) && !can_write(graph, &graph->nodes[n]))
            return false;
    return true;
}

/* A number less -2^(bits - 1), at a place among those of its row. */
static void put(uint8_t *row, const layout *l, int64_t place, int value)
{
    const int number = value + (1 << (l->bits - 1));
    row[place * l->bits / 8] |= (uint8_t)(number << (place * l->bits % 8));
}

/* `n` numbers of each result; 0 behind them, as many as fill `n_padded`. */
static const char *add_numbers(writer *w, const char *name, const layout *l,
                               const hwnas_tensor *from, int64_t n, int64_t n_padded, int rank,
                               const int64_t *dims)
{
    const int64_t per_row = n_padded * l->bits / 8;
    uint8_t *bytes = hwnas_arena_alloc(w->arena, (size_t)(l->n_out * per_row));
    for (int64_t o = 0; o < l->n_out; o++)
        for (int64_t i = 0; i < n_padded; i++)
            put(bytes + o * per_row, l, i, i < n ? hwnas_packed_number(from, at(l, n, o, i)) : 0);
    return hwnas_onnx_add_raw(w, name, HWNAS_UINT8, rank, dims, bytes,
                              (size_t)(l->n_out * per_row));
}

/* One float for each block, `added` to it. */
static const char *add_floats(writer *w, const char *name, const layout *l, const float *values,
                              float added)
{
    const int64_t dims[] = {l->n_out, l->n_blocks};
    const size_t bytes = (size_t)(l->n_out * l->n_blocks) * sizeof *values;
    float *turned = hwnas_arena_alloc(w->arena, bytes);
    for (int64_t o = 0; o < l->n_out; o++)
        for (int64_t b = 0; b < l->n_blocks; b++)
            turned[o * l->n_blocks + b] = values[at(l, l->n_blocks, o, b)] + added;
    return hwnas_onnx_add_raw(w, name, HWNAS_FLOAT32, 2, dims, turned, bytes);
}

static void add_weights(writer *w, Onnx__NodeProto *to, const char *name, const layout *l,
                        const hwnas_node *kernel)
{
    const int64_t per_block = l->block * l->bits / 8, n_in = l->n_blocks * l->block;
    const int64_t whole = 8 / l->bits, n_zeros = (l->n_blocks + whole - 1) / whole * whole;
    to->input[to->n_input++] =
        text(add_numbers(w, hwnas_arena_printf(w->arena, "%s.weights", name), l,
                         hwnas_node_input(w->from, kernel, CODES), l->n_in, n_in, 3,
                         (const int64_t[]){l->n_out, l->n_blocks, per_block}));
    to->input[to->n_input++] =
        text(add_floats(w, hwnas_arena_printf(w->arena, "%s.scales", name), l,
                        hwnas_node_input(w->from, kernel, SCALES)->data, 0));
    if (kernel->n_inputs <= ZEROS)
        return;
    const hwnas_tensor *zeros = hwnas_node_input(w->from, kernel, ZEROS);
    const char *zeros_name = hwnas_arena_printf(w->arena, "%s.zeros", name);
    to->input[to->n_input++] =
        text(hwnas_dtype_is_whole(zeros->dtype)
                 ? add_numbers(w, zeros_name, l, zeros, l->n_blocks, n_zeros, 2,
                               (const int64_t[]){l->n_out, n_zeros * l->bits / 8})
                 : add_floats(w, zeros_name, l, zeros->data, (float)(1 << (l->bits - 1))));
}

bool hwnas_onnx_write_packed(writer *w, const hwnas_node *node)
{
    enum { X = 0, BIAS = 2, N_BEFORE_BIAS = 5 };
    const hwnas_node *kernel = hwnas_packed_kernel_of(w->from, node);
    if (!kernel || !w->is_packed_node[kernel - w->from->nodes])
        return false;
    const layout l = layout_of(w, node, kernel);
    Onnx__NodeProto *to = hwnas_onnx_add_node(w, "MatMulNBits", node->name,
                                              hwnas_node_output(w->from, node)->name, 4);
    to->domain = text(HWNAS_ONNX_CONTRIB);
    to->input[to->n_input++] = text(hwnas_node_input(w->from, node, X)->name);
    add_weights(w, to, node->name, &l, kernel);
    if (node->n_inputs > BIAS) {
        while (to->n_input < N_BEFORE_BIAS)
            to->input[to->n_input++] = text("");
        to->input[to->n_input++] = text(hwnas_node_input(w->from, node, BIAS)->name);
    }
    hwnas_onnx_add_int(w, to, "K", l.n_in);
    hwnas_onnx_add_int(w, to, "N", l.n_out);
    hwnas_onnx_add_int(w, to, "bits", l.bits);
    hwnas_onnx_add_int(w, to, "block_size", l.block);
    return true;
}
