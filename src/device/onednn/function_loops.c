/* function_loops.c: oneDNN 3.7 has no erf, few other functions, and a power by a call for each value;
 * its tanh takes several times as long as these loops. */
#include "device/onednn/function_loops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/onednn/function_values.h"
#include "graph/op.h"

/* Of `n` values, in place or not; `a` and `b` are parameters. */
typedef void loop(float *out, const float *in, int64_t n, float a, float b);

typedef struct function {
    loop *run;
    float a, b;
    int64_t n;
} function;

/* Sixteen at a time, and the rest in a room of sixteen. */
#define FUNCTION(NAME, VALUE)                                                                      \
    HWNAS_INLINE float NAME##_of(float x, float a, float b)                                        \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        return VALUE;                                                                              \
    }                                                                                              \
    HWNAS_CLONES static void NAME(float *out, const float *in, int64_t n, float a, float b)        \
    {                                                                                              \
        float rest[HWNAS_LANES] = {0};                                                             \
        int64_t at = 0;                                                                            \
        for (; at + HWNAS_LANES <= n; at += HWNAS_LANES)                                           \
            HWNAS_EACH_LANE(i)                                                                     \
        out[at + i] = NAME##_of(in[at + i], a, b);                                                 \
        if (at == n)                                                                               \
            return;                                                                                \
        memcpy(rest, in + at, (size_t)(n - at) * sizeof *in);                                      \
        HWNAS_EACH_LANE(i)                                                                         \
        rest[i] = NAME##_of(rest[i], a, b);                                                        \
        memcpy(out + at, rest, (size_t)(n - at) * sizeof *out);                                    \
    }

HWNAS_INLINE float elu_of_one(float x, float alpha)
{
    const float below = alpha * hwnas_expm1_of(x);
    return hwnas_pick(x < 0, below, x);
}

HWNAS_INLINE float celu_of_one(float x, float alpha)
{
    const float below = alpha * hwnas_expm1_of(x / alpha);
    return hwnas_pick(x < 0, 0, x) + hwnas_pick(below > 0, 0, below);
}

/* max(x, 0) + log(1 + e^-|x|); what the sum rounds off is made good by a factor. */
HWNAS_INLINE float softplus_of_one(float x)
{
    const float e = hwnas_exp_of(-hwnas_size_of(x)), u = 1.0f + e;
    const float log = hwnas_log_of(u) * (e / (u - 1.0f)), more = hwnas_pick(u == 1.0f, e, log);
    return hwnas_pick(x < 0, 0, x) + more;
}

HWNAS_INLINE float shrink_of_one(float x, float bias, float lambda)
{
    const float above = hwnas_pick(x > lambda, x - bias, 0);
    return hwnas_pick(x < -lambda, x + bias, above);
}

FUNCTION(tanh_loop, hwnas_tanh_of(x))
FUNCTION(erf_loop, hwnas_erf_of(x))
FUNCTION(exp_loop, hwnas_exp_of(x))
FUNCTION(log_loop, hwnas_log_of(x))
FUNCTION(elu_loop, elu_of_one(x, a))
FUNCTION(selu_loop, b *elu_of_one(x, a))
FUNCTION(celu_loop, celu_of_one(x, a))
FUNCTION(softplus_loop, softplus_of_one(x))
FUNCTION(softsign_loop, x / (1.0f + hwnas_size_of(x)))
FUNCTION(reciprocal_loop, 1.0f / x)
FUNCTION(floor_loop, hwnas_floor_of(x))
FUNCTION(ceil_loop, -hwnas_floor_of(-x))
FUNCTION(round_loop, hwnas_round_of(x))
FUNCTION(threshold_loop, hwnas_pick(x > a, x, 0))
FUNCTION(shrink_loop, shrink_of_one(x, a, b))
FUNCTION(cube_loop, x *x *x)
FUNCTION(pow_loop, hwnas_pow_of(x, a, b))

