/* plain_pools.c: the rows of a window are made one first, all columns at a time, then the columns.
 */
#include "device/onednn/plain_pools.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "device/onednn/reduce_loops.h"
#include "device/onednn/simd.h"
#include "device/onednn/windows.h"
#include "graph/op.h"

typedef struct pools {
    bool is_max, counts_pad;
    hwnas_onednn_window window;
    int64_t kernel[2], in[2], out[2], n_planes; /* height and width */
    int64_t room_length;                        /* of one row, values */
    int64_t together; /* rows of the output that are made one after the other: what was just
                         written cannot be read again at other borders at once */
    float *rooms,
        *inverse; /* rooms: such rows for each thread; inverse: of each window's columns */
} pools;

/* ---- Compiling ---- */

bool hwnas_onednn_is_plain_pool(const hwnas_graph *graph, const hwnas_node *node)
{
    const int producer = hwnas_node_input(graph, node, 0)->producer;
    return producer >= 0 && graph->nodes[producer].op->id == HWNAS_OP_RESHAPE;
}

/* Of window `at`, how many places are no padding; `first`: the first of them. */
static int64_t places_of(int64_t *first, const pools *p, int axis, int64_t at)
{
    const int64_t begin = at * p->window.stride[axis] - p->window.before[axis];
    const int64_t end = begin + p->kernel[axis];
    *first = begin < 0 ? 0 : begin;
    return (end > p->in[axis] ? p->in[axis] : end) - *first;
}

/* Whether each column is a window, where it lies. */
static bool keeps_columns(const pools *p)
{
    return p->kernel[1] == 1 && p->window.stride[1] == 1 && p->in[1] == p->out[1];
}

/* A row with the padding at both sides, and what loops over whole vectors read beyond. */
static hwnas_status take_rooms(hwnas_onednn_step *step, pools *p, int threads)
{
    const int64_t n = (p->out[1] + HWNAS_HALF_LANES - 1) / HWNAS_HALF_LANES * HWNAS_HALF_LANES;
    const int64_t read = (n - 1) * p->window.stride[1] + p->kernel[1] + 1;
    const int64_t whole = p->window.before[1] + p->in[1];
    enum { ROOM = 1 << 12 }; /* values */
    void *rooms, *inverse;
    p->room_length = read > whole ? read : whole;
    p->together = p->room_length < ROOM ? ROOM / p->room_length : 1;
    p->together = p->together < p->out[0] ? p->together : p->out[0];
    const int64_t n_values = p->room_length * p->together * threads;
    const size_t bytes = (size_t)n_values * sizeof *p->rooms;
    TRY(hwnas_try_alloc(&rooms, bytes, step->name));
    p->rooms = rooms;
    for (int64_t i = 0; i < n_values; i++)
        p->rooms[i] = p->is_max ? -INFINITY : 0;
    TRY(hwnas_try_alloc(&inverse, (size_t)p->out[1] * sizeof *p->inverse, step->name));
    p->inverse = inverse;
    for (int64_t x = 0, first; x < p->out[1]; x++)
        p->inverse[x] = 1 / (float)(p->counts_pad ? p->kernel[1] : places_of(&first, p, 1, x));
    step->bytes = bytes + (size_t)p->out[1] * sizeof *p->inverse;
    return HWNAS_OK;
}

static hwnas_status compile(hwnas_onednn_step *step, const onednn_device *device,
                            const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0),
                       *out = hwnas_node_output(graph, node);
    pools *p = step->state = hwnas_alloc(sizeof *p);
    p->is_max = node->op->id == HWNAS_OP_MAX_POOL;
    p->counts_pad = !p->is_max && hwnas_node_attr(node, "count_pad")->ints[0];
    p->window = hwnas_onednn_window_of(node);
    p->n_planes = in->dims[0] * in->dims[1];
    for (int i = 0; i < 2; i++) {
        p->kernel[i] = hwnas_node_attr(node, "kernel")->ints[i];
        p->in[i] = in->dims[2 + i];
        p->out[i] = out->dims[2 + i];
    }
    return take_rooms(step, p, device->threads);
}

/* ---- Running ---- */

HWNAS_INLINE void add(hwnas_half *all, const hwnas_half *x)
{
    *all += *x;
}

HWNAS_INLINE void keep_greater(hwnas_half *all, const hwnas_half *x)
{
    hwnas_choose_half(all, all, x, x, all);
}

/* Every `stride`-th of what is from `in` on; with 2 it reads one more. A vector that is written
 * piece by piece cannot be read at once. */
