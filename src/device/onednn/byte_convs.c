/* byte_convs.c: where channels lie last, each row of a kernel reads bytes that lie one behind the
 * other, four of which are multiplied at a time with as many weights of eight channels. Rows that
 * reach beyond the image, or whose bytes are not in fours, are copied first. */
#include "device/onednn/byte_convs.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "device/onednn/byte_sums.h"
#include "device/onednn/windows.h"
#include "graph/op.h"

enum {
    BLOCK = HWNAS_SUMS_BLOCK,
    VECTORS = HWNAS_SUMS_VECTORS,
    AT_ONCE = 4, /* bytes */
    MOST_ROWS = 8,
    MOST_FOURS = 128,
    TILE = 64, /* pixels of the result */
};

typedef struct byte_conv {
    hwnas_byte_sums sums;
    /* Rows of the result, and pixels in each. Of a kernel of one point an image is one row. */
    int64_t n_rows, n_pixels, rows_in_image, n_tiles; /* tiles of a row */
    int64_t in[2], n_in;                              /* height and width, channels */
    int64_t kernel[2], stride[2], before[2], dilation;
    int n_fours;     /* of each of the kernel's rows */
    int8_t *weights; /* [block][kernel's row][fours][place in the block][AT_ONCE] */
    bool is_copied;
    size_t copy_bytes; /* of one row */
    uint8_t *copies;   /* [thread][kernel's row][copy_bytes] */
} byte_conv;

/* ---- Which groups ---- */

static int n_fours(const int64_t *kernel)
{
    return (int)((kernel[3] * kernel[1] + AT_ONCE - 1) / AT_ONCE);
}

/* A weight of an output by the kernel's row and the place in it; 0 behind its end. */
static float weight_at(const float *kernel, const int64_t *dims, int64_t output, int64_t row,
                       int64_t place)
{
    const int64_t column = place / dims[1], channel = place % dims[1];
    return column < dims[3]
               ? kernel[((output * dims[1] + channel) * dims[2] + row) * dims[3] + column]
               : 0;
}

/* Whether each two weights whose products are added up in 16 bits are small enough. */
static bool pairs_fit(const float *kernel, const int64_t *dims)
{
    enum { MOST = 128 }; /* 255 x 128 < 2^15 */
    for (int64_t output = 0; output < dims[0]; output++)
        for (int64_t row = 0; row < dims[2]; row++)
            for (int64_t i = 0; i < dims[3] * dims[1]; i += 2)
                if (fabsf(weight_at(kernel, dims, output, row, i)) +
                        fabsf(weight_at(kernel, dims, output, row, i + 1)) >
                    MOST)
                    return false;
    return true;
}

/* Measured on Zen 3: of one point of 16 channels 0.66 of oneDNN's time, of 512 0.97; of 7 x 7
 * points of three channels 0.74, of 3 x 3 points of 32 1.09. */
static bool is_faster(const int64_t *dims)
{
    enum { FEW = 8 };
    return dims[2] * n_fours(dims) <= MOST_FOURS && (dims[2] * dims[3] == 1 || dims[1] < FEW);
}

static bool has_kernel(float **out, const hwnas_onednn_source *source,
                       const hwnas_onednn_group *group)
{
    if (hwnas_byte_kernel(out, source, group) == HWNAS_OK)
        return true;
    hwnas_error_clear();
    return false;
}

bool hwnas_onednn_byte_conv_fits(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                                 const hwnas_onednn_layout *layouts)
{
    const hwnas_byte_posts posts = hwnas_byte_posts_of(group);
    if ((posts != HWNAS_BYTE_LIMITS && posts != HWNAS_BYTE_SUM) ||
        !hwnas_byte_sums_fit(source, group, layouts))
        return false;
    const hwnas_node *root = &source->graph->nodes[group->chain.nodes[0]];
    const int64_t *dims = hwnas_node_input(source->graph, root, 1)->dims;
    float *kernel;
    if (hwnas_node_attr(root, "groups")->ints[0] > 1 || dims[2] > MOST_ROWS || !is_faster(dims) ||
        (dims[3] > 1 && hwnas_node_attr(root, "dilation")->ints[1] > 1) ||
        !has_kernel(&kernel, source, group))
        return false;
    const bool fit = pairs_fit(kernel, dims);
    free(kernel);
    return fit;
}

/* ---- Compiling ---- */

static hwnas_status add_weights(byte_conv *c, hwnas_onednn_step *step, const float *kernel,
                                const int64_t *dims)
{
    void *weights;
    const int64_t n_four = BLOCK * AT_ONCE, n_row = c->n_fours * n_four;
    const int64_t n_block = c->kernel[0] * n_row, n = c->sums.n_blocks * n_block;
    TRY(hwnas_try_alloc(&weights, (size_t)n, step->name));
    c->weights = weights;
    step->bytes += (size_t)n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = i / n_block * BLOCK + i % n_four / AT_ONCE;
        const int64_t in_row = i % n_row / n_four * AT_ONCE + i % AT_ONCE;
        c->weights[i] = (int8_t)weight_at(kernel, dims, hwnas_byte_sums_channel(&c->sums, place),
                                          i % n_block / n_row, in_row);
    }
    return HWNAS_OK;
}