/* Whether sixteen values are numbers that hwnas_sin_of() is right for. */
HWNAS_INLINE bool are_near(const float *in)
{
    uint32_t most = 0;
    for (int i = 0; i < HWNAS_LANES; i++) {
        const uint32_t size = hwnas_word_of(in[i]) & 0x7fffffffu;
        most = size > most ? size : most;
    }
    return most <= hwnas_word_of(HWNAS_MOST_TURNED);
}

#define TURN(NAME, QUARTERS, EXACT)                                                                \
    HWNAS_CLONES static void NAME(float *out, const float *in, int64_t n, float a, float b)        \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        for (int64_t at = 0; at < n; at += HWNAS_LANES) {                                          \
            float values[HWNAS_LANES] = {0};                                                       \
            const int64_t left = n - at, width = left < HWNAS_LANES ? left : HWNAS_LANES;          \
            if (width == HWNAS_LANES)                                                              \
                memcpy(values, in + at, sizeof values);                                            \
            else                                                                                   \
                memcpy(values, in + at, (size_t)width * sizeof *values);                           \
            if (are_near(values)) {                                                                \
                HWNAS_EACH_LANE(i)                                                                 \
                values[i] = hwnas_sin_of(values[i], QUARTERS);                                     \
            } else {                                                                               \
                for (int i = 0; i < HWNAS_LANES; i++)                                              \
                    values[i] = EXACT(values[i]);                                                  \
            }                                                                                      \
            if (width == HWNAS_LANES)                                                              \
                memcpy(out + at, values, sizeof values);                                           \
            else                                                                                   \
                memcpy(out + at, values, (size_t)width * sizeof *values);                          \
        }                                                                                          \
    }

TURN(sin_loop, 0, sinf)
TURN(cos_loop, 1, cosf)

/* `a` and `b`: attributes. */
static const struct row {
    loop *run;
    const char *a, *b;
} rows[HWNAS_N_OPS + 1] = {
    /* the last one: operators of other programs */
    [HWNAS_OP_CEIL] = {ceil_loop},
    [HWNAS_OP_CELU] = {celu_loop, "alpha"},
    [HWNAS_OP_COS] = {cos_loop},
    [HWNAS_OP_ELU] = {elu_loop, "alpha"},
    [HWNAS_OP_ERF] = {erf_loop},
    [HWNAS_OP_EXP] = {exp_loop},
    [HWNAS_OP_FLOOR] = {floor_loop},
    [HWNAS_OP_LOG] = {log_loop},
    [HWNAS_OP_POW] = {pow_loop},
    [HWNAS_OP_RECIPROCAL] = {reciprocal_loop},
    [HWNAS_OP_ROUND] = {round_loop},
    [HWNAS_OP_SELU] = {selu_loop, "alpha", "gamma"},
    [HWNAS_OP_SHRINK] = {shrink_loop, "bias", "lambda"},
    [HWNAS_OP_SIN] = {sin_loop},
    [HWNAS_OP_SOFTPLUS] = {softplus_loop},
    [HWNAS_OP_SOFTSIGN] = {softsign_loop},
    [HWNAS_OP_TANH] = {tanh_loop},
    [HWNAS_OP_THRESHOLDED_RELU] = {threshold_loop, "alpha"},
};

bool hwnas_onednn_has_one_exponent(const hwnas_graph *graph, const hwnas_node *node)
{
    const hwnas_tensor *exponent = hwnas_node_input(graph, node, 1);
    return exponent->kind == HWNAS_TENSOR_WEIGHT && hwnas_tensor_count(exponent) == 1 &&
           hwnas_node_input(graph, node, 0)->kind != HWNAS_TENSOR_WEIGHT &&
           exponent->rank <= hwnas_node_input(graph, node, 0)->rank;
}

/* Those that oneDNN has instructions for; it calls powf() for each value of others. */
static bool is_common_power(const hwnas_graph *graph, const hwnas_node *node)
{
    float y;
    hwnas_tensor_fill(hwnas_node_input(graph, node, 1), &y);
    return y == -1 || y == 0 || y == 0.5f || y == 1 || y == 2;
}

