/* depthwise.c: each channel of an image with a kernel of its own, bytes in and out.
 *
 * AVX2 multiplies 16-bit numbers and adds up two neighbours in 32 bits. So the bytes of two of the
 * kernel's points are brought together for each channel (a0 b0 a1 b1 ...) and made 16 bits long.
 * Sums are exact; products of bytes themselves end in 16 bits, which large weights overflow. */
#include "device/onednn/depthwise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined __x86_64__
#include <immintrin.h>
#endif

#include "device/onednn/posts.h"
#include "device/onednn/requantize.h"
#include "device/onednn/windows.h"
#include "graph/op.h"
#include "graph/quantize_places.h"

enum {
    BLOCK = HWNAS_DEPTHWISE_CHANNELS, /* at a time */
    AT_ONCE = 2,                      /* points of the kernel at a time */
    LANES = 8,                        /* sums in a vector */
    VECTORS = BLOCK / LANES,
    SIGN = 128, /* from signed bytes to unsigned ones */
};

typedef struct depthwise {
    int64_t n_images, n_channels, in[2], out[2]; /* height and width */
    int64_t kernel[2], stride[2], before[2], dilation[2];
    int n_points, n_reads; /* of the kernel; an even number, the last perhaps of no weight */
    /* For each block of channels: weights [n_reads / AT_ONCE][BLOCK][AT_ONCE], and in the same
     * order of channels what a sum begins with, its factor, and what is added to that product. */
    int16_t *weights;
    int32_t *begins;
    float *factors, *offsets;
    uint8_t *blank; /* a pixel beside the image */
    /* Functions behind, unless all are limits: then the results are in units of their bytes, and
     * the limits among those of the bytes. */
    int n_posts;
    hwnas_onednn_post posts[HWNAS_ONEDNN_MAX_POSTS];
    float unit, per_byte, low, high;
    int32_t zero;
    bool in_is_signed, out_is_signed;
} depthwise;

/* ---- Which groups ---- */

static bool has_instructions(void)
{
#if defined __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           !hwnas_onednn_is_native(HWNAS_S8);
#else
    return false;
#endif
}

static bool is_limit(const hwnas_onednn_post *p)
{
    return p->alg == dnnl_eltwise_clip || (p->alg == dnnl_eltwise_relu && p->alpha == 0);
}

bool hwnas_onednn_depthwise_fits(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                                 const hwnas_onednn_layout *layouts)
{
    for (int i = 0; i < group->n_posts; i++)
        if (group->posts[i].operand >= 0 || !hwnas_onednn_has_post(&group->posts[i]))
            return false;
    return has_instructions() && group->is_product_of_bytes &&
           hwnas_is_depthwise(source->graph, &source->graph->nodes[group->chain.nodes[0]]) &&
           hwnas_onednn_is_int8(source, group->chain.output) &&
           layouts[group->reads[0]] == HWNAS_ONEDNN_IMAGE &&
           layouts[group->chain.output] == HWNAS_ONEDNN_IMAGE;
}

/* ---- Compiling ---- */

static int64_t n_blocks(const depthwise *d)
{
    return (d->n_channels + BLOCK - 1) / BLOCK;
}

/* The last block begins earlier where it would have less than BLOCK channels. */
static int64_t first_of(const depthwise *d, int64_t block)
{
    const int64_t first = block * BLOCK, last = d->n_channels - BLOCK;
    return first < last ? first : last;
}

/* Which channel of a block stands at a place: the instructions that bring bytes together do so in
 * each half of a vector by itself. */
static int64_t channel_at(int place)
{
    const int vector = place / LANES, lane = place % LANES;
    return lane / 4 * (BLOCK / 2) + vector * 4 + lane % 4;
}

static hwnas_status add_weights(depthwise *d, hwnas_onednn_step *step, const float *kernel)
{
    void *weights;
    const int64_t n = n_blocks(d) * d->n_reads * BLOCK;
    TRY(hwnas_try_alloc(&weights, (size_t)n * sizeof *d->weights, step->name));
    d->weights = weights;
    step->bytes += (size_t)n * sizeof *d->weights;
    for (int64_t i = 0; i < n; i++) {
        const int64_t block = i / (d->n_reads * BLOCK), rest = i % (d->n_reads * BLOCK);
        const int64_t point = rest / (BLOCK * AT_ONCE) * AT_ONCE + rest % AT_ONCE;
        const int place = (int)(rest % (BLOCK * AT_ONCE) / AT_ONCE);
        const int64_t channel = first_of(d, block) + channel_at(place);
        if (point < d->n_points)
            d->weights[i] = (int16_t)kernel[channel * d->n_points + point];
    }
    return HWNAS_OK;
}

