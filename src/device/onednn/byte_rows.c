/* byte_rows.c: what counts is how fast the matrix comes: oneDNN's product streams 8 GB/s of it. */
#include "device/onednn/byte_rows.h"

#include <stdlib.h>
#include <string.h>

#include "device/onednn/posts.h"
#include "device/onednn/requantize.h"
#include "graph/op.h"

enum { MAX_VECTORS = 4, BLOCK = 4 }; /* BLOCK: rows of the matrix at a time */

typedef struct byte_rows {
    bool is_signed; /* the input */
    int32_t zero;   /* its */
    int64_t n_vectors, n_in, n_out;
    int8_t *weights;      /* n_out x n_in */
    float *scales, *bias; /* n_out */
    int16_t *in;          /* n_vectors x n_in: the bytes without their zero point */
    int n_posts;
    hwnas_onednn_post posts[HWNAS_ONEDNN_MAX_POSTS];
} byte_rows;

static int64_t n_in_of(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    return in->dims[in->rank - 1];
}

bool hwnas_onednn_byte_rows_fit(const hwnas_onednn_source *source, const hwnas_onednn_group *group)
{
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->nodes[0]];
    if (!group->is_product_of_bytes || strcmp(root->op->name, "linear") ||
        hwnas_onednn_is_bytes(source, group->output))
        return false;
    for (int i = 0; i < group->n_posts; i++)
        if (!hwnas_onednn_has_post(&group->posts[i]))
            return false;
    return hwnas_tensor_count(hwnas_node_input(graph, root, 0)) / n_in_of(graph, root) <=
           MAX_VECTORS;
}

static hwnas_status take_buffers(byte_rows *r, hwnas_onednn_step *step)
{
    const size_t n_out = (size_t)r->n_out, n_in = (size_t)(r->n_vectors * r->n_in);
    void *weights, *scales, *bias, *in;
    TRY(hwnas_try_alloc(&weights, n_out * (size_t)r->n_in, step->name));
    r->weights = weights;
    TRY(hwnas_try_alloc(&scales, n_out * sizeof *r->scales, step->name));
    r->scales = scales;
    TRY(hwnas_try_alloc(&bias, n_out * sizeof *r->bias, step->name));
    r->bias = bias;
    TRY(hwnas_try_alloc(&in, n_in * sizeof *r->in, step->name));
    r->in = in;
    step->bytes = n_out * ((size_t)r->n_in + 2 * sizeof(float)) + n_in * sizeof *r->in;
    return HWNAS_OK;
}

hwnas_status hwnas_onednn_byte_rows_compile(hwnas_onednn_step *step,
                                            const hwnas_onednn_source *source,
                                            const hwnas_onednn_group *group, hwnas_arena *arena)
{
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->nodes[0]];
    const hwnas_node *reverse = &graph->nodes[hwnas_node_input(graph, root, 1)->producer];
    hwnas_onednn_requantize with;
    byte_rows *r = step->state = hwnas_alloc(sizeof *r);
    r->is_signed = source->kept[group->reads[0]] == dnnl_s8;
    r->n_in = n_in_of(graph, root);
    r->n_vectors = hwnas_tensor_count(hwnas_node_input(graph, root, 0)) / r->n_in;
    r->n_out = hwnas_tensor_count(hwnas_node_output(graph, root)) / r->n_vectors;
    TRY(take_buffers(r, step));
    TRY(hwnas_onednn_fill(r->weights, source, reverse->inputs[0]));
    if (group->bias >= 0 || root->n_inputs > 2)
        hwnas_tensor_fill(&graph->tensors[group->bias >= 0 ? group->bias : root->inputs[2]],
                          r->bias);
    hwnas_onednn_requantize_init(&with, source, group);
    r->zero = with.in[0].zero;
    for (int64_t i = 0; i < r->n_out; i++)
        r->scales[i] = with.scales[with.n_scales == 1 ? 0 : i];
    hwnas_onednn_requantize_done(&with);
    r->n_posts = group->n_posts;
    memcpy(r->posts, group->posts, sizeof r->posts);
    step->n_inputs = step->n_outputs = 1;
    step->input_ids = hwnas_arena_copy(arena, group->reads, sizeof *step->input_ids);
    step->output_ids = hwnas_arena_copy(arena, &group->output, sizeof *step->output_ids);
    return HWNAS_OK;
}

/* ---- Running ---- */

/* BLOCK rows of the matrix times one vector. Two bytes wide, the compiler multiplies and adds
 * pairs. */
HWNAS_CLONES static void multiply_block(int32_t *restrict out, const int8_t *restrict weights,
                                        const int16_t *restrict in, int64_t n)
{
    const int8_t *a = weights, *b = a + n, *c = b + n, *d = c + n;
    int32_t sums[BLOCK] = {0};
    for (int64_t i = 0; i < n; i++) {
        sums[0] += (int16_t)a[i] * in[i];
        sums[1] += (int16_t)b[i] * in[i];
        sums[2] += (int16_t)c[i] * in[i];
        sums[3] += (int16_t)d[i] * in[i];
    }
    memcpy(out, sums, sizeof sums);
}

HWNAS_CLONES static int32_t multiply_row(const int8_t *restrict weights, const int16_t *restrict in,
                                         int64_t n)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (int16_t)weights[i] * in[i];
    return sum;
}

static void widen(const byte_rows *r, const void *bytes)
{
    for (int64_t i = 0; i < r->n_vectors * r->n_in; i++)
        r->in[i] =
            (int16_t)((r->is_signed ? ((const int8_t *)bytes)[i] : ((const uint8_t *)bytes)[i]) -
                      r->zero);
}

/* Rows `at` to `end` with each vector. */
static void multiply(float *out, const byte_rows *r, int64_t at, int64_t end)
{
    for (int64_t v = 0; v < r->n_vectors; v++) {
        const int16_t *in = r->in + v * r->n_in;
        int32_t sums[BLOCK];
        if (end - at == BLOCK)
            multiply_block(sums, r->weights + at * r->n_in, in, r->n_in);
        for (int64_t i = at; i < end; i++) {
            if (end - at < BLOCK)
                sums[i - at] = multiply_row(r->weights + i * r->n_in, in, r->n_in);
            out[v * r->n_out + i] = (float)sums[i - at] * r->scales[i] + r->bias[i];
        }
    }
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { WORTH_A_THREAD = 1 << 16 }; /* products */
    const byte_rows *r = step->state;
    float *out = hwnas_onednn_values(step->outputs[0]);
    widen(r, hwnas_onednn_values(step->inputs[0]));
#pragma omp parallel for num_threads(device->threads)                                              \
    schedule(static) if (r->n_vectors * r->n_in * r->n_out > WORTH_A_THREAD)
    for (int64_t i = 0; i < r->n_out; i += BLOCK)
        multiply(out, r, i, i + BLOCK < r->n_out ? i + BLOCK : r->n_out);
    hwnas_onednn_apply_posts(out, r->n_vectors * r->n_out, r->n_posts, r->posts);
    return dnnl_success;
}

static void free_byte_rows(void *state)
{
    byte_rows *r = state;
    if (!r)
        return;
    free(r->weights);
    free(r->scales);
    free(r->bias);
    free(r->in);
    free(r);
}

const hwnas_onednn_kind hwnas_onednn_byte_rows = {
    .name = "own loops",
    .run = run,
    .free = free_byte_rows,
};
