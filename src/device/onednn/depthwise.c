/* depthwise.c: each channel of an image with a kernel of its own, bytes in and out.
 *
 * AVX2 multiplies 16-bit numbers and adds up two neighbours in 32 bits. So the bytes of two of the
 * kernel's points are brought together for each channel (a0 b0 a1 b1 ...) and made 16 bits long.
 * Sums are exact; products of bytes themselves end in 16 bits, which large weights overflow. */
#include "device/onednn/depthwise.h"

#include <stdlib.h>
#include <string.h>

#include "device/onednn/byte_sums.h"
#include "device/onednn/windows.h"
#include "graph/op.h"
#include "graph/quantize_places.h"

enum {
    BLOCK = HWNAS_SUMS_BLOCK,
    VECTORS = HWNAS_SUMS_VECTORS,
    AT_ONCE = 2, /* points of the kernel at a time */
};
_Static_assert((int)HWNAS_DEPTHWISE_CHANNELS == (int)BLOCK, "fewer are not taken here");
_Static_assert(HWNAS_DEPTHWISE_POINTS % AT_ONCE == 0, "there is room for the last read");

typedef struct depthwise {
    hwnas_byte_sums sums;
    int64_t n_images, in[2], out[2]; /* height and width */
    int64_t kernel[2], stride[2], before[2], dilation[2];
    int n_points, n_reads; /* of the kernel; an even number, the last perhaps of no weight */
    int16_t *weights;      /* [block][n_reads / AT_ONCE][place in the block][AT_ONCE] */
    uint8_t *blank;        /* a pixel beside the image */
} depthwise;

bool hwnas_onednn_depthwise_fits(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                                 const hwnas_onednn_layout *layouts)
{
    const hwnas_byte_posts posts = hwnas_byte_posts_of(group);
    return (posts == HWNAS_BYTE_LIMITS || posts == HWNAS_BYTE_FUNCTIONS) &&
           hwnas_byte_sums_fit(source, group, layouts) &&
           hwnas_is_depthwise(source->graph, &source->graph->nodes[group->chain.nodes[0]]);
}

/* ---- Compiling ---- */

static hwnas_status add_weights(depthwise *d, hwnas_onednn_step *step, const float *kernel)
{
    void *weights;
    const int64_t n_block = (int64_t)d->n_reads * BLOCK, n = d->sums.n_blocks * n_block;
    TRY(hwnas_try_alloc(&weights, (size_t)n * sizeof *d->weights, step->name));
    d->weights = weights;
    step->bytes += (size_t)n * sizeof *d->weights;
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = i / n_block * BLOCK + i % (BLOCK * AT_ONCE) / AT_ONCE;
        const int64_t point = i % n_block / (BLOCK * AT_ONCE) * AT_ONCE + i % AT_ONCE;
        const int64_t channel = hwnas_byte_sums_channel(&d->sums, place);
        if (point < d->n_points)
            d->weights[i] = (int16_t)kernel[channel * d->n_points + point];
    }
    return HWNAS_OK;
}

hwnas_status hwnas_onednn_depthwise_compile(hwnas_onednn_step *step,
                                            const hwnas_onednn_source *source,
                                            const hwnas_onednn_group *group, hwnas_arena *arena)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_graph *graph = source->graph;
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    const hwnas_tensor *in = hwnas_node_input(graph, root, 0);
    const hwnas_onednn_window window = hwnas_onednn_window_of(root);
    float *kernel = NULL;
    depthwise *d = step->state = hwnas_alloc(sizeof *d);
    d->n_images = in->dims[0];
    d->n_points = 1;
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
    TRY_OUT(hwnas_byte_kernel(&kernel, source, group));
    TRY_OUT(hwnas_byte_sums_init(&d->sums, step, source, group, kernel, arena));
    TRY_OUT(add_weights(d, step, kernel));
    d->blank = hwnas_alloc((size_t)d->sums.n_channels);
    memset(d->blank, d->sums.blank, (size_t)d->sums.n_channels);
    step->bytes += (size_t)d->sums.n_channels;
out:
    free(kernel);
    return status;
}

