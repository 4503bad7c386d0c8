/* rows.c: products of a matrix with up to four vectors, or of one of few bits with many. */
#include "device/onednn/rows.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "device/onednn/packed_panels.h"
#include "device/onednn/posts.h"
#include "graph/op.h"

enum {
    MAX_VECTORS = HWNAS_PACKED_VECTORS,
    /* Networks with more weights, in bytes, read them from beyond the second cache in each run. */
    STREAMED = 1 << 23,
    AHEAD = 16384, /* then so many are asked for early, by Intel's processors; docs/engine.md */
};

typedef struct rows {
    int64_t n_vectors, n_in, n_out, n_tiles;
    /* By tile of HWNAS_LANES results, then by input: a weight for each result of the tile. So they
     * are read from the first to the last, and no lanes are to be summed up. */
    float *weights;
    hwnas_packed_rows *packed;   /* in the place of `weights`, in fewer bits; or NULL */
    hwnas_packed_panels *panels; /* of `packed`, where vectors are many; else NULL */
    float *bias;                 /* n_out; NULL: none */
    bool is_by_halves;           /* sums of eight floats */
    bool is_streamed;
    int n_posts;
    hwnas_onednn_post posts[HWNAS_ONEDNN_MAX_POSTS]; /* `operand` here: which input of the step */
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

/* A sum or product with a tensor of the results' size, or with one of a value for each of a
 * vector's results; what is an image to others may lie otherwise. */
static bool takes_operand(const hwnas_graph *graph, const hwnas_node *root,
                          const hwnas_onednn_post *post)
{
    const hwnas_tensor *t = &graph->tensors[post->operand];
    const hwnas_tensor *out = hwnas_node_output(graph, root);
    return (post->alg == dnnl_binary_add || post->alg == dnnl_binary_mul) &&
           t->dtype == HWNAS_FLOAT32 && (t->rank != 4 || is_single_pixel(t)) &&
           hwnas_tensor_count(t) == hwnas_tensor_count(out);
}

/* The node of `source->packed_graph` that makes floats of the product's kernel, if these loops can
 * do without it; else NULL. */
static const hwnas_node *packed_kernel(const hwnas_onednn_source *source, const hwnas_node *root)
{
    const int at = source->packed_node ? source->packed_node[root->inputs[1]] : -1;
    const hwnas_node *node = at < 0 ? NULL : &source->packed_graph->nodes[at];
    return node && hwnas_packed_rows_fit(source->packed_graph, node) ? node : NULL;
}

bool hwnas_onednn_rows_fit(const hwnas_onednn_source *source, const hwnas_onednn_group *group)
{
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    if (group->has_bytes || !is_product(graph, root))
        return false;
    for (int i = 0; i < group->n_posts; i++)
        if (group->posts[i].operand < 0 ? !hwnas_onednn_has_post(&group->posts[i])
                                        : !takes_operand(graph, root, &group->posts[i]))
            return false;
    return hwnas_tensor_count(hwnas_node_input(graph, root, 0)) / n_in_of(graph, root) <=
               MAX_VECTORS ||
           packed_kernel(source, root);
}

/* ---- Compiling ---- */

/* Tiles of a matrix, whose rows are results or, with `is_turned`, inputs; zeros behind the last. */
static void pack(const rows *r, const float *matrix, bool is_turned)
{
    const int64_t per_result = is_turned ? 1 : r->n_in, per_input = is_turned ? r->n_out : 1;
    float *to = r->weights;
    for (int64_t first = 0; first < r->n_out; first += HWNAS_LANES)
        for (int64_t i = 0; i < r->n_in; i++)
            for (int64_t k = first; k < first + HWNAS_LANES; k++)
                *to++ = k < r->n_out ? matrix[k * per_result + i * per_input] : 0;
}

/* `bytes`: what they take. */
static hwnas_status take_weights(rows *r, size_t *bytes, const onednn_device *device,
                                 const hwnas_onednn_source *source, const hwnas_node *root,
                                 const char *name)
{
    const hwnas_tensor *kernel = hwnas_node_input(source->graph, root, 1);
    const hwnas_node *packed = packed_kernel(source, root);
    const bool is_turned = root->op->id == HWNAS_OP_MATMUL;
    void *weights, *copy = NULL;
    if (packed) {
        const bool are_many = r->n_vectors > MAX_VECTORS;
        TRY(hwnas_packed_rows_new(&r->packed, source->packed_graph, packed, is_turned,
                                  are_many ? 0 : r->n_vectors, name));
        *bytes = hwnas_packed_rows_bytes(r->packed);
        return are_many ? hwnas_packed_panels_new(&r->panels, device, r->packed, r->n_vectors,
                                                  r->n_in, r->n_out, name)
                        : HWNAS_OK;
    }
    *bytes = (size_t)(r->n_tiles * HWNAS_LANES * r->n_in) * sizeof *r->weights;
    TRY(hwnas_try_alloc(&weights, *bytes, name));
    r->weights = weights;
    if (!kernel->data) {
        TRY(hwnas_try_alloc(&copy, (size_t)(r->n_in * r->n_out) * sizeof *r->weights, name));
        hwnas_tensor_fill(kernel, copy);
    }
    pack(r, kernel->data ? kernel->data : copy, is_turned);
    free(copy);
    return HWNAS_OK;
}

/* The step's inputs: what is multiplied, then the operands. */
static void take_posts(hwnas_onednn_step *step, rows *r, const hwnas_onednn_group *group)
{
    r->n_posts = group->n_posts;
    memcpy(r->posts, group->posts, sizeof r->posts);
    for (int i = 0; i < r->n_posts; i++)
        if (r->posts[i].operand >= 0) {
            step->input_ids[step->n_inputs] = r->posts[i].operand;
            r->posts[i].operand = (int)step->n_inputs++;
        }
}

static int64_t bytes_of_weights(const hwnas_graph *graph)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < graph->n_tensors; i++)
        if (graph->tensors[i].kind == HWNAS_TENSOR_WEIGHT)
            bytes += hwnas_tensor_bytes(&graph->tensors[i]);
    return bytes;
}

