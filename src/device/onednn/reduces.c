/* reduces.c: dimensions side by side that are reduced, or kept, are one. Each pass reduces one of
 * them, in the middle of outer x n x inner; what lies between two passes is in a room of the
 * step's. */
#include "device/onednn/reduces.h"

#include <math.h>
#include <stdlib.h>

#include "device/onednn/reduce_loops.h"
#include "graph/op.h"

typedef enum ending { AS_IT_IS, MEAN, ROOT, LOGARITHM } ending;

static const struct row {
    const hwnas_reduce_loops *first, *next; /* next: of what the first pass has made */
    ending end;
    bool is_sum;
} rows[HWNAS_N_OPS + 1] = {
    [HWNAS_OP_MEAN] = {&hwnas_reduce_sums, &hwnas_reduce_sums, MEAN, true},
    [HWNAS_OP_REDUCE_L1] = {&hwnas_reduce_sizes, &hwnas_reduce_sums, AS_IT_IS, true},
    [HWNAS_OP_REDUCE_L2] = {&hwnas_reduce_squares, &hwnas_reduce_sums, ROOT, true},
    [HWNAS_OP_REDUCE_LOG_SUM] = {&hwnas_reduce_sums, &hwnas_reduce_sums, LOGARITHM, true},
    [HWNAS_OP_REDUCE_LOG_SUM_EXP] = {&hwnas_reduce_log_sums, &hwnas_reduce_log_sums, AS_IT_IS,
                                     true},
    [HWNAS_OP_REDUCE_MAX] = {&hwnas_reduce_greatest, &hwnas_reduce_greatest, AS_IT_IS, false},
    [HWNAS_OP_REDUCE_MIN] = {&hwnas_reduce_least, &hwnas_reduce_least, AS_IT_IS, false},
    [HWNAS_OP_REDUCE_PROD] = {&hwnas_reduce_products, &hwnas_reduce_products, AS_IT_IS, true},
    [HWNAS_OP_REDUCE_SUM] = {&hwnas_reduce_sums, &hwnas_reduce_sums, AS_IT_IS, true},
    [HWNAS_OP_REDUCE_SUM_SQUARE] = {&hwnas_reduce_squares, &hwnas_reduce_sums, AS_IT_IS, true},
};

typedef struct pass {
    int64_t outer, n, inner;
} pass;

typedef struct reduces {
    const struct row *row;
    int n_passes;
    pass passes[HWNAS_MAX_RANK];
    int64_t n_out;
    float factor; /* of a mean */
    float *room[2];
} reduces;

/* ---- Compiling ---- */

bool hwnas_onednn_is_reduce(const hwnas_graph *graph, const hwnas_node *node)
{
    const struct row *row = &rows[node->op->id];
    return row->first && !(row->is_sum && hwnas_node_is_whole(graph, node));
}

static bool is_reduced(const hwnas_node *node, int axis)
{
    const hwnas_attr *axes = hwnas_node_attr(node, "axes");
    for (int i = 0; i < axes->n; i++)
        if (axes->ints[i] == axis)
            return true;
    return !axes->n;
}

/* Dimensions that are kept and reduced, in turns. */
typedef struct blocks {
    int n;
    int64_t dims[HWNAS_MAX_RANK];
    bool is_reduced[HWNAS_MAX_RANK];
} blocks;

static void find_blocks(blocks *out, const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    for (int i = 0; i < in->rank; i++) {
        const bool reduced = is_reduced(node, i);
        if (in->dims[i] == 1)
            continue;
        if (out->n && out->is_reduced[out->n - 1] == reduced) {
            out->dims[out->n - 1] *= in->dims[i];
            continue;
        }
        out->dims[out->n] = in->dims[i];
        out->is_reduced[out->n++] = reduced;
    }
}

/* The block that is reduced next: the first, whose rows have all the others behind it as their
 * columns, except where the last is long enough for vectors. -1: none is left. */
static int next_block(const blocks *b)
{
    enum { LONG = 64 };
    const int last = b->n - 1;
    if (last >= 0 && b->is_reduced[last] && b->dims[last] >= LONG)
        return last;
    for (int i = 0; i < b->n; i++)
        if (b->is_reduced[i])
            return i;
    return -1;
}

