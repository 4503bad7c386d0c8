/* pixels.c: passes over images, of floats or bytes, whose channels lie last. Each thread has pixels
 * that lie side by side, as in the passes behind primitives (posts.c): so it finds in its own cache
 * what it wrote there. oneDNN's pooling gives each thread channels, half of which the other wrote.
 */
#include "device/onednn/pixels.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "device/onednn/onednn_int8.h"
#include "device/onednn/simd.h"
#include "graph/op.h"
#include "graph/quantize_places.h"

typedef struct pixels {
    int64_t n_images, n_pixels, n_channels;
    int64_t factor_step; /* from the factors of an image to those of the next; means: 0 */
    bool is_mean;
    int n_parts; /* of an image's pixels */
    /* Means: sums of each part but the first. Products of bytes: the factors of each image, for
     * as many pixels as are multiplied at a time. */
    float *floats;
    int64_t n_at_once;
    /* Of bytes, which are signed or not; products make bytes of those and become bytes. */
    bool is_bytes, in_is_signed, out_is_signed;
    hwnas_onednn_scale in, out;
} pixels;

/* Nothing is done to the results of floats; those of bytes are products that become bytes, or
 * means, which are floats. */
static bool has_types(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                      bool is_mean)
{
    const dnnl_data_type_t *kept = source->kept;
    const int in = group->reads[0], out = group->chain.output;
    if (group->n_posts || group->bias >= 0)
        return false;
    if (hwnas_onednn_is_int8(source, in))
        return is_mean ? kept[out] == dnnl_f32
                       : kept[group->reads[1]] == dnnl_f32 && hwnas_onednn_is_int8(source, out);
    return !group->has_bytes && group->chain.n_nodes == 1 &&
           source->graph->tensors[in].dtype == HWNAS_FLOAT32;
}

bool hwnas_onednn_pixels_fit(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                             const hwnas_onednn_layout *layouts)
{
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    const hwnas_tensor *image = &graph->tensors[group->reads[0]];
    const bool is_mean = root->op->id == HWNAS_OP_GLOBAL_AVG_POOL;
    if (image->rank != 4 || layouts[group->reads[0]] != HWNAS_ONEDNN_IMAGE ||
        !has_types(source, group, is_mean))
        return false;
    return is_mean ||
           (layouts[group->chain.output] == HWNAS_ONEDNN_IMAGE && hwnas_excites(graph, root) >= 0 &&
            hwnas_same_shape(image, hwnas_node_output(graph, root)));
}

bool hwnas_onednn_is_mean_of_bytes(const hwnas_onednn_source *source,
                                   const hwnas_onednn_layout *layouts, const hwnas_node *node)
{
    const int bytes = hwnas_onednn_behind(source, node->inputs[0]);
    return node->op->id == HWNAS_OP_GLOBAL_AVG_POOL && bytes >= 0 &&
           layouts[bytes] == HWNAS_ONEDNN_IMAGE;
}

/* So many that their channels fill whole vectors, and that it is worth the call. */
static int64_t pixels_at_once(int64_t n_channels)
{
    enum { VECTOR = 32, WORTH = 256 };
    int64_t n = 1;
    while (n < VECTOR && (n * n_channels % VECTOR || n * n_channels < WORTH))
        n++;
    return n;
}

static hwnas_status add_floats(pixels *p, hwnas_onednn_step *step, int64_t n)
{
    void *floats;
    step->bytes = (size_t)n * sizeof *p->floats;
    TRY(hwnas_try_alloc(&floats, step->bytes, step->name));
    p->floats = floats;
    return HWNAS_OK;
}