/* AMD's (Zen 3) ask early enough by themselves, and are slower where they are told to. */
static bool asks_late(void)
{
#ifdef __x86_64__
    return __builtin_cpu_is("intel");
#else
    return false;
#endif
}

hwnas_status hwnas_onednn_rows_compile(hwnas_onednn_step *step, const onednn_device *device,
                                       const hwnas_onednn_source *source,
                                       const hwnas_onednn_group *group, hwnas_arena *arena)
{
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    rows *r = step->state = hwnas_alloc(sizeof *r);
    void *bias;
    r->n_in = n_in_of(graph, root);
    r->n_vectors = hwnas_tensor_count(hwnas_node_input(graph, root, 0)) / r->n_in;
    r->n_out = hwnas_tensor_count(hwnas_node_output(graph, root)) / r->n_vectors;
    r->n_tiles = (r->n_out + HWNAS_LANES - 1) / HWNAS_LANES;
    const size_t bias_bytes = (size_t)r->n_out * sizeof *r->bias;
    r->is_by_halves = hwnas_onednn_ends_at_avx2();
    r->is_streamed = asks_late() && bytes_of_weights(graph) > STREAMED;
    TRY(take_weights(r, &step->bytes, device, source, root, step->name));
    if (group->bias >= 0) {
        TRY(hwnas_try_alloc(&bias, bias_bytes, step->name));
        r->bias = bias;
        hwnas_tensor_fill(&graph->tensors[group->bias], r->bias);
        step->bytes += bias_bytes;
    }
    step->n_inputs = step->n_outputs = 1;
    step->input_ids = hwnas_arena_alloc(arena, (1 + HWNAS_ONEDNN_MAX_POSTS) * sizeof(int));
    step->input_ids[0] = root->inputs[0];
    take_posts(step, r, group);
    step->output_ids = hwnas_arena_copy(arena, &group->chain.output, sizeof *step->output_ids);
    return HWNAS_OK;
}

/* ---- Running ---- */

