/* rows.c: products of a matrix with up to four vectors. */
#include "device/onednn/rows.h"

#include <stdlib.h>
#include <string.h>

#include "device/onednn/posts.h"
#include "graph/op.h"

enum { MAX_VECTORS = 4, BLOCK = 4 }; /* BLOCK: rows of the matrix at a time */

typedef struct rows {
    int64_t n_vectors, n_in, n_out;
    float *weights; /* n_out x n_in, and some zeros behind them */
    float *bias;    /* n_out */
    int n_posts;
    hwnas_onednn_post posts[HWNAS_ONEDNN_MAX_POSTS];
} rows;

/* ---- Which groups ---- */

static bool is_single_pixel(const hwnas_tensor *t)
{
    return t->rank == 4 && t->dims[2] == 1 && t->dims[3] == 1;
}

static bool is_product(const hwnas_graph *graph, const hwnas_node *node)
{
    if (node->op->id == HWNAS_OP_LINEAR || node->op->id == HWNAS_OP_MATMUL)
        return hwnas_node_input(graph, node, 1)->rank == 2;
    return node->op->id == HWNAS_OP_CONV && is_single_pixel(hwnas_node_input(graph, node, 0)) &&
           is_single_pixel(hwnas_node_input(graph, node, 1)) &&
           is_single_pixel(hwnas_node_output(graph, node)) &&
           hwnas_node_attr(node, "groups")->ints[0] == 1;
}

static int64_t n_in_of(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    return is_single_pixel(in) && node->op->id == HWNAS_OP_CONV ? in->dims[1]
                                                                : in->dims[in->rank - 1];
}

bool hwnas_onednn_rows_fit(const hwnas_graph *graph, const hwnas_onednn_group *group)
{
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    if (group->has_bytes || !is_product(graph, root))
        return false;
    for (int i = 0; i < group->n_posts; i++)
        if (!hwnas_onednn_has_post(&group->posts[i]))
            return false;
    return hwnas_tensor_count(hwnas_node_input(graph, root, 0)) / n_in_of(graph, root) <=
           MAX_VECTORS;
}

/* ---- Compiling ---- */

/* n_in x n_out as n_out x n_in. */
static hwnas_status turn(float *values, const rows *r, const char *name)
{
    void *copy;
    const size_t bytes = (size_t)(r->n_in * r->n_out) * sizeof *values;
    TRY(hwnas_try_alloc(&copy, bytes, name));
    memcpy(copy, values, bytes);
    for (int64_t i = 0; i < r->n_in; i++)
        for (int64_t k = 0; k < r->n_out; k++)
            values[k * r->n_in + i] = ((float *)copy)[i * r->n_out + k];
    free(copy);
    return HWNAS_OK;
}

hwnas_status hwnas_onednn_rows_compile(hwnas_onednn_step *step, const onednn_device *device,
                                       const hwnas_graph *graph, const hwnas_onednn_group *group,
                                       hwnas_arena *arena)
{
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    rows *r = step->state = hwnas_alloc(sizeof *r);
    void *weights, *bias;
    (void)device;
    r->n_in = n_in_of(graph, root);
    r->n_vectors = hwnas_tensor_count(hwnas_node_input(graph, root, 0)) / r->n_in;
    r->n_out = hwnas_tensor_count(hwnas_node_output(graph, root)) / r->n_vectors;
    const size_t bytes = (size_t)(r->n_in * r->n_out) * sizeof *r->weights;
    const size_t bias_bytes = (size_t)r->n_out * sizeof *r->bias;
    TRY(hwnas_try_alloc(&weights, bytes, step->name));
    r->weights = weights;
    TRY(hwnas_try_alloc(&bias, bias_bytes, step->name));
    r->bias = bias;
    hwnas_tensor_fill(hwnas_node_input(graph, root, 1), r->weights);
    if (root->op->id == HWNAS_OP_MATMUL)
        TRY(turn(r->weights, r, step->name));
    if (group->bias >= 0)
        hwnas_tensor_fill(&graph->tensors[group->bias], r->bias);
    r->n_posts = group->n_posts;
    memcpy(r->posts, group->posts, sizeof r->posts);
    step->n_inputs = step->n_outputs = 1;
    step->input_ids = hwnas_arena_copy(arena, root->inputs, sizeof *step->input_ids);
    step->output_ids = hwnas_arena_copy(arena, &group->chain.output, sizeof *step->output_ids);
    step->bytes = bytes + bias_bytes;
    return HWNAS_OK;
}