/* Sums begin with what the zero point adds to them. */
static int32_t begin_of(const depthwise *d, const float *kernel, int64_t channel, int32_t zero)
{
    int32_t sum = 0;
    for (int i = 0; i < d->n_points; i++)
        sum += (int32_t)kernel[channel * d->n_points + i];
    return -zero * sum;
}

static void add_channels(depthwise *d, hwnas_onednn_step *step, const hwnas_onednn_requantize *q,
                         const float *kernel, const float *bias)
{
    const int64_t n = n_blocks(d) * BLOCK;
    d->begins = hwnas_alloc((size_t)n * sizeof *d->begins);
    d->factors = hwnas_alloc((size_t)n * sizeof *d->factors);
    d->offsets = hwnas_alloc((size_t)n * sizeof *d->offsets);
    d->blank = hwnas_alloc((size_t)d->n_channels);
    memset(d->blank, (uint8_t)q->in[0].zero, (size_t)d->n_channels);
    step->bytes += (size_t)n * (sizeof *d->begins + sizeof *d->factors + sizeof *d->offsets) +
                   (size_t)d->n_channels;
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = first_of(d, i / BLOCK) + channel_at((int)(i % BLOCK));
        d->begins[i] = begin_of(d, kernel, c, q->in[0].zero + (d->in_is_signed ? SIGN : 0));
        d->factors[i] = q->scales[q->n_scales > 1 ? c : 0] * q->unit / d->unit;
        d->offsets[i] = bias ? bias[c] / d->unit : 0;
    }
}

static float limited(float x, float low, float high)
{
    return fminf(fmaxf(x, low), high);
}

/* What is left of all numbers by the limits behind the convolution and by those of a byte, before
 * the zero point is added. */
static void find_limits(depthwise *d, const hwnas_onednn_group *g)
{
    d->low = -INFINITY;
    d->high = INFINITY;
    for (int i = 0; i <= g->n_posts; i++) {
        const hwnas_onednn_post *p = &g->posts[i];
        float low = 0, high = INFINITY;
        if (i == g->n_posts) {
            low = (float)((d->out_is_signed ? INT8_MIN : 0) - d->zero);
            high = (float)((d->out_is_signed ? INT8_MAX : UINT8_MAX) - d->zero);
        } else if (d->n_posts) {
            continue;
        } else if (p->alg == dnnl_eltwise_clip) {
            low = p->alpha / d->unit;
            high = p->beta / d->unit;
        }
        d->low = limited(d->low, low, high);
        d->high = limited(d->high, low, high);
    }
}

static void add_posts(depthwise *d, const hwnas_onednn_requantize *q)
{
    const hwnas_onednn_group *g = q->group;
    d->zero = q->out.zero;
    d->unit = q->out.scale;
    for (int i = 0; i < g->n_posts; i++)
        if (!is_limit(&g->posts[i])) {
            d->n_posts = g->n_posts;
            d->unit = 1;
        }
    memcpy(d->posts, g->posts, sizeof d->posts);
    d->per_byte = d->unit / q->out.scale;
    find_limits(d, g);
}

static hwnas_status add_constants(depthwise *d, hwnas_onednn_step *step,
                                  const hwnas_onednn_source *source,
                                  const hwnas_onednn_group *group)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    const hwnas_node *dequantize = &graph->nodes[hwnas_node_input(graph, root, 1)->producer];
    void *kernel = NULL, *bias = NULL;
    hwnas_onednn_requantize q;
    hwnas_onednn_requantize_init(&q, source, group);
    add_posts(d, &q);
    const size_t n = (size_t)(d->n_channels * d->n_points);
    TRY_OUT(hwnas_try_alloc(&kernel, n * sizeof(float), step->name));
    hwnas_tensor_fill(hwnas_node_input(graph, dequantize, 0), kernel);
    if (group->bias >= 0) {
        TRY_OUT(hwnas_try_alloc(&bias, (size_t)d->n_channels * sizeof(float), step->name));
        hwnas_tensor_fill(&graph->tensors[group->bias], bias);
    }
    TRY_OUT(add_weights(d, step, kernel));
    add_channels(d, step, &q, kernel, bias);
out:
    free(kernel);
    free(bias);
    hwnas_onednn_requantize_done(&q);
    return status;
}

