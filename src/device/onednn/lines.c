/* lines.c: a line of padding is written at once, with what was there in its middle; sums are made of many
 * lines side by side, where these lie so. */
#include "device/onednn/lines.h"

#include <stdlib.h>
#include <string.h>

#include "device/onednn/simd.h"
#include "graph/op.h"
#include "graph/ops/pad.h"

/* ---- Padding ---- */

/* Along `axis`, the last dimension that is padded, whose places have `count` values each. */
typedef struct pads {
    int axis;
    int64_t mode, n_lines, count;
    int64_t in[HWNAS_MAX_RANK], out[HWNAS_MAX_RANK], before[HWNAS_MAX_RANK];
    float value;
} pads;

static hwnas_status compile_pad(hwnas_onednn_step *step, const onednn_device *device,
                                const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0),
                       *out = hwnas_node_output(graph, node);
    pads *p = step->state = hwnas_alloc(sizeof *p);
    (void)device;
    *p = (pads){.mode = hwnas_node_attr(node, "mode")->ints[0],
                .n_lines = 1,
                .count = 1,
                .in = {1},
                .out = {1},
                .value = (float)hwnas_node_attr(node, "value")->number};
    for (int i = 0; i < out->rank; i++) {
        p->in[i] = in->dims[i];
        p->out[i] = out->dims[i];
        p->before[i] = hwnas_node_attr(node, "before")->ints[i];
        p->axis = in->dims[i] != out->dims[i] ? i : p->axis;
    }
    for (int i = 0; i < out->rank; i++)
        *(i < p->axis ? &p->n_lines : &p->count) *= i == p->axis ? 1 : out->dims[i];
    return HWNAS_OK;
}

/* The first line of the input's plane that one of the output comes from; -1: none. The lines of a
 * plane are the dimension before the axis. */
static int64_t source_plane(const pads *p, int64_t plane)
{
    int64_t at = 0, step = p->axis ? p->in[p->axis - 1] : 1;
    for (int i = p->axis - 2; i >= 0; step *= p->in[i--]) {
        const int64_t from =
            hwnas_pad_source(plane % p->out[i] - p->before[i], p->in[i], p->mode);
        if (from < 0)
            return -1;
        at += from * step;
        plane /= p->out[i];
    }
    return at;
}

HWNAS_CLONES static void fill(float *out, float value, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = value;
}

/* Short pieces are many: a call of memcpy() for each takes as long as all else. */
HWNAS_INLINE void copy(float *out, const float *in, int64_t n)
{
    int64_t i = 0;
    if (n > 256) {
        memcpy(out, in, (size_t)n * sizeof *out);
        return;
    }
    for (; i + HWNAS_HALF_LANES <= n; i += HWNAS_HALF_LANES)
        *(hwnas_half *)(out + i) = *(const hwnas_half *)(in + i);
    for (; i < n; i++)
        out[i] = in[i];
}

/* Places `first` to `end` of a line, which are new. */
HWNAS_INLINE void pad_side(float *out, const float *in, const pads *p, int64_t first, int64_t end)
{
    const int64_t n = p->count, n_in = p->in[p->axis], before = p->before[p->axis];
    for (int64_t i = first; i < end; i++) {
        const int64_t from = hwnas_pad_source(i - before, n_in, p->mode);
        for (int64_t k = 0; k < n && from < 0; k++)
            out[i * n + k] = p->value;
        if (from >= 0)
            copy(out + i * n, in + from * n, n);
    }
}

HWNAS_CLONES static void pad_line(float *out, const float *in, const pads *p)
{
    const int64_t n_in = p->in[p->axis], before = p->before[p->axis];
    pad_side(out, in, p, 0, before);
    copy(out + before * p->count, in, n_in * p->count);
    pad_side(out, in, p, before + n_in, p->out[p->axis]);
}