/* One tile times `n` vectors, which lie `n_in` apart. Several sums for each, as an addition takes
 * longer than what comes in meanwhile. Of a register that the processor lacks, GCC 12 keeps the
 * sums in memory: there they are halves. */
#define MULTIPLY_TILE(NAME, TYPE, PARTS)                                                           \
    HWNAS_INLINE void NAME(hwnas_vector *out, const float *weights, const float *in, int64_t n_in, \
                           int n, bool is_streamed)                                                \
    {                                                                                              \
        enum { CHAINS = 4, LENGTH = HWNAS_LANES / PARTS };                                         \
        TYPE sums[CHAINS][PARTS] = {{{0}}};                                                        \
        const int apart = CHAINS / n; /* inputs before the same sum has its turn again */          \
        int64_t i = 0;                                                                             \
        for (; i + apart <= n_in; i += apart)                                                      \
            for (int k = 0; k < apart; k++) {                                                      \
                if (is_streamed)                                                                   \
                    hwnas_prefetch((const char *)(weights + (i + k) * HWNAS_LANES) + AHEAD);       \
                for (int v = 0; v < n; v++)                                                        \
                    for (int p = 0; p < PARTS; p++)                                                \
                        sums[v * apart + k][p] +=                                                  \
                            *(const TYPE *)(weights + (i + k) * HWNAS_LANES + p * LENGTH) *        \
                            in[v * n_in + i + k];                                                  \
            }                                                                                      \
        for (; i < n_in; i++)                                                                      \
            for (int v = 0; v < n; v++)                                                            \
                for (int p = 0; p < PARTS; p++)                                                    \
                    sums[v * apart][p] +=                                                          \
                        *(const TYPE *)(weights + i * HWNAS_LANES + p * LENGTH) *                  \
                        in[v * n_in + i];                                                          \
        for (int v = 0; v < n; v++)                                                                \
            for (int p = 0; p < PARTS; p++) {                                                      \
                TYPE sum = sums[v * apart][p];                                                     \
                for (int k = 1; k < apart; k++)                                                    \
                    sum += sums[v * apart + k][p];                                                 \
                *(TYPE *)((float *)&out[v] + p * LENGTH) = sum;                                    \
            }                                                                                      \
    }

MULTIPLY_TILE(multiply_whole, hwnas_vector, 1)
MULTIPLY_TILE(multiply_halves, hwnas_half, 2)

HWNAS_INLINE void multiply_tile(const rows *r, hwnas_vector *out, const float *weights,
                                const float *in, int n, bool is_streamed)
{
    if (r->is_by_halves)
        multiply_halves(out, weights, in, r->n_in, n, is_streamed);
    else
        multiply_whole(out, weights, in, r->n_in, n, is_streamed);
}

/* `n` is a constant in each of these, and so is `is_streamed` where this is called. */
HWNAS_INLINE void multiply_tiles(float *out, const rows *r, const float *in, int64_t first,
                                 int64_t end, bool is_streamed)
{
    hwnas_vector results[MAX_VECTORS];
    for (int64_t t = first; t < end; t++) {
        const float *weights = r->weights + t * HWNAS_LANES * r->n_in;
        const int64_t at = t * HWNAS_LANES, rest = r->n_out - at;
        switch (r->n_vectors) {
        case 1:
            multiply_tile(r, results, weights, in, 1, is_streamed);
            break;
        case 2:
            multiply_tile(r, results, weights, in, 2, is_streamed);
            break;
        case 3:
            multiply_tile(r, results, weights, in, 3, is_streamed);
            break;
        default:
            multiply_tile(r, results, weights, in, 4, is_streamed);
        }
        for (int64_t v = 0; v < r->n_vectors; v++)
            if (rest >= HWNAS_LANES)
                hwnas_store(out + v * r->n_out + at, &results[v]);
            else
                memcpy(out + v * r->n_out + at, &results[v], (size_t)rest * sizeof *out);
    }
}

HWNAS_CLONES static void multiply(float *out, const rows *r, const float *in, int64_t first,
                                  int64_t end)
{
    if (r->is_streamed)
        multiply_tiles(out, r, in, first, end, true);
    else
        multiply_tiles(out, r, in, first, end, false);
}