/* Tiles of a row, all of about the same length, so that threads have alike; and where each thread
 * copies rows of the image to. */
static hwnas_status plan_tiles(byte_conv *c, hwnas_onednn_step *step, int threads)
{
    void *copies;
    c->n_tiles = (c->n_pixels + TILE - 1) / TILE;
    if (c->n_rows < threads && c->n_pixels >= threads)
        c->n_tiles = (c->n_tiles + threads - 1) / threads * threads;
    if (!c->is_copied)
        return HWNAS_OK;
    const int64_t n_most = (c->n_pixels + c->n_tiles - 1) / c->n_tiles;
    c->copy_bytes = (size_t)(((n_most - 1) * c->stride[1] + c->kernel[1]) * c->n_in + AT_ONCE);
    const size_t bytes = (size_t)threads * (size_t)c->kernel[0] * c->copy_bytes;
    TRY(hwnas_try_alloc(&copies, bytes, step->name));
    c->copies = copies;
    step->bytes += bytes;
    return HWNAS_OK;
}

static void describe(byte_conv *c, const hwnas_graph *graph, const hwnas_node *root)
{
    const hwnas_tensor *in = hwnas_node_input(graph, root, 0);
    const hwnas_tensor *out = hwnas_node_output(graph, root);
    const int64_t *dims = hwnas_node_input(graph, root, 1)->dims;
    const hwnas_onednn_window window = hwnas_onednn_window_of(root);
    const int64_t *pad = hwnas_node_attr(root, "pad")->ints;
    c->n_in = dims[1];
    c->n_fours = n_fours(dims);
    c->dilation = hwnas_node_attr(root, "dilation")->ints[0];
    bool is_point = true;
    for (int i = 0; i < 2; i++) {
        c->in[i] = in->dims[2 + i];
        c->kernel[i] = dims[2 + i];
        c->stride[i] = window.stride[i];
        c->before[i] = window.before[i];
        is_point &= c->kernel[i] == 1 && c->stride[i] == 1;
    }
    c->is_copied =
        dims[2] > 1 || dims[3] * dims[1] % AT_ONCE || pad[0] || pad[1] || pad[2] || pad[3];
    c->rows_in_image = out->dims[2];
    c->n_pixels = out->dims[3];
    if (is_point && !c->is_copied) {
        c->rows_in_image = 1;
        c->n_pixels *= out->dims[2];
    }
    c->n_rows = in->dims[0] * c->rows_in_image;
}

hwnas_status hwnas_onednn_byte_conv_compile(hwnas_onednn_step *step, const onednn_device *device,
                                            const hwnas_onednn_source *source,
                                            const hwnas_onednn_group *group, hwnas_arena *arena)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_node *root = &source->graph->nodes[group->chain.nodes[0]];
    float *kernel = NULL;
    byte_conv *c = step->state = hwnas_alloc(sizeof *c);
    describe(c, source->graph, root);
    TRY_OUT(hwnas_byte_kernel(&kernel, source, group));
    TRY_OUT(hwnas_byte_sums_init(&c->sums, step, source, group, kernel, arena));
    TRY_OUT(add_weights(c, step, kernel, hwnas_node_input(source->graph, root, 1)->dims));
    TRY_OUT(plan_tiles(c, step, device->threads));
out:
    free(kernel);
    return status;
}

/* ---- Running ---- */

/* Pixels that lie side by side. */
typedef struct tile {
    int n;
    const uint8_t *rows[MOST_ROWS]; /* where the kernel's rows begin for the first one */
    uint8_t *out;
    const uint8_t *added; /* to the sums; else of no use */
} tile;

#if defined __x86_64__

/* Four bytes of a pixel, times their weights of each channel of a block. */
HWNAS_AVX2_INLINE void add_four(__m256i sums[VECTORS], const uint8_t *from, const int8_t *weights,
                                __m256i flip)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i x = _mm256_xor_si256(_mm256_set1_epi32(four), flip);
    for (int i = 0; i < VECTORS; i++) {
        const __m256i w =
            _mm256_loadu_si256((const __m256i *)(weights + i * HWNAS_SUMS_LANES * AT_ONCE));
        const __m256i pairs = _mm256_maddubs_epi16(x, w);
        sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(pairs, ones));
    }
}

/* Computes two pixels at a time; an odd last one is computed twice and written once. Finishes a
 * block of channels for all pixels before the next, so that its weights stay in the first cache. */