static void add_pass(reduces *r, blocks *b, int block)
{
    pass *p = &r->passes[r->n_passes++];
    *p = (pass){1, b->dims[block], 1};
    for (int i = 0; i < block; i++)
        p->outer *= b->dims[i];
    for (int i = block + 1; i < b->n; i++)
        p->inner *= b->dims[i];
    b->dims[block] = 1;
    b->is_reduced[block] = false;
}

static hwnas_status take_rooms(hwnas_onednn_step *step, reduces *r)
{
    for (int i = 0; i < 2 && i < r->n_passes - 1; i++) {
        const size_t bytes = (size_t)(r->passes[i].outer * r->passes[i].inner) * sizeof **r->room;
        void *room;
        TRY(hwnas_try_alloc(&room, bytes, step->name));
        r->room[i] = room;
        step->bytes += bytes;
    }
    return HWNAS_OK;
}

static hwnas_status compile(hwnas_onednn_step *step, const onednn_device *device,
                            const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *in = hwnas_node_input(graph, node, 0);
    blocks b = {0};
    reduces *r = step->state = hwnas_alloc(sizeof *r);
    (void)device;
    r->row = &rows[node->op->id];
    r->n_out = hwnas_tensor_count(hwnas_node_output(graph, node));
    r->factor = (float)((double)r->n_out / (double)hwnas_tensor_count(in));
    find_blocks(&b, graph, node);
    for (int block; (block = next_block(&b)) >= 0;)
        add_pass(r, &b, block);
    if (!r->n_passes) /* of one value each */
        r->passes[r->n_passes++] = (pass){r->n_out, 1, 1};
    return take_rooms(step, r);
}

/* ---- Running ---- */

static void run_pass(float *out, const float *in, const pass *p, const hwnas_reduce_loops *loops,
                     int threads)
{
    enum { WORTH_A_THREAD = 1 << 15, WIDTH = 8 * HWNAS_REDUCE_COLUMNS };
    const int64_t n_columns = (p->inner + WIDTH - 1) / WIDTH;
    int64_t n_parts = p->outer * p->n * p->inner / WORTH_A_THREAD;
    n_parts = n_parts > threads ? threads : n_parts < 1 ? 1 : n_parts;
    if (p->inner == 1) {
#pragma omp parallel for num_threads(n_parts) if (n_parts > 1)
        for (int64_t i = 0; i < n_parts; i++) {
            const int64_t first = p->outer * i / n_parts, end = p->outer * (i + 1) / n_parts;
            loops->rows(out + first, in + first * p->n, end - first, p->n);
        }
        return;
    }
#pragma omp parallel for num_threads(n_parts) schedule(static) if (n_parts > 1)
    for (int64_t i = 0; i < p->outer * n_columns; i++) {
        const int64_t outer = i / n_columns, at = i % n_columns * WIDTH, left = p->inner - at;
        loops->columns(out + outer * p->inner + at, in + outer * p->n * p->inner + at, p->n,
                       p->inner, left < WIDTH ? left : WIDTH);
    }
}

static void finish(float *out, const reduces *r)
{
    for (int64_t i = 0; i < r->n_out && r->row->end == MEAN; i++)
        out[i] *= r->factor;
    for (int64_t i = 0; i < r->n_out && r->row->end == ROOT; i++)
        out[i] = sqrtf(out[i]);
    for (int64_t i = 0; i < r->n_out && r->row->end == LOGARITHM; i++)
        out[i] = logf(out[i]);
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    const reduces *r = step->state;
    const float *in = hwnas_onednn_values(step->inputs[0]);
    float *out = hwnas_onednn_values(step->outputs[0]);
    for (int i = 0; i < r->n_passes; i++) {
        float *to = i == r->n_passes - 1 ? out : r->room[i % 2];
        run_pass(to, in, &r->passes[i], i ? r->row->next : r->row->first, device->threads);
        in = to;
    }
    finish(out, r);
    return dnnl_success;
}

static void free_reduces(void *state)
{
    reduces *r = state;
    if (!r)
        return;
    free(r->room[0]);
    free(r->room[1]);
    free(r);
}

const hwnas_onednn_kind hwnas_onednn_reduces = {
    .name = "own loops",
    .compile = compile,
    .run = run,
    .free = free_reduces,
};
