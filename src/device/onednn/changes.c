/* changes.c: oneDNN's reorder takes 1.1 ns for each value of an image of three channels, these
 * loops a tenth of that. */
#include "device/onednn/changes.h"

#include <stdlib.h>

#include "device/onednn/onednn_int8.h"
#include "device/onednn/simd.h"
#include "graph/op.h"

enum { MAX_CHANNELS = 8, BLOCK = 512 }; /* BLOCK: pixels or values at a time */

typedef struct change {
    float inverse, low, high; /* of the scale; what is left when the zero point is taken off */
    int32_t zero;
    int64_t n_images, n_channels, n_pixels; /* in the same order: one channel */
} change;

static bool is_image(const hwnas_onednn_layout *layouts, int tensor)
{
    return layouts[tensor] == HWNAS_ONEDNN_IMAGE;
}

/* Between two layouts, and the values do change their places. */
static bool turns(const hwnas_tensor *t, const hwnas_onednn_layout *layouts, int from, int to)
{
    return is_image(layouts, from) != is_image(layouts, to) && t->dims[1] > 1 &&
           t->dims[2] * t->dims[3] > 1;
}

bool hwnas_onednn_change_fits(const hwnas_graph *graph, const hwnas_onednn_group *group,
                              const hwnas_onednn_layout *layouts)
{
    const hwnas_node *root = &graph->nodes[group->chain.nodes[0]];
    const hwnas_tensor *t = hwnas_node_output(graph, root);
    const int from = root->inputs[0], to = root->output;
    return root->op->id == HWNAS_OP_QUANTIZE_LINEAR &&
           (!turns(t, layouts, from, to) || (is_image(layouts, to) && t->dims[1] <= MAX_CHANNELS));
}

hwnas_status hwnas_onednn_change_compile(hwnas_onednn_step *step, const hwnas_onednn_source *source,
                                         const hwnas_onednn_group *group,
                                         const hwnas_onednn_layout *layouts, hwnas_arena *arena)
{
    const hwnas_node *root = &source->graph->nodes[group->chain.nodes[0]];
    const hwnas_tensor *t = hwnas_node_output(source->graph, root);
    const hwnas_onednn_scale with = hwnas_onednn_scale_of(source->graph, root);
    const bool is_signed = source->kept[root->output] == dnnl_s8;
    change *c = step->state = hwnas_alloc(sizeof *c);
    *c = (change){.inverse = 1 / with.scale, .zero = with.zero, .n_images = 1, .n_channels = 1};
    c->low = (float)((is_signed ? -128 : 0) - with.zero);
    c->high = (float)((is_signed ? 127 : 255) - with.zero);
    c->n_pixels = hwnas_tensor_count(t);
    if (turns(t, layouts, root->inputs[0], root->output)) {
        c->n_images = t->dims[0];
        c->n_channels = t->dims[1];
        c->n_pixels = t->dims[2] * t->dims[3];
    }
    step->n_inputs = step->n_outputs = 1;
    step->input_ids = hwnas_arena_copy(arena, root->inputs, sizeof *step->input_ids);
    step->output_ids = hwnas_arena_copy(arena, &root->output, sizeof *step->output_ids);
    return HWNAS_OK;
}

/* The low byte is right for signed and for unsigned ones. */
HWNAS_CLONES static void to_bytes(uint8_t *restrict out, const float *restrict in, int64_t n,
                                  const change *c)
{
    const float inverse = c->inverse, low = c->low, high = c->high;
    const int32_t zero = c->zero;
    for (int64_t i = 0; i < n; i++) {
        float v = in[i] * inverse;
        v = v > low ? v : low; /* NaN becomes `low`, too */
        v = v > high ? high : v;
        /* 1.5 * 2^23: what is added to it is rounded to a whole number, and its low byte is 0 */
        out[i] = (uint8_t)((int32_t)(v + 12582912.0f) + zero);
    }
}

HWNAS_CLONES static void interleave_three(uint8_t *restrict out, const uint8_t *restrict a,
                                          const uint8_t *restrict b, const uint8_t *restrict c,
                                          int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        out[3 * i] = a[i];
        out[3 * i + 1] = b[i];
        out[3 * i + 2] = c[i];
    }
}

/* `n` pixels whose channels lie `stride` apart. */
static void turn(uint8_t *out, const float *in, int64_t n, int64_t stride, const change *c)
{
    uint8_t rows[MAX_CHANNELS][BLOCK];
    for (int64_t k = 0; k < c->n_channels; k++)
        to_bytes(rows[k], in + k * stride, n, c);
    if (c->n_channels == 3) {
        interleave_three(out, rows[0], rows[1], rows[2], n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < c->n_channels; k++)
            *out++ = rows[k][i];
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { WORTH_A_THREAD = 1 << 15 }; /* values */
    const change *c = step->state;
    const float *in = hwnas_onednn_values(step->inputs[0]);
    uint8_t *out = hwnas_onednn_values(step->outputs[0]);
    const int64_t n_blocks = (c->n_pixels + BLOCK - 1) / BLOCK, image = c->n_channels * c->n_pixels;
#pragma omp parallel for num_threads(device->threads)                                              \
    schedule(static) if (c->n_images * image > WORTH_A_THREAD)
    for (int64_t i = 0; i < c->n_images * n_blocks; i++) {
        const int64_t at = i % n_blocks * BLOCK, left = c->n_pixels - at;
        const int64_t n = left < BLOCK ? left : BLOCK;
        const float *from = in + i / n_blocks * image + at;
        uint8_t *to = out + i / n_blocks * image + at * c->n_channels;
        if (c->n_channels == 1)
            to_bytes(to, from, n, c);
        else
            turn(to, from, n, c->n_pixels, c);
    }
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_changes = {
    .name = "own loops",
    .run = run,
    .free = free,
};