HWNAS_AVX2_INLINE void compute_all(const byte_conv *c, const tile *t, hwnas_byte_posts posts)
{
    const hwnas_byte_sums *s = &c->sums;
    const __m256i flip = hwnas_byte_flip(s->in_is_signed);
    const int64_t step = c->stride[1] * c->n_in;
    const int8_t *of_block = c->weights;
    for (int64_t block = 0; block < s->n_blocks; block++) {
        for (int i = 0; i < t->n; i += 2) {
            const int k = i + 1 < t->n ? i + 1 : i;
            const int8_t *weights = of_block;
            __m256i sums[VECTORS], other[VECTORS];
            hwnas_byte_sums_begin(sums, s, block);
            hwnas_byte_sums_begin(other, s, block);
            for (int64_t row = 0; row < c->kernel[0]; row++) {
                const uint8_t *a = t->rows[row] + i * step, *b = t->rows[row] + k * step;
                for (int four = 0; four < c->n_fours; four++, weights += BLOCK * AT_ONCE) {
                    add_four(sums, a + four * AT_ONCE, weights, flip);
                    add_four(other, b + four * AT_ONCE, weights, flip);
                }
            }
            const int64_t at = i * s->n_channels, next = k * s->n_channels;
            hwnas_byte_sums_store(t->out + at, t->added + at, sums, s, block, posts);
            if (k > i) /* what is added may have been where the result is now */
                hwnas_byte_sums_store(t->out + next, t->added + next, other, s, block, posts);
        }
        of_block += c->kernel[0] * c->n_fours * BLOCK * AT_ONCE;
    }
}

HWNAS_WITH_AVX2 static void compute(const byte_conv *c, const tile *t)
{
    if (c->sums.sum >= 0)
        compute_all(c, t, HWNAS_BYTE_SUM);
    else
        compute_all(c, t, HWNAS_BYTE_LIMITS);
}
#else
static void compute(const byte_conv *c, const tile *t)
{
    (void)c, (void)t; /* it does not fit */
}
#endif

/* What a tile reads of one row of the image, with what is beside it. */
static void copy_row(uint8_t *to, const byte_conv *c, const uint8_t *image, int64_t row, int64_t x,
                     int n)
{
    const int64_t left = x * c->stride[1] - c->before[1];
    const int64_t n_columns = (n - 1) * c->stride[1] + c->kernel[1];
    const int64_t first = left < 0 ? 0 : left;
    const int64_t end = left + n_columns < c->in[1] ? left + n_columns : c->in[1];
    memset(to, c->sums.blank, c->copy_bytes);
    if (row >= 0 && row < c->in[0] && first < end)
        memcpy(to + (first - left) * c->n_in, image + (row * c->in[1] + first) * c->n_in,
               (size_t)((end - first) * c->n_in));
}

static void run_tile(const hwnas_onednn_step *step, int64_t i)
{
    const byte_conv *c = step->state;
    const int64_t row = i / c->n_tiles, k = i % c->n_tiles, y = row % c->rows_in_image;
    const int64_t x = k * c->n_pixels / c->n_tiles;
    const int64_t at = (row * c->n_pixels + x) * c->sums.n_channels;
    const uint8_t *image = (uint8_t *)hwnas_onednn_values(step->inputs[0]) +
                           row / c->rows_in_image * c->in[0] * c->in[1] * c->n_in;
    tile t = {.n = (int)((k + 1) * c->n_pixels / c->n_tiles - x)};
    t.out = (uint8_t *)hwnas_onednn_values(step->outputs[0]) + at;
    t.added = c->sums.sum < 0 ? t.out : (uint8_t *)hwnas_onednn_values(step->inputs[1]) + at;
    t.rows[0] = image + (y * c->stride[0] * c->in[1] + x * c->stride[1]) * c->n_in;
    const size_t copies_bytes = (size_t)c->kernel[0] * c->copy_bytes;
    uint8_t *copy = c->is_copied ? c->copies + (size_t)omp_get_thread_num() * copies_bytes : NULL;
    for (int64_t r = 0; r < c->kernel[0] && copy; r++, copy += c->copy_bytes) {
        copy_row(copy, c, image, y * c->stride[0] - c->before[0] + r * c->dilation, x, t.n);
        t.rows[r] = copy;
    }
    compute(c, &t);
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const byte_conv *c = step->state;
    const int64_t n = c->n_rows * c->n_tiles;
#pragma omp parallel for num_threads(device->threads)                                              \
    schedule(static) if (n > 1 && device->threads > 1)
    for (int64_t i = 0; i < n; i++)
        run_tile(step, i);
    return dnnl_success;
}

/* Where what is added was, as long as no channel is computed twice, and none of it is read for
 * other channels, as it is of x + conv(x). */
static int in_place(const hwnas_onednn_step *step, int output, size_t k)
{
    const byte_conv *c = step->state;
    (void)output;
    if (k || c->sums.sum < 0 || c->sums.n_channels % BLOCK ||
        step->input_ids[0] == step->input_ids[1])
        return -1;
    return step->input_ids[1];
}

static void free_byte_conv(void *state)
{
    byte_conv *c = state;
    if (!c)
        return;
    hwnas_byte_sums_done(&c->sums);
    free(c->weights);
    free(c->copies);
    free(c);
}

const hwnas_onednn_kind hwnas_onednn_byte_conv = {
    .name = "own loops",
    .run = run,
    .free = free_byte_conv,
    .in_place = in_place,
};