HWNAS_INLINE void take_every(hwnas_half *out, const float *in, int64_t stride)
{
    if (stride == 1) {
        *out = *(const hwnas_half *)in;
    } else if (stride == 2) {
        const hwnas_half a = *(const hwnas_half *)in, b = *(const hwnas_half *)(in + 8);
        *out = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    } else {
        *out = (hwnas_half){in[0],          in[stride],     in[2 * stride], in[3 * stride],
                            in[4 * stride], in[5 * stride], in[6 * stride], in[7 * stride]};
    }
}

/* `kernel` values from every `stride`-th on; `n` times. */
#define ACROSS(NAME, START, MERGE)                                                                 \
    HWNAS_INLINE void NAME##_by(float *out, const float *in, int64_t n, int64_t kernel,            \
                                int64_t stride)                                                    \
    {                                                                                              \
        for (int64_t x = 0; x < n; x += HWNAS_HALF_LANES) {                                        \
            hwnas_half all = (hwnas_half){0} + START, v;                                           \
            for (int64_t k = 0; k < kernel; k++) {                                                 \
                take_every(&v, in + x * stride + k, stride);                                       \
                MERGE(&all, &v);                                                                   \
            }                                                                                      \
            if (x + HWNAS_HALF_LANES <= n) {                                                       \
                *(hwnas_half *)(out + x) = all;                                                    \
            } else {                                                                               \
                const hwnas_half last = all;                                                       \
                memcpy(out + x, &last, (size_t)(n - x) * sizeof *out);                             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    HWNAS_CLONES static void NAME(float *out, const float *in, int64_t n, int64_t kernel,          \
                                  int64_t stride)                                                  \
    {                                                                                              \
        if (stride == 1)                                                                           \
            NAME##_by(out, in, n, kernel, 1);                                                      \
        else if (stride == 2)                                                                      \
            NAME##_by(out, in, n, kernel, 2);                                                      \
        else                                                                                       \
            NAME##_by(out, in, n, kernel, stride);                                                 \
    }

ACROSS(greatest_across, -INFINITY, keep_greater)
ACROSS(sum_across, 0.0f, add)

static float inverse_of(const pools *p, int64_t y)
{
    int64_t top;
    return 1 / (float)(p->counts_pad ? p->kernel[0] : places_of(&top, p, 0, y));
}

/* Rows `first` to `end` of a plane of the output. */
static void run_rows(float *out, const float *plane, const pools *p, int64_t first, int64_t end,
                     float *room)
{
    const hwnas_reduce_loops *loops = p->is_max ? &hwnas_reduce_greatest : &hwnas_reduce_sums;
    const bool stays = keeps_columns(p);
    for (int64_t y = first; y < end; y++) {
        int64_t top;
        const int64_t n = places_of(&top, p, 0, y), width = p->in[1];
        float *to =
            stays ? out + y * p->out[1] : room + (y - first) * p->room_length + p->window.before[1];
        loops->columns(to, plane + top * width, n, width, width);
    }
    for (int64_t y = first; y < end && !stays; y++)
        (p->is_max ? greatest_across : sum_across)(out + y * p->out[1],
                                                   room + (y - first) * p->room_length, p->out[1],
                                                   p->kernel[1], p->window.stride[1]);
    for (int64_t y = first; y < end && !p->is_max; y++) {
        const float inverse = inverse_of(p, y);
        for (int64_t x = 0; x < p->out[1]; x++)
            out[y * p->out[1] + x] *= inverse * p->inverse[x];
    }
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { WORTH_A_THREAD = 1 << 14 }; /* values */
    const pools *p = step->state;
    const float *in = hwnas_onednn_values(step->inputs[0]);
    float *out = hwnas_onednn_values(step->outputs[0]);
    const int64_t n_parts = (p->out[0] + p->together - 1) / p->together;
#pragma omp parallel for num_threads(device->threads) schedule(                                    \
    static) if (device->threads > 1 && p->n_planes * p->in[0] * p->in[1] > WORTH_A_THREAD)
    for (int64_t i = 0; i < p->n_planes * n_parts; i++) {
        const int thread = device->threads > 1 ? omp_get_thread_num() : 0;
        const int64_t plane = i / n_parts, first = i % n_parts * p->together,
                      end = first + p->together;
        run_rows(out + plane * p->out[0] * p->out[1], in + plane * p->in[0] * p->in[1], p, first,
                 end < p->out[0] ? end : p->out[0],
                 p->rooms + thread * p->together * p->room_length);
    }
    return dnnl_success;
}

static void free_pools(void *state)
{
    pools *p = state;
    if (!p)
        return;
    free(p->rooms);
    free(p->inverse);
    free(p);
}

const hwnas_onednn_kind hwnas_onednn_plain_pools = {
    .name = "own loops",
    .compile = compile,
    .run = run,
    .free = free_pools,
};