/* Lines `first` to `end`, of which `height` are a plane. */
static void pad_lines(float *out, const float *in, const pads *p, int64_t first, int64_t end)
{
    const int64_t height = p->axis ? p->out[p->axis - 1] : 1, n_in = p->axis ? p->in[p->axis - 1] : 1;
    const int64_t before = p->axis ? p->before[p->axis - 1] : 0;
    const int64_t from_length = p->in[p->axis] * p->count, length = p->out[p->axis] * p->count;
    int64_t y = first % height, plane = source_plane(p, first / height);
    for (int64_t i = first; i < end; i++, y++) {
        if (y == height) {
            plane = source_plane(p, i / height);
            y = 0;
        }
        const int64_t from = plane < 0 ? -1 : hwnas_pad_source(y - before, n_in, p->mode);
        if (from < 0)
            fill(out + i * length, p->value, length);
        else
            pad_line(out + i * length, in + (plane + from) * from_length, p);
    }
}

static dnnl_status_t run_pad(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { WORTH_A_THREAD = 1 << 14 }; /* values */
    const pads *p = step->state;
    const float *in = hwnas_onednn_values(step->inputs[0]);
    float *out = hwnas_onednn_values(step->outputs[0]);
    int64_t n_parts = p->n_lines * p->out[p->axis] * p->count / WORTH_A_THREAD;
    n_parts = n_parts > device->threads ? device->threads : n_parts < 1 ? 1 : n_parts;
#pragma omp parallel for num_threads(n_parts) if (n_parts > 1)
    for (int64_t i = 0; i < n_parts; i++)
        pad_lines(out, in, p, p->n_lines * i / n_parts, p->n_lines * (i + 1) / n_parts);
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_pads = {
    .name = "own loops",
    .compile = compile_pad,
    .run = run_pad,
    .free = free,
};

/* ---- Sums of all values so far ---- */

enum { COLUMNS = 32 }; /* whose sums stay in registers */

/* The values are outer x n x inner. */
typedef struct sums {
    int64_t outer, n, inner;
    bool is_exclusive, is_reverse;
} sums;

static hwnas_status compile_sums(hwnas_onednn_step *step, const onednn_device *device,
                                 const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    const int64_t axis = hwnas_node_attr(node, "axis")->ints[0];
    sums *s = step->state = hwnas_alloc(sizeof *s);
    (void)device;
    *s = (sums){1, 1, 1, hwnas_node_attr(node, "exclusive")->ints[0],
                hwnas_node_attr(node, "reverse")->ints[0]};
    for (int i = 0; i < in->rank; i++)
        *(i < axis ? &s->outer : i == axis ? &s->n : &s->inner) *= in->dims[i];
    return HWNAS_OK;
}

/* Lines side by side, `width` of them, from their begin or end on. */
HWNAS_CLONES static void sum_lines(float *out, const float *in, const sums *s, int64_t width)
{
    double all[COLUMNS] = {0};
    const int64_t step = s->is_reverse ? -s->inner : s->inner;
    int64_t at = s->is_reverse ? (s->n - 1) * s->inner : 0;
    for (int64_t k = 0; k < s->n; k++, at += step)
        for (int64_t i = 0; i < width; i++) {
            const double before = all[i];
            all[i] += in[at + i];
            out[at + i] = (float)(s->is_exclusive ? before : all[i]);
        }
}

static dnnl_status_t run_sums(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { WORTH_A_THREAD = 1 << 14 }; /* values */
    const sums *s = step->state;
    const float *in = hwnas_onednn_values(step->inputs[0]);
    float *out = hwnas_onednn_values(step->outputs[0]);
    const int64_t n_columns = (s->inner + COLUMNS - 1) / COLUMNS;
    (void)device; /* without OpenMP */
#pragma omp parallel for num_threads(device->threads) schedule(static) if (                        \
        device->threads > 1 && s->outer * s->n * s->inner > WORTH_A_THREAD)
    for (int64_t i = 0; i < s->outer * n_columns; i++) {
        const int64_t at = i / n_columns * s->n * s->inner + i % n_columns * COLUMNS,
                      left = s->inner - i % n_columns * COLUMNS;
        if (left >= COLUMNS)
            sum_lines(out + at, in + at, s, COLUMNS);
        else
            sum_lines(out + at, in + at, s, left);
    }
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_cum_sums = {
    .name = "own loops",
    .compile = compile_sums,
    .run = run_sums,
    .free = free,
};