hwnas_status hwnas_onednn_depthwise_compile(hwnas_onednn_step *step,
                                            const hwnas_onednn_source *source,
                                            const hwnas_onednn_group *group, hwnas_arena *arena)
{
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    const hwnas_tensor *in = hwnas_node_input(graph, root, 0);
    const hwnas_onednn_window window = hwnas_onednn_window_of(root);
    depthwise *d = step->state = hwnas_alloc(sizeof *d);
    *d = (depthwise){.n_images = in->dims[0],
                     .n_channels = in->dims[1],
                     .n_points = 1,
                     .in_is_signed = source->kept[group->reads[0]] == dnnl_s8,
                     .out_is_signed = source->kept[group->chain.output] == dnnl_s8};
    for (int i = 0; i < 2; i++) {
        d->in[i] = in->dims[2 + i];
        d->out[i] = hwnas_node_output(graph, root)->dims[2 + i];
        d->kernel[i] = hwnas_node_input(graph, root, 1)->dims[2 + i];
        d->stride[i] = window.stride[i];
        d->before[i] = window.before[i];
        d->dilation[i] = hwnas_node_attr(root, "dilation")->ints[i];
        d->n_points *= (int)d->kernel[i];
    }
    d->n_reads = (d->n_points + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
    step->n_inputs = step->n_outputs = 1;
    step->input_ids = hwnas_arena_copy(arena, group->reads, sizeof *group->reads);
    step->output_ids = hwnas_arena_copy(arena, &group->chain.output, sizeof *step->output_ids);
    return add_constants(d, step, source, group);
}

/* ---- Running ---- */

/* Where the points of the kernel are for a pixel of the result. */
typedef struct reads {
    const uint8_t *at[HWNAS_DEPTHWISE_POINTS];
} reads;

#if defined __x86_64__
#define WITH_AVX2 __attribute__((target("avx2,fma")))

/* A byte of each channel from two pixels, multiplied by their weights and added to the sums. `flip`
 * makes signed bytes unsigned. */
WITH_AVX2 static inline __attribute__((always_inline)) void
add_points(__m256i sums[VECTORS], const uint8_t *const at[AT_ONCE], int64_t channel,
           const int16_t *weights, __m256i flip)
{
    const __m256i none = _mm256_setzero_si256();
    __m256i x[AT_ONCE], pairs[VECTORS];
    for (int i = 0; i < AT_ONCE; i++)
        x[i] = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(at[i] + channel)), flip);
    const __m256i low = _mm256_unpacklo_epi8(x[0], x[1]), high = _mm256_unpackhi_epi8(x[0], x[1]);
    pairs[0] = _mm256_unpacklo_epi8(low, none);
    pairs[1] = _mm256_unpackhi_epi8(low, none);
    pairs[2] = _mm256_unpacklo_epi8(high, none);
    pairs[3] = _mm256_unpackhi_epi8(high, none);
    for (int i = 0; i < VECTORS; i++) {
        const __m256i w = _mm256_loadu_si256((const __m256i *)(weights + i * LANES * AT_ONCE));
        sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(pairs[i], w));
    }
}

/* Rounds the sums of a block, times their factors, to bytes. */
WITH_AVX2 static inline __attribute__((always_inline)) void
store_bytes(uint8_t *out, const __m256i sums[VECTORS], const depthwise *d, int64_t at)
{
    const float *factors = d->factors + at, *offsets = d->offsets + at;
    const __m256 low = _mm256_set1_ps(d->low), high = _mm256_set1_ps(d->high);
    const __m256i zero = _mm256_set1_epi16((int16_t)d->zero);
    __m256i whole[VECTORS];
    for (int i = 0; i < VECTORS; i++) {
        hwnas_half x =
            _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[i]), _mm256_loadu_ps(factors + i * LANES),
                            _mm256_loadu_ps(offsets + i * LANES));
        if (d->n_posts) {
            for (int k = 0; k < d->n_posts; k++)
                hwnas_onednn_apply_post(&x, &d->posts[k]);
            x *= d->per_byte;
        }
        whole[i] = _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(x, low), high));
    }
    const __m256i a = _mm256_add_epi16(_mm256_packs_epi32(whole[0], whole[1]), zero);
    const __m256i b = _mm256_add_epi16(_mm256_packs_epi32(whole[2], whole[3]), zero);
    _mm256_storeu_si256((__m256i *)out,
                        d->out_is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b));
}

