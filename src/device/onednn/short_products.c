/* short_products.c: sixteen results of each row stay in registers while the loop walks down a
 * matrix, which so is read once and in the order in which it lies. Of one that is turned the loop
 * takes eight lines at a time, each a result. */
#include "device/onednn/short_products.h"

#include <stdlib.h>
#include <string.h>

#include "device/onednn/repeats.h"
#include "device/onednn/simd.h"
#include "graph/op.h"

enum {
    MOST_ROWS = 4,
    PARTS = HWNAS_LANES / HWNAS_HALF_LANES,
    WORTH_A_THREAD = 1 << 17, /* multiply-adds */
};

typedef struct products {
    bool is_turned; /* the matrix lies as results by inputs */
    int64_t n_rows, n_in, n_out, n_products;
    int64_t *from; /* by product: where its rows begin, and where its matrix does */
} products;

/* ---- Compiling ---- */

static bool is_of_floats(const hwnas_onednn_source *source, const hwnas_node *node)
{
    return source->kept[node->inputs[0]] == dnnl_f32 && source->kept[node->inputs[1]] == dnnl_f32 &&
           source->kept[node->output] == dnnl_f32;
}

bool hwnas_onednn_is_short_product(const hwnas_onednn_source *source, const hwnas_node *node)
{
    if (node->op->id != HWNAS_OP_MATMUL || !is_of_floats(source, node) ||
        hwnas_node_is_whole(source->graph, node))
        return false;
    const hwnas_tensor *rows = hwnas_node_input(source->graph, node, 0);
    const hwnas_tensor *matrix = hwnas_node_input(source->graph, node, 1);
    return rows->rank >= 2 && matrix->rank >= 2 && matrix->kind != HWNAS_TENSOR_WEIGHT &&
           rows->dims[rows->rank - 2] <= MOST_ROWS && matrix->dims[matrix->rank - 1] >= HWNAS_LANES;
}

/* Whether nothing but the last two dimensions change places. */
static bool turns_matrices(const hwnas_node *transpose)
{
    const hwnas_attr *order = hwnas_node_attr(transpose, "order");
    const int64_t rank = (int64_t)order->n;
    for (int64_t i = 0; i < rank - 2; i++)
        if (order->ints[i] != i)
            return false;
    return rank >= 2 && order->ints[rank - 2] == rank - 1;
}

/* `matrix`: a tensor. */
static bool reads_as_matrix(const hwnas_onednn_source *source, const hwnas_node *node, int matrix)
{
    return hwnas_onednn_is_short_product(source, node) && node->inputs[0] != matrix &&
           node->inputs[1] == matrix;
}

bool hwnas_onednn_is_left_lying(const hwnas_onednn_source *source, const hwnas_node *node)
{
    const hwnas_graph *graph = source->graph;
    if (node->op->id != HWNAS_OP_TRANSPOSE || !turns_matrices(node) ||
        hwnas_node_input(graph, node, 0)->kind == HWNAS_TENSOR_WEIGHT ||
        source->kept[node->inputs[0]] != dnnl_f32)
        return false;
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    if (out->dims[out->rank - 2] % HWNAS_HALF_LANES)
        return false;
    for (size_t i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i] == node->output)
            return false;
    for (size_t n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n].n_inputs; i++)
            if (graph->nodes[n].inputs[i] == node->output &&
                !reads_as_matrix(source, &graph->nodes[n], node->output))
                return false;
    return true;
}

bool hwnas_onednn_is_turned_product(const hwnas_onednn_source *source, const hwnas_node *node)
{
    if (!hwnas_onednn_is_short_product(source, node))
        return false;
    const int maker = hwnas_node_input(source->graph, node, 1)->producer;
    return maker >= 0 && hwnas_onednn_is_left_lying(source, &source->graph->nodes[maker]);
}

/* Where product number `i` finds operand `in`, which may be repeated. */
static int64_t place_of(const hwnas_tensor *in, const hwnas_tensor *out, int64_t i)
{
    int64_t place = 0;
    for (int axis = out->rank - 3; axis >= 0; i /= out->dims[axis--])
        place += i % out->dims[axis] * hwnas_onednn_repeat_stride(in, out, axis);
    return place;
}

static void describe(hwnas_onednn_step *step, const hwnas_graph *graph, const hwnas_node *node,
                     bool is_turned)
{
    const hwnas_tensor *rows = hwnas_node_input(graph, node, 0);
    const hwnas_tensor *matrix = hwnas_node_input(graph, node, 1);
    const hwnas_tensor *out = hwnas_node_output(graph, node);
    products *p = step->state = hwnas_alloc(sizeof *p);
    p->is_turned = is_turned;
    p->n_rows = out->dims[out->rank - 2];
    p->n_out = out->dims[out->rank - 1];
    p->n_in = rows->dims[rows->rank - 1];
    p->n_products = hwnas_tensor_count(out) / (p->n_rows * p->n_out);
    p->from = hwnas_alloc(2 * (size_t)p->n_products * sizeof *p->from);
    for (int64_t i = 0; i < p->n_products; i++) {
        p->from[2 * i] = place_of(rows, out, i);
        p->from[2 * i + 1] = place_of(matrix, out, i);
    }
}