hwnas_status hwnas_onednn_pixels_compile(hwnas_onednn_step *step, const onednn_device *device,
                                         const hwnas_onednn_source *source,
                                         const hwnas_onednn_group *group, hwnas_arena *arena)
{
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    const hwnas_tensor *image = &graph->tensors[group->reads[0]];
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
    p->is_bytes = hwnas_onednn_is_int8(source, group->reads[0]);
    if (p->is_bytes) {
        p->in = hwnas_onednn_scale_of_int8(graph, group->reads[0]);
        p->in_is_signed = source->kept[group->reads[0]] == dnnl_s8;
    }
    if (p->is_bytes && !p->is_mean) {
        p->out = hwnas_onednn_scale_of_int8(graph, group->chain.output);
        p->out_is_signed = source->kept[group->chain.output] == dnnl_s8;
        p->n_at_once = pixels_at_once(p->n_channels);
        TRY(add_floats(p, step, p->n_images * p->n_at_once * p->n_channels));
    } else if (p->is_mean && p->n_parts > 1) {
        TRY(add_floats(p, step, p->n_images * (p->n_parts - 1) * p->n_channels));
    }
    step->n_inputs = p->is_mean ? 1 : 2;
    step->n_outputs = 1;
    step->input_ids = hwnas_arena_copy(arena, group->reads, step->n_inputs * sizeof *group->reads);
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
            sums[c] +=
                (in[c] + in[c + n_channels]) + (in[c + 2 * n_channels] + in[c + 3 * n_channels]);
    for (; n > 0; n--, in += n_channels)
        for (int64_t c = 0; c < n_channels; c++)
            sums[c] += in[c];
}

/* Sums of up to 128 bytes in 16 bits, which all processors add the most of at a time. */
#define ADD_BYTES(NAME, TYPE)                                                                      \
    HWNAS_CLONES static void NAME(int16_t *restrict sums, const TYPE *restrict in, int64_t n,      \
                                  int64_t n_channels, int64_t stride)                              \
    {                                                                                              \
        for (int64_t c = 0; c < n_channels; c++)                                                   \
            sums[c] = 0;                                                                           \
        for (; n > 0; n--, in += stride)                                                           \
            for (int64_t c = 0; c < n_channels; c++)                                               \
                sums[c] = (int16_t)(sums[c] + in[c]);                                              \
    }
ADD_BYTES(add_signed, int8_t)
ADD_BYTES(add_unsigned, uint8_t)