/* ---- Running ---- */

/* BLOCK rows of the matrix, from `weights` on, times one vector. */
HWNAS_INLINE void multiply_block(float *out, const float *weights, const float *in, int64_t n)
{
    hwnas_vector sums[BLOCK] = {{0}}, x, w;
    int64_t i = 0;
    for (; i + HWNAS_LANES <= n; i += HWNAS_LANES) {
        hwnas_load(&x, in + i);
        for (int k = 0; k < BLOCK; k++) {
            hwnas_load(&w, weights + k * n + i);
            sums[k] += x * w;
        }
    }
    for (int k = 0; k < BLOCK; k++) {
        out[k] = hwnas_sum(&sums[k]);
        for (int64_t rest = i; rest < n; rest++)
            out[k] += weights[k * n + rest] * in[rest];
    }
}

HWNAS_CLONES static void multiply_four(float *out, const float *weights, const float *in,
                                       const rows *r)
{
    for (int64_t v = 0; v < r->n_vectors; v++)
        multiply_block(out + v * r->n_out, weights, in + v * r->n_in, r->n_in);
}

HWNAS_CLONES static void multiply_one(float *out, const float *weights, const float *in,
                                      const rows *r)
{
    for (int64_t v = 0; v < r->n_vectors; v++) {
        float sum = 0;
        for (int64_t i = 0; i < r->n_in; i++)
            sum += weights[i] * in[v * r->n_in + i];
        out[v * r->n_out] = sum;
    }
}

/* Rows `first` to `end` of the matrix. */
static void run_part(const rows *r, float *out, const float *in, int64_t first, int64_t end)
{
    int64_t at = first;
    for (; at + BLOCK <= end; at += BLOCK)
        multiply_four(out + at, r->weights + at * r->n_in, in, r);
    for (; at < end; at++)
        multiply_one(out + at, r->weights + at * r->n_in, in, r);
    for (int64_t v = 0; v < r->n_vectors; v++) {
        float *part = out + v * r->n_out;
        for (at = first; at < end; at++)
            part[at] += r->bias[at];
        hwnas_onednn_apply_posts(part + first, end - first, r->n_posts, r->posts);
    }
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { WORTH_A_THREAD = 1 << 15 }; /* weights */
    const rows *r = step->state;
    const float *in = hwnas_onednn_values(step->inputs[0]);
    float *out = hwnas_onednn_values(step->outputs[0]);
    int64_t n_parts = r->n_in * r->n_out / WORTH_A_THREAD;
    n_parts = n_parts > device->threads ? device->threads : n_parts;
    if (n_parts < 2) {
        run_part(r, out, in, 0, r->n_out);
        return dnnl_success;
    }
    const int64_t part = (r->n_out / n_parts + BLOCK - 1) / BLOCK * BLOCK;
#pragma omp parallel for num_threads(n_parts)
    for (int64_t i = 0; i < n_parts; i++)
        run_part(r, out, in, i * part < r->n_out ? i * part : r->n_out,
                 i + 1 < n_parts && (i + 1) * part < r->n_out ? (i + 1) * part : r->n_out);
    return dnnl_success;
}

static void free_rows(void *state)
{
    rows *r = state;
    if (!r)
        return;
    free(r->weights);
    free(r->bias);
    free(r);
}

const hwnas_onednn_kind hwnas_onednn_rows = {
    .name = "own loops",
    .run = run,
    .free = free_rows,
};