/* Pixels that lie side by side, two at a time (where one is left, it twice). All of one block of
 * channels first, whose weights stay near. */
WITH_AVX2 static void compute(uint8_t *out, const depthwise *d, const reads *pixels, int n)
{
    const __m256i flip = _mm256_set1_epi8(d->in_is_signed ? (char)SIGN : 0);
    for (int64_t block = 0, n_all = n_blocks(d); block < n_all; block++) {
        const int64_t channel = first_of(d, block), at = block * BLOCK;
        for (int i = 0; i < n; i += 2) {
            const int k = i + 1 < n ? i + 1 : i;
            const int16_t *weights = d->weights + at * d->n_reads;
            __m256i sums[VECTORS], other[VECTORS];
            for (int v = 0; v < VECTORS; v++)
                sums[v] = other[v] =
                    _mm256_loadu_si256((const __m256i *)(d->begins + at + v * LANES));
            for (int r = 0; r < d->n_reads; r += AT_ONCE, weights += AT_ONCE * BLOCK) {
                add_points(sums, pixels[i].at + r, channel, weights, flip);
                add_points(other, pixels[k].at + r, channel, weights, flip);
            }
            store_bytes(out + i * d->n_channels + channel, sums, d, at);
            store_bytes(out + k * d->n_channels + channel, other, d, at);
        }
    }
}
#else
static void compute(uint8_t *out, const depthwise *d, const reads *pixels, int n)
{
    (void)out, (void)d, (void)pixels, (void)n; /* has_instructions() */
}
#endif

/* `step` is how far those of the next pixel are, where all of both are inside of the image. */
static void find_reads(reads *r, ptrdiff_t *step, const depthwise *d, const uint8_t *image,
                       int64_t y, int64_t x)
{
    const int64_t top = y * d->stride[0] - d->before[0], left = x * d->stride[1] - d->before[1];
    for (int i = 0; i < d->n_reads; i++) {
        const int64_t row = top + i / d->kernel[1] * d->dilation[0];
        const int64_t column = left + i % d->kernel[1] * d->dilation[1];
        const bool is_inside =
            i < d->n_points && row >= 0 && row < d->in[0] && column >= 0 && column < d->in[1];
        r->at[i] = is_inside ? image + (row * d->in[1] + column) * d->n_channels : d->blank;
        step[i] = is_inside ? d->stride[1] * d->n_channels : 0;
    }
}

/* Whether no column that the pixel needs lies beside the image. */
static bool is_within(const depthwise *d, int64_t x)
{
    const int64_t left = x * d->stride[1] - d->before[1];
    return left >= 0 && left + (d->kernel[1] - 1) * d->dilation[1] < d->in[1];
}

/* Row `y` of the result's image. */
static void compute_row(const depthwise *d, const uint8_t *image, uint8_t *out, int64_t y)
{
    enum { MOST = 32 };
    reads pixels[MOST];
    ptrdiff_t step[HWNAS_DEPTHWISE_POINTS];
    for (int64_t x = 0; x < d->out[1]; x += MOST) {
        int n = 0;
        for (; n < MOST && x + n < d->out[1]; n++) {
            if (!n || !is_within(d, x + n - 1) || !is_within(d, x + n))
                find_reads(&pixels[n], step, d, image, y, x + n);
            else
                for (int i = 0; i < d->n_reads; i++)
                    pixels[n].at[i] = pixels[n - 1].at[i] + step[i];
        }
        compute(out + x * d->n_channels, d, pixels, n);
    }
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const depthwise *d = step->state;
    const uint8_t *in = hwnas_onednn_values(step->inputs[0]);
    uint8_t *out = hwnas_onednn_values(step->outputs[0]);
    const int64_t n = d->n_images * d->out[0], in_bytes = d->in[0] * d->in[1] * d->n_channels;
#pragma omp parallel for num_threads(device->threads)                                              \
    schedule(static) if (n > 1 && device->threads > 1)
    for (int64_t i = 0; i < n; i++)
        compute_row(d, in + i / d->out[0] * in_bytes, out + i * d->out[1] * d->n_channels,
                    i % d->out[0]);
    return dnnl_success;
}

static void free_depthwise(void *state)
{
    depthwise *d = state;
    if (d) {
        free(d->weights);
        free(d->begins);
        free(d->factors);
        free(d->offsets);
        free(d->blank);
    }
    free(d);
}

const hwnas_onednn_kind hwnas_onednn_depthwise = {
    .name = "own loops",
    .run = run,
    .free = free_depthwise,
};
