/* grid_samples.c: where pixels of the output come from is found once for a piece of them, and holds
 * for all channels. */
#include "device/onednn/grid_samples.h"

#include <math.h>
#include <stdlib.h>

#include "device/onednn/simd.h"
#include "graph/op.h"
#include "graph/ops/grid_sample.h"

enum {
    PIXELS = 64,   /* of a piece: with 16 taps their table is 8 KiB */
    CHANNELS = 64, /* of a piece, so that small images with many of them are shared among threads */
    MOST_TAPS = HWNAS_SAMPLE_MAX_TAPS * HWNAS_SAMPLE_MAX_TAPS
};

typedef struct samples {
    hwnas_sampling how;
    int64_t batch, channels, height, width, n_pixels;
} samples;

/* For each pixel of a piece. What counts as zero has a bit in `zeros`, and stands as the image's
 * first pixel with a weight of 0 in the tables. */
typedef struct taps {
    int n;
    bool has_zeros;
    int32_t at[MOST_TAPS][PIXELS];
    float weights[MOST_TAPS][PIXELS];
    unsigned zeros[PIXELS];
} taps;

bool hwnas_onednn_can_sample(const hwnas_graph *graph, const hwnas_node *node)
{
    const int64_t *dims = hwnas_node_input(graph, node, 0)->dims;
    return dims[2] * dims[3] <= INT32_MAX;
}

static hwnas_status compile_samples(hwnas_onednn_step *step, const onednn_device *device,
                                    const hwnas_graph *graph, const hwnas_node *node)
{
    const int64_t *in = hwnas_node_input(graph, node, 0)->dims;
    const int64_t *out = hwnas_node_output(graph, node)->dims;
    samples *s = step->state = hwnas_alloc(sizeof *s);
    (void)device;
    *s = (samples){hwnas_sampling_of(node), in[0], in[1], in[2], in[3], out[2] * out[3]};
    return HWNAS_OK;
}

/* Of pixel `p` of the piece. */
static void find_taps(taps *out, const samples *s, const float *place, int64_t p)
{
    int64_t x[HWNAS_SAMPLE_MAX_TAPS], y[HWNAS_SAMPLE_MAX_TAPS];
    float u[HWNAS_SAMPLE_MAX_TAPS], v[HWNAS_SAMPLE_MAX_TAPS];
    const int n = hwnas_sample_taps(x, u, &s->how, place[0], s->width);
    hwnas_sample_taps(y, v, &s->how, place[1], s->height);
    out->n = n * n;
    out->zeros[p] = 0;
    for (int k = 0; k < n * n; k++) {
        const bool is_zero = y[k / n] < 0 || x[k % n] < 0;
        out->at[k][p] = is_zero ? 0 : (int32_t)(y[k / n] * s->width + x[k % n]);
        out->weights[k][p] = is_zero ? 0 : v[k / n] * u[k % n];
        out->zeros[p] |= (unsigned)is_zero << k;
    }
    out->has_zeros |= out->zeros[p] != 0;
}

HWNAS_INLINE void sample_with(float *out, const float *plane, const taps *t, int64_t n, int n_taps)
{
    HWNAS_EACH_OF(p, n)
    {
        float sum = 0;
        for (int k = 0; k < n_taps; k++)
            sum += t->weights[k][p] * plane[t->at[k][p]];
        out[p] = sum;
    }
}

/* By a number of taps that the compiler knows. */
HWNAS_CLONES static void sample(float *out, const float *plane, const taps *t, int64_t n)
{
    if (t->n == 1)
        sample_with(out, plane, t, n, 1);
    else if (t->n == 4)
        sample_with(out, plane, t, n, 4);
    else
        sample_with(out, plane, t, n, MOST_TAPS);
}

/* Where the first pixel is no number, zero times it is none either: those that it has no part in
 * are made anew. */
static void mend_zeros(float *out, const float *plane, const taps *t, int64_t n)
{
    for (int64_t p = 0; p < n; p++) {
        if (!t->zeros[p])
            continue;
        out[p] = 0;
        for (int k = 0; k < t->n; k++)
            out[p] += t->zeros[p] >> k & 1 ? 0 : t->weights[k][p] * plane[t->at[k][p]];
    }
}

/* Pixels from `first` on, of channels from `channel` on. */
static void sample_piece(float *out, const float *in, const float *grid, const samples *s,
                         int64_t image, int64_t channel, int64_t first)
{
    const int64_t n = s->n_pixels - first < PIXELS ? s->n_pixels - first : PIXELS;
    const int64_t end = channel + CHANNELS < s->channels ? channel + CHANNELS : s->channels;
    taps t;
    t.has_zeros = false;
    for (int64_t p = 0; p < n; p++)
        find_taps(&t, s, grid + 2 * (image * s->n_pixels + first + p), p);
    for (int64_t c = channel; c < end; c++) {
        const int64_t plane = image * s->channels + c;
        float *to = out + plane * s->n_pixels + first;
        const float *from = in + plane * s->height * s->width;
        sample(to, from, &t, n);
        if (t.has_zeros && !isfinite(*from))
            mend_zeros(to, from, &t, n);
    }
}

static dnnl_status_t run_samples(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { WORTH_A_THREAD = 1 << 12 }; /* values */
    const samples *s = step->state;
    const float *in = hwnas_onednn_values(step->inputs[0]);
    const float *grid = hwnas_onednn_values(step->inputs[1]);
    float *out = hwnas_onednn_values(step->outputs[0]);
    const int64_t n_rows = (s->n_pixels + PIXELS - 1) / PIXELS;
    const int64_t n_blocks = (s->channels + CHANNELS - 1) / CHANNELS;
    (void)device; /* without OpenMP */
#pragma omp parallel for num_threads(device->threads) schedule(                                    \
    static) if (device->threads > 1 && s->batch * s->channels * s->n_pixels > WORTH_A_THREAD)
    for (int64_t i = 0; i < s->batch * n_blocks * n_rows; i++)
        sample_piece(out, in, grid, s, i / n_rows / n_blocks, i / n_rows % n_blocks * CHANNELS,
                     i % n_rows * PIXELS);
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_grid_samples = {
    .name = "own loops",
    .compile = compile_samples,
    .run = run_samples,
    .free = free,
};