static void apply_operand(float *values, const float *operand, int64_t n, dnnl_alg_kind_t alg)
{
    if (alg == dnnl_binary_add)
        for (int64_t i = 0; i < n; i++)
            values[i] += operand[i];
    else
        for (int64_t i = 0; i < n; i++)
            values[i] *= operand[i];
}

/* What is behind the product, for results `from` to `end` of each vector. */
static void finish(const hwnas_onednn_step *step, int64_t from, int64_t end)
{
    const rows *r = step->state;
    float *out = hwnas_onednn_values(step->outputs[0]);
    const int64_t n = (end < r->n_out ? end : r->n_out) - from;
    for (int64_t v = 0; v < r->n_vectors; v++) {
        float *part = out + v * r->n_out + from;
        for (int64_t i = 0; i < n && r->bias; i++)
            part[i] += r->bias[from + i];
        for (int i = 0; i < r->n_posts; i++) {
            const hwnas_onednn_post *p = &r->posts[i];
            if (p->operand < 0)
                hwnas_onednn_apply_posts(part, n, 1, p);
            else
                apply_operand(part,
                              (float *)hwnas_onednn_values(step->inputs[p->operand]) +
                                  v * r->n_out + from,
                              n, p->alg);
        }
    }
}

/* Tiles `first` to `end`. */
static void run_part(const hwnas_onednn_step *step, int64_t first, int64_t end)
{
    const rows *r = step->state;
    float *out = hwnas_onednn_values(step->outputs[0]);
    if (r->packed)
        hwnas_packed_rows_multiply(out, r->packed, first, end);
    else
        multiply(out, r, hwnas_onednn_values(step->inputs[0]), first, end);
    finish(step, first * HWNAS_LANES, end * HWNAS_LANES);
}

/* Panel by panel, while what came of it is in the cache. */
static dnnl_status_t run_panels(const hwnas_onednn_step *step, const onednn_device *device)
{
    const rows *r = step->state;
    const float *in = hwnas_onednn_values(step->inputs[0]);
    float *out = hwnas_onednn_values(step->outputs[0]);
    int failed = dnnl_success;
#pragma omp parallel for num_threads(device->threads) schedule(static) if (device->threads > 1)
    for (int64_t first = 0; first < r->n_out; first += HWNAS_PANEL) {
        const int thread = device->threads > 1 ? omp_get_thread_num() : 0;
        const int status =
            hwnas_packed_panels_multiply(out, r->panels, r->packed, in, first, thread);
        if (status == dnnl_success)
            finish(step, first, first + HWNAS_PANEL);
        else
#pragma omp atomic write
            failed = status;
    }
    return (dnnl_status_t)failed;
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { WORTH_A_THREAD = 1 << 15 }; /* weights */
    const rows *r = step->state;
    int64_t n_parts = r->n_in * r->n_out / WORTH_A_THREAD;
    n_parts = n_parts > device->threads ? device->threads : n_parts;
    n_parts = n_parts > r->n_tiles ? r->n_tiles : n_parts;
    if (r->panels)
        return run_panels(step, device);
    if (r->packed)
        hwnas_packed_rows_take(r->packed, hwnas_onednn_values(step->inputs[0]));
    if (n_parts < 2) {
        run_part(step, 0, r->n_tiles);
        return dnnl_success;
    }
#pragma omp parallel for num_threads(n_parts)
    for (int64_t i = 0; i < n_parts; i++)
        run_part(step, i * r->n_tiles / n_parts, (i + 1) * r->n_tiles / n_parts);
    return dnnl_success;
}

static void free_rows(void *state)
{
    rows *r = state;
    if (!r)
        return;
    free(r->weights);
    hwnas_packed_panels_free(r->panels);
    hwnas_packed_rows_free(r->packed);
    free(r->bias);
    free(r);
}

const hwnas_onednn_kind hwnas_onednn_rows = {
    .name = "own loops",
    .run = run,
    .free = free_rows,
};
