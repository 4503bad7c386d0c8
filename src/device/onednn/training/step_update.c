/* step_update.c: SGD with momentum, and AdamW (Loshchilov and Hutter 2019, algorithm 2): a weight
 * is changed in place, in one pass over it. */
#include <math.h>

#include "device/onednn/simd.h"
#include "device/onednn/training/gradients.h"

/* So small that thousands of steps on one batch change no weight by much: what is measured does not
 * depend on the rate. */
static const float SGD_RATE = 1e-4f, SGD_MOMENTUM = 0.9f;
static const float ADAMW_RATE = 1e-6f, BETA1 = 0.9f, BETA2 = 0.999f, EPSILON = 1e-8f, DECAY = 0.01f;

enum { WEIGHT, SLOPE, MOMENTUM, SQUARES };
enum { PIECE = 1 << 14 }; /* values that a thread takes at a time */

HWNAS_CLONES static void sgd_piece(float *restrict w, const float *restrict g, float *restrict m,
                                   int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        m[i] = SGD_MOMENTUM * m[i] + g[i];
        w[i] -= SGD_RATE * m[i];
    }
}

/* `scale1`, `scale2`: what the averages are divided by while they are young. */
HWNAS_CLONES static void adamw_piece(float *restrict w, const float *restrict g, float *restrict m,
                                     float *restrict v, int64_t n, float scale1, float scale2)
{
    for (int64_t i = 0; i < n; i++) {
        m[i] = BETA1 * m[i] + (1 - BETA1) * g[i];
        v[i] = BETA2 * v[i] + (1 - BETA2) * g[i] * g[i];
        w[i] -= ADAMW_RATE * (m[i] * scale1 / (sqrtf(v[i] * scale2) + EPSILON) + DECAY * w[i]);
    }
}

static void update(const hwnas_tape *t, const void *settings, void *const *values)
{
    const int64_t n = *(const int64_t *)settings;
    float *w = values[WEIGHT], *m = values[MOMENTUM];
    const float *g = values[SLOPE];
    float *v = t->optimizer == HWNAS_ADAMW ? values[SQUARES] : NULL;
    const float scale1 = 1 / (1 - powf(BETA1, (float)t->n_runs));
    const float scale2 = 1 / (1 - powf(BETA2, (float)t->n_runs));
#pragma omp parallel for num_threads(t->device->threads) if (n > 2 * PIECE)
    for (int64_t i = 0; i < n; i += PIECE) {
        const int64_t count = n - i < PIECE ? n - i : PIECE;
        if (v)
            adamw_piece(w + i, g + i, m + i, v + i, count, scale1, scale2);
        else
            sgd_piece(w + i, g + i, m + i, count);
    }
}

hwnas_status hwnas_optimizer_write(hwnas_tape *t, int tensor)
{
    const int weight = t->master[tensor];
    const const_dnnl_memory_desc_t layout = t->slots[weight].layout;
    const hwnas_tape_content *content = hwnas_tape_find_content(t, weight);
    const int64_t n = (int64_t)(dnnl_memory_desc_get_size(layout) / sizeof(float));
    int slots[] = {weight, HWNAS_NO_SLOT, HWNAS_NO_SLOT, HWNAS_NO_SLOT};
    const const_dnnl_memory_desc_t plain = content->plain;
    const int64_t block = content->block;
    TRY(hwnas_tape_convert(&slots[SLOPE], t, t->gradient[tensor], layout));
    slots[MOMENTUM] = t->momentum[tensor] = hwnas_tape_add_kept(t, layout, plain, NULL);
    hwnas_tape_order_gates(t, slots[MOMENTUM], block);
    if (t->optimizer == HWNAS_ADAMW)
        slots[SQUARES] = hwnas_tape_add_kept(t, layout, plain, NULL);
    hwnas_tape_add_loop(t, update, &n, sizeof n, t->optimizer == HWNAS_ADAMW ? 4 : 3, slots);
    return HWNAS_OK;
}