static hwnas_status compile(hwnas_onednn_step *step, const onednn_device *device,
                            const hwnas_graph *graph, const hwnas_node *node)
{
    (void)device;
    describe(step, graph, node, false);
    return HWNAS_OK;
}

static hwnas_status compile_turned(hwnas_onednn_step *step, const onednn_device *device,
                                   const hwnas_graph *graph, const hwnas_node *node)
{
    (void)device;
    describe(step, graph, node, true);
    return HWNAS_OK;
}

static void free_products(void *state)
{
    products *p = state;
    if (p)
        free(p->from);
    free(p);
}

/* ---- Running ---- */

/* Sixteen results of each of `n` rows, a constant where it is called. */
HWNAS_INLINE void multiply_tile(float *out, const float *rows, const float *matrix,
                                const products *p, int n)
{
    hwnas_half sums[MOST_ROWS][PARTS] = {{{0}}};
    for (int64_t i = 0; i < p->n_in; i++, matrix += p->n_out)
        for (int row = 0; row < n; row++)
            for (int part = 0; part < PARTS; part++)
                sums[row][part] += *(const hwnas_half *)(matrix + part * HWNAS_HALF_LANES) *
                                   rows[row * p->n_in + i];
    for (int row = 0; row < n; row++)
        memcpy(out + row * p->n_out, sums[row], sizeof sums[row]);
}

/* The last tile begins early enough to be whole, and so computes some results again. */
HWNAS_INLINE void multiply_rows(float *out, const float *rows, const float *matrix,
                                const products *p, int n)
{
    for (int64_t end = HWNAS_LANES; end < p->n_out + HWNAS_LANES; end += HWNAS_LANES) {
        const int64_t first = (end < p->n_out ? end : p->n_out) - HWNAS_LANES;
        multiply_tile(out + first, rows, matrix + first, p, n);
    }
}

/* Sums of the lanes of two: pairs that lie `apart` become one, those of `a` before those of `b`. */
HWNAS_INLINE void add_pairs(hwnas_half *out, const hwnas_half *a, const hwnas_half *b, int apart)
{
    const hwnas_half x = *a, y = *b;
    *out = apart == 4 ? __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11) +
                            __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15)
           : apart == 2 ? __builtin_shufflevector(x, y, 0, 1, 4, 5, 8, 9, 12, 13) +
                              __builtin_shufflevector(x, y, 2, 3, 6, 7, 10, 11, 14, 15)
                        : __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14) +
                              __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15);
}

/* One row times eight lines. */
HWNAS_INLINE void multiply_lines(float *out, const float *row, const float *lines, int64_t n_in)
{
    hwnas_half sums[HWNAS_HALF_LANES] = {{0}};
    for (int64_t i = 0; i < n_in; i += HWNAS_HALF_LANES) {
        const hwnas_half in = *(const hwnas_half *)(row + i);
        _Pragma("GCC unroll 8") for (int k = 0; k < HWNAS_HALF_LANES; k++) sums[k] +=
            *(const hwnas_half *)(lines + k * n_in + i) * in;
    }
    for (int n = HWNAS_HALF_LANES / 2; n; n /= 2)
        for (int k = 0; k < n; k++)
            add_pairs(&sums[k], &sums[2 * k], &sums[2 * k + 1], n);
    *(hwnas_half *)out = sums[0];
}

HWNAS_CLONES static void multiply_turned(float *out, const float *rows, const float *matrix,
                                         const products *p)
{
    for (int64_t end = HWNAS_HALF_LANES; end < p->n_out + HWNAS_HALF_LANES;
         end += HWNAS_HALF_LANES) {
        const int64_t first = (end < p->n_out ? end : p->n_out) - HWNAS_HALF_LANES;
        for (int64_t row = 0; row < p->n_rows; row++)
            multiply_lines(out + row * p->n_out + first, rows + row * p->n_in,
                           matrix + first * p->n_in, p->n_in);
    }
}

HWNAS_CLONES static void multiply(float *out, const float *rows, const float *matrix,
                                  const products *p)
{
    switch (p->n_rows) {
    case 1:
        multiply_rows(out, rows, matrix, p, 1);
        break;
    case 2:
        multiply_rows(out, rows, matrix, p, 2);
        break;
    case 3:
        multiply_rows(out, rows, matrix, p, 3);
        break;
    default:
        multiply_rows(out, rows, matrix, p, MOST_ROWS);
    }
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const products *p = step->state;
    float *out = hwnas_onednn_values(step->outputs[0]);
    const float *rows = hwnas_onednn_values(step->inputs[0]);
    const float *matrix = hwnas_onednn_values(step->inputs[1]);
    const int64_t apart = p->n_rows * p->n_out;
    const bool is_long = p->n_products * apart * p->n_in > WORTH_A_THREAD;
#pragma omp parallel for num_threads(device->threads) if (is_long && device->threads > 1)
    for (int64_t i = 0; i < p->n_products; i++)
        (p->is_turned ? multiply_turned : multiply)(out + i * apart, rows + p->from[2 * i],
                                                    matrix + p->from[2 * i + 1], p);
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_short_products = {
    .name = "own loops",
    .compile = compile,
    .run = run,
    .free = free_products,
};

const hwnas_onednn_kind hwnas_onednn_turned_products = {
    .name = "own loops",
    .compile = compile_turned,
    .run = run,
    .free = free_products,
};