/* Some channels at a time, whose sums stay in the first cache. */
static void add_pixels_of_bytes(float *sums, const uint8_t *in, int64_t n, const pixels *p)
{
    enum { AT_ONCE = 128, CHANNELS = 512 };
    int16_t part[CHANNELS];
    for (int64_t c = 0; c < p->n_channels; c += CHANNELS) {
        const int64_t left = p->n_channels - c, n_channels = left < CHANNELS ? left : CHANNELS;
        const float zeros = (float)n * (float)p->in.zero;
        for (int64_t k = 0; k < n_channels; k++)
            sums[c + k] = -zeros;
        for (int64_t i = 0; i < n; i += AT_ONCE) {
            const int64_t some = n - i < AT_ONCE ? n - i : AT_ONCE;
            const uint8_t *at = in + i * p->n_channels + c;
            if (p->in_is_signed)
                add_signed(part, (const int8_t *)at, some, n_channels, p->n_channels);
            else
                add_unsigned(part, at, some, n_channels, p->n_channels);
            for (int64_t k = 0; k < n_channels; k++)
                sums[c + k] += part[k];
        }
    }
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
HWNAS_CLONES static void multiply(float *out, const float *in, const float *factors, int64_t n,
                                  int64_t n_channels)
{
    for (; n > 0; n--, in += n_channels, out += n_channels)
        HWNAS_SIMD for (int64_t c = 0; c < n_channels; c++) out[c] = in[c] * factors[c];
}

/* (x - `zero`) times the channel's factor, rounded to a byte between `low` and `high` that is then
 * `more` larger. */
#define MULTIPLY_BYTES(NAME, TYPE)                                                                 \
    HWNAS_CLONES static void NAME(uint8_t *out, const TYPE *in, const float *restrict factors,     \
                                  int64_t n, int32_t zero, float low, float high, int32_t more)    \
    {                                                                                              \
        HWNAS_SIMD for (int64_t c = 0; c < n; c++)                                                 \
        {                                                                                          \
            float x = (float)(in[c] - zero) * factors[c];                                          \
            x = x > low ? x : low;                                                                 \
            x = x > high ? high : x;                                                               \
            /* 1.5 * 2^23: what is added to it is rounded to a whole number, and its low byte is 0 \
             */                                                                                    \
            out[c] = (uint8_t)((int32_t)(x + 12582912.0f) + more);                                 \
        }                                                                                          \
    }
MULTIPLY_BYTES(multiply_signed, int8_t)
MULTIPLY_BYTES(multiply_unsigned, uint8_t)

/* `out` may be `in`. */
static void multiply_bytes(uint8_t *out, const uint8_t *in, const float *factors, int64_t n,
                           const pixels *p)
{
    const float low = (float)((p->out_is_signed ? -128 : 0) - p->out.zero);
    const float high = (float)((p->out_is_signed ? 127 : 255) - p->out.zero);
    for (int64_t some; n > 0; n -= some, in += some * p->n_channels, out += some * p->n_channels) {
        some = n < p->n_at_once ? n : p->n_at_once;
        if (p->in_is_signed)
            multiply_signed(out, (const int8_t *)in, factors, some * p->n_channels, p->in.zero, low,
                            high, p->out.zero);
        else
            multiply_unsigned(out, in, factors, some * p->n_channels, p->in.zero, low, high,
                              p->out.zero);
    }
}

/* Where the sums of part `k` of an image are found. */
static float *sums_of(const hwnas_onednn_step *step, int64_t image, int64_t k)
{
    const pixels *p = step->state;
    return k ? p->floats + (image * (p->n_parts - 1) + k - 1) * p->n_channels
             : (float *)hwnas_onednn_values(step->outputs[0]) + image * p->n_channels;
}

/* Part `k` of an image: its sums, or its products. */
static void run_part(const hwnas_onednn_step *step, int64_t image, int64_t k)
{
    const pixels *p = step->state;
    const int64_t first = k * p->n_pixels / p->n_parts, end = (k + 1) * p->n_pixels / p->n_parts;
    const int64_t at = (image * p->n_pixels + first) * p->n_channels, n = end - first;
    void *in = hwnas_onednn_values(step->inputs[0]), *out = hwnas_onednn_values(step->outputs[0]);
    if (p->is_mean && p->is_bytes)
        add_pixels_of_bytes(sums_of(step, image, k), (uint8_t *)in + at, n, p);
    else if (p->is_mean)
        add_pixels(sums_of(step, image, k), (float *)in + at, n, p->n_channels);
    else if (p->is_bytes)
        multiply_bytes((uint8_t *)out + at, (uint8_t *)in + at,
                       p->floats + image * p->n_at_once * p->n_channels, n, p);
    else
        multiply((float *)out + at, (float *)in + at,
                 (float *)hwnas_onednn_values(step->inputs[1]) + image * p->factor_step, n,
                 p->n_channels);
}

/* From bytes of one scale to bytes of the other. A zero times what is beyond all floats stays a
 * zero. */
static void find_factors(const hwnas_onednn_step *step)
{
    const pixels *p = step->state;
    const float *factors = hwnas_onednn_values(step->inputs[1]);
    float *to = p->floats;
    for (int64_t i = 0; i < p->n_images * p->n_at_once; i++, to += p->n_channels)
        for (int64_t c = 0; c < p->n_channels; c++)
            to[c] = fmaxf(-FLT_MAX, fminf(FLT_MAX, factors[i / p->n_at_once * p->factor_step + c] *
                                                       p->in.scale / p->out.scale));
}

static void end_mean(const hwnas_onednn_step *step, int64_t image)
{
    const pixels *p = step->state;
    float *out = (float *)hwnas_onednn_values(step->outputs[0]) + image * p->n_channels;
    for (int64_t k = 0; k < p->n_parts - 1; k++)
        add_part(out, p->floats + (image * (p->n_parts - 1) + k) * p->n_channels, p->n_channels);
    scale(out, p->n_channels, (p->is_bytes ? p->in.scale : 1.0f) / (float)p->n_pixels);
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const pixels *p = step->state;
    const int64_t n = p->n_images * p->n_parts;
    if (p->is_bytes && !p->is_mean)
        find_factors(step);
#pragma omp parallel for num_threads(device->threads)                                              \
    schedule(static) if (n > 1 && device->threads > 1)
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
        free(p->floats);
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