/* ---- Running ---- */

/* Where the points of the kernel are for a pixel of the result. */
typedef struct reads {
    const uint8_t *at[HWNAS_DEPTHWISE_POINTS];
} reads;

#if defined __x86_64__

/* A byte of each channel from two pixels, multiplied by their weights and added to the sums. `flip`
 * makes signed bytes unsigned. */
HWNAS_AVX2_INLINE void add_points(__m256i sums[VECTORS], const uint8_t *const at[AT_ONCE],
                                  int64_t channel, const int16_t *weights, __m256i flip)
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
        const __m256i w =
            _mm256_loadu_si256((const __m256i *)(weights + i * HWNAS_SUMS_LANES * AT_ONCE));
        sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(pairs[i], w));
    }
}

/* Computes pixels that lie side by side, two at a time; an odd last one is computed twice. Finishes
 * a block of channels for all pixels before the next, so that its weights stay in the first cache.
 */
HWNAS_AVX2_INLINE void compute_all(uint8_t *out, const depthwise *d, const reads *pixels, int n,
                                   hwnas_byte_posts posts)
{
    const hwnas_byte_sums *s = &d->sums;
    const __m256i flip = hwnas_byte_flip(s->in_is_signed);
    for (int64_t block = 0; block < s->n_blocks; block++) {
        const int64_t channel = hwnas_byte_sums_first(s, block);
        for (int i = 0; i < n; i += 2) {
            const int k = i + 1 < n ? i + 1 : i;
            const int16_t *weights = d->weights + block * BLOCK * d->n_reads;
            __m256i sums[VECTORS], other[VECTORS];
            hwnas_byte_sums_begin(sums, s, block);
            hwnas_byte_sums_begin(other, s, block);
            for (int r = 0; r < d->n_reads; r += AT_ONCE, weights += AT_ONCE * BLOCK) {
                add_points(sums, pixels[i].at + r, channel, weights, flip);
                add_points(other, pixels[k].at + r, channel, weights, flip);
            }
            hwnas_byte_sums_store(out + i * s->n_channels, NULL, sums, s, block, posts);
            hwnas_byte_sums_store(out + k * s->n_channels, NULL, other, s, block, posts);
        }
    }
}

HWNAS_WITH_AVX2 static void compute(uint8_t *out, const depthwise *d, const reads *pixels, int n)
{
    if (d->sums.n_posts)
        compute_all(out, d, pixels, n, HWNAS_BYTE_FUNCTIONS);
    else
        compute_all(out, d, pixels, n, HWNAS_BYTE_LIMITS);
}
#else
static void compute(uint8_t *out, const depthwise *d, const reads *pixels, int n)
{
    (void)out, (void)d, (void)pixels, (void)n; /* it does not fit */
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
        r->at[i] = is_inside ? image + (row * d->in[1] + column) * d->sums.n_channels : d->blank;
        step[i] = is_inside ? d->stride[1] * d->sums.n_channels : 0;
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
        compute(out + x * d->sums.n_channels, d, pixels, n);
    }
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const depthwise *d = step->state;
    const uint8_t *in = hwnas_onednn_values(step->inputs[0]);
    uint8_t *out = hwnas_onednn_values(step->outputs[0]);
    const int64_t n = d->n_images * d->out[0], in_bytes = d->in[0] * d->in[1] * d->sums.n_channels;
#pragma omp parallel for num_threads(device->threads)                                              \
    schedule(static) if (n > 1 && device->threads > 1)
    for (int64_t i = 0; i < n; i++)
        compute_row(d, in + i / d->out[0] * in_bytes, out + i * d->out[1] * d->sums.n_channels,
                    i % d->out[0]);
    return dnnl_success;
}

static void free_depthwise(void *state)
{
    depthwise *d = state;
    if (!d)
        return;
    hwnas_byte_sums_done(&d->sums);
    free(d->weights);
    free(d->blank);
    free(d);
}

const hwnas_onednn_kind hwnas_onednn_depthwise = {
    .name = "own loops",
    .run = run,
    .free = free_depthwise,
};
