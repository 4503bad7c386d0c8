/* pixels.c: passes over images whose channels lie last. Each thread has pixels that lie side by side,
 * as in the passes behind primitives (posts.c): so it finds in its own cache what it wrote there.
 * oneDNN's pooling gives each thread channels, half of which the other wrote. */
#include "device/onednn/pixels.h"

#include <stdlib.h>

#include "device/onednn/simd.h"
#include "graph/op.h"

typedef struct pixels {
    int64_t n_images, n_pixels, n_channels;
    int64_t factor_step; /* from the factors of an image to those of the next; means: 0 */
    bool is_mean;
    int n_parts;  /* of an image's pixels */
    float *parts; /* sums of each but the first; means */
} pixels;

static bool is_pixel(const hwnas_tensor *t)
{
    return t->rank == 4 && t->dims[2] == 1 && t->dims[3] == 1;
}

/* x times a factor for each channel, of all images or of each. */
static bool is_factor(const hwnas_tensor *factor, const hwnas_tensor *image)
{
    return is_pixel(factor) && factor->dims[1] == image->dims[1] &&
           (factor->dims[0] == 1 || factor->dims[0] == image->dims[0]);
}

bool hwnas_onednn_pixels_fit(const hwnas_graph *graph, const hwnas_onednn_group *group,
                             const hwnas_onednn_layout *layouts)
{
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    const hwnas_tensor *image = &graph->tensors[group->reads[0]];
    if (group->has_bytes || group->chain.n_nodes > 1 || image->rank != 4 ||
        image->dtype != HWNAS_FLOAT32 || layouts[group->reads[0]] != HWNAS_ONEDNN_IMAGE)
        return false;
    return root->op->id == HWNAS_OP_GLOBAL_AVG_POOL ||
           (root->op->id == HWNAS_OP_MUL && layouts[root->output] == HWNAS_ONEDNN_IMAGE &&
            hwnas_same_shape(image, hwnas_node_output(graph, root)) &&
            is_factor(&graph->tensors[group->reads[1]], image));
}

hwnas_status hwnas_onednn_pixels_compile(hwnas_onednn_step *step, const onednn_device *device,
                                         const hwnas_graph *graph, const hwnas_onednn_group *group,
                                         hwnas_arena *arena)
{
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    const hwnas_tensor *image = &graph->tensors[group->reads[0]];
    void *parts;
    pixels *p = step->state = hwnas_alloc(sizeof *p);
    *p = (pixels){.n_images = image->dims[0],
                  .n_pixels = image->dims[2] * image->dims[3],
                  .n_channels = image->dims[1],
                  .is_mean = root->op->id == HWNAS_OP_GLOBAL_AVG_POOL,
                  .n_parts = device->threads};
    if (p->n_images >= device->threads || p->n_pixels < device->threads)
        p->n_parts = 1;
    if (!p->is_mean && graph->tensors[group->reads[1]].dims[0] > 1)
        p->factor_step = p->n_channels;
    if (p->is_mean && p->n_parts > 1) {
        step->bytes = (size_t)(p->n_images * (p->n_parts - 1) * p->n_channels) * sizeof *p->parts;
        TRY(hwnas_try_alloc(&parts, step->bytes, step->name));
        p->parts = parts;
    }
    step->n_inputs = p->is_mean ? 1 : 2;
    step->n_outputs = 1;
    step->input_ids =
        hwnas_arena_copy(arena, group->reads, step->n_inputs * sizeof *group->reads);
    step->output_ids = hwnas_arena_copy(arena, &group->chain.output, sizeof *step->output_ids);
    return HWNAS_OK;
}

HWNAS_CLONES static void add_pixels(float *restrict sums, const float *restrict in, int64_t n,
                                    int64_t n_channels)
{
    enum { AT_ONCE = 4 };
    for (int64_t c = 0; c < n_channels; c++)
        sums[c] = 0;
    for (; n >= AT_ONCE; n -= AT_ONCE, in += AT_ONCE * n_channels)
        for (int64_t c = 0; c < n_channels; c++)
            sums[c] += (in[c] + in[c + n_channels]) +
                       (in[c + 2 * n_channels] + in[c + 3 * n_channels]);
    for (; n > 0; n--, in += n_channels)
        for (int64_t c = 0; c < n_channels; c++)
            sums[c] += in[c];
}

HWNAS_CLONES static void add_part(float *restrict sums, const float *restrict part, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        sums[c] += part[c];
}

HWNAS_CLONES static void scale(float *sums, int64_t n, float factor)
{
    for (int64_t c = 0; c < n; c++)
        sums[c] *= factor;
}

/* `out` may be `in`. */
HWNAS_CLONES static void multiply(float *out, const float *in, const float *restrict factors,
                                  int64_t n, int64_t n_channels)
{
    for (; n > 0; n--, in += n_channels, out += n_channels) {
        int64_t c = 0;
        hwnas_vector x, f;
        for (; c + HWNAS_LANES <= n_channels; c += HWNAS_LANES) {
            hwnas_load(&x, in + c);
            hwnas_load(&f, factors + c);
            x *= f;
            hwnas_store(out + c, &x);
        }
        for (; c < n_channels; c++)
            out[c] = in[c] * factors[c];
    }
}

/* Part `k` of an image: its sums, or its products. */
static void run_part(const hwnas_onednn_step *step, int64_t image, int64_t k)
{
    const pixels *p = step->state;
    const int64_t first = k * p->n_pixels / p->n_parts, end = (k + 1) * p->n_pixels / p->n_parts;
    const int64_t at = (image * p->n_pixels + first) * p->n_channels;
    const float *in = (float *)hwnas_onednn_values(step->inputs[0]) + at;
    float *out = hwnas_onednn_values(step->outputs[0]);
    if (!p->is_mean) {
        const float *factors = hwnas_onednn_values(step->inputs[1]);
        multiply(out + at, in, factors + image * p->factor_step, end - first, p->n_channels);
        return;
    }
    add_pixels(k ? p->parts + (image * (p->n_parts - 1) + k - 1) * p->n_channels
                 : out + image * p->n_channels,
               in, end - first, p->n_channels);
}

static void end_mean(const hwnas_onednn_step *step, int64_t image)
{
    const pixels *p = step->state;
    float *out = (float *)hwnas_onednn_values(step->outputs[0]) + image * p->n_channels;
    for (int64_t k = 0; k < p->n_parts - 1; k++)
        add_part(out, p->parts + (image * (p->n_parts - 1) + k) * p->n_channels, p->n_channels);
    scale(out, p->n_channels, 1.0f / (float)p->n_pixels);
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const pixels *p = step->state;
    const int64_t n = p->n_images * p->n_parts;
#pragma omp parallel for num_threads(device->threads) schedule(static) if (n > 1 &&                \
                                                                           device->threads > 1)
    for (int64_t i = 0; i < n; i++)
        run_part(step, i / p->n_parts, i % p->n_parts);
    for (int64_t i = 0; i < p->n_images && p->is_mean; i++)
        end_mean(step, i);
    return dnnl_success;
}

static void free_pixels(void *state)
{
    pixels *p = state;
    if (p)
        free(p->parts);
    free(p);
}

/* Products may lie where the image was. */
static int in_place(const hwnas_onednn_step *step, int output, size_t k)
{
    const pixels *p = step->state;
    return p->is_mean ? -1 : hwnas_onednn_over_first(step, output, k);
}

const hwnas_onednn_kind hwnas_onednn_pixels = {
    .name = "own loops",
    .run = run,
    .free = free_pixels,
    .in_place = in_place,
};