/* A CELU that divides by 0 or turns around is left to the operator's own loops. */
bool hwnas_onednn_has_function(const hwnas_graph *graph, const hwnas_node *node)
{
    if (!rows[node->op->id].run || hwnas_node_is_whole(graph, node))
        return false;
    if (node->op->id == HWNAS_OP_CELU)
        return hwnas_node_attr(node, "alpha")->number > 0;
    return node->op->id != HWNAS_OP_POW ||
           (hwnas_onednn_has_one_exponent(graph, node) && !is_common_power(graph, node));
}

static float parameter(const hwnas_node *node, const char *name)
{
    return name ? (float)hwnas_node_attr(node, name)->number : 0;
}

static hwnas_status compile(hwnas_onednn_step *step, const onednn_device *device,
                            const hwnas_graph *graph, const hwnas_node *node)
{
    const struct row *row = &rows[node->op->id];
    function *f = step->state = hwnas_alloc(sizeof *f);
    (void)device;
    *f = (function){row->run, parameter(node, row->a), parameter(node, row->b),
                    hwnas_tensor_count(hwnas_node_output(graph, node))};
    if (node->op->id == HWNAS_OP_POW) {
        hwnas_tensor_fill(hwnas_node_input(graph, node, 1), &f->a);
        f->b = floorf(f->a) != f->a ? NAN : floorf(f->a / 2) == f->a / 2 ? 1 : -1;
        f->run = f->a == 3 ? cube_loop : f->run;
    }
    step->n_inputs = 1;
    return HWNAS_OK;
}

bool hwnas_onednn_function_fits(const hwnas_onednn_source *source, const hwnas_onednn_group *group,
                                const hwnas_onednn_layout *layouts)
{
    const hwnas_node *node = &source->graph->nodes[group->chain.nodes[0]];
    return group->chain.n_nodes == 1 && !group->has_bytes && node->op->id == HWNAS_OP_TANH &&
           (layouts[node->inputs[0]] == HWNAS_ONEDNN_IMAGE) ==
               (layouts[node->output] == HWNAS_ONEDNN_IMAGE);
}

hwnas_status hwnas_onednn_function_compile(hwnas_onednn_step *step, const onednn_device *device,
                                           const hwnas_graph *graph,
                                           const hwnas_onednn_group *group, hwnas_arena *arena)
{
    const hwnas_node *node = &graph->nodes[group->chain.nodes[0]];
    step->n_outputs = 1;
    step->input_ids = hwnas_arena_copy(arena, node->inputs, sizeof *step->input_ids);
    step->output_ids = hwnas_arena_copy(arena, &node->output, sizeof *step->output_ids);
    return compile(step, device, graph, node);
}

static dnnl_status_t run(const hwnas_onednn_step *step, const onednn_device *device)
{
    enum { PIECE = 1 << 12, WORTH_A_THREAD = 1 << 15 }; /* values */
    const function *f = step->state;
    const float *in = hwnas_onednn_values(step->inputs[0]);
    float *out = hwnas_onednn_values(step->outputs[0]);
    const int64_t n_pieces = (f->n + PIECE - 1) / PIECE;
    (void)device; /* without OpenMP */
#pragma omp parallel for num_threads(device->threads)                                              \
    schedule(static) if (device->threads > 1 && f->n > WORTH_A_THREAD)
    for (int64_t i = 0; i < n_pieces; i++) {
        const int64_t at = i * PIECE, left = f->n - at;
        f->run(out + at, in + at, left < PIECE ? left : PIECE, f->a, f->b);
    }
    return dnnl_success;
}

const hwnas_onednn_kind hwnas_onednn_functions = {
    .name = "own loops",
    .compile = compile,
    .run = run,
    .free = free,
    .in_place = hwnas_onednn_over_first,
};
