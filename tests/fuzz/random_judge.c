/* random_judge.c: what rounding explains is measured and not guessed: `ref` computes the graph
 * again with noise on each value, as large as the precision's roundings, and the bound is some
 * times what that changes in the outputs (Vignes, "Discrete Stochastic Arithmetic for Validating
 * Results of Numerical Software", Numerical Algorithms 37, 2004). */
#include "tests/fuzz/random_recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/op.h"
#include "graph/pack_weights.h"
#include "graph/quantize_graph.h"
#include "graph/rewrite.h"
#include "graph/rounding.h"

/* ---- Graphs ---- */

/* Noise on each value, for graphs that are to show what rounding does. */
typedef struct noise {
    const double *amplitudes; /* by step */
    double shared;            /* what all values of a tensor are off by: sums do not cancel it */
    bool has_signs; /* of which the sign is drawn for each tensor: differences do not either */
    hwnas_rng rng;
} noise;

static hwnas_status add_noise(int *tensor, hwnas_graph *graph, int index, noise *with)
{
    const hwnas_tensor t = graph->tensors[*tensor];
    const int64_t n = hwnas_tensor_count(&t);
    float *values = hwnas_alloc((size_t)n * sizeof *values);
    char name[32];
    int inputs[] = {*tensor, -1};
    const bool is_turned = with->has_signs && hwnas_rng_below(&with->rng, 2);
    const double shared = is_turned ? -with->shared : with->shared;
    for (int64_t i = 0; i < n; i++)
        values[i] =
            (float)(with->amplitudes[index] * (shared + 2 * hwnas_rng_double(&with->rng) - 1));
    snprintf(name, sizeof name, "noise%d", index);
    hwnas_status status = hwnas_graph_add_constant(&inputs[1], graph, name, t.rank, t.dims, values);
    free(values);
    TRY(status);
    snprintf(name, sizeof name, "noisy%d", index);
    return hwnas_graph_add_node(tensor, graph, hwnas_op_by_name("add"), name, NULL, 2, inputs,
                                false);
}

/* Of each step that is needed the tensor, else -1. */
static hwnas_status build(hwnas_graph **out, int *tensors, const recipe *r, noise *with)
{
    hwnas_status status = HWNAS_OK;
    bool is_needed[RANDOM_MAX_STEPS];
    hwnas_graph *graph = hwnas_graph_new("random", r->seed);
    random_find_needed(is_needed, r);
    for (int i = 0; i < r->n; i++) {
        tensors[i] = -1;
        if (!is_needed[i])
            continue;
        TRY_OUT(random_add_step(&tensors[i], graph, &r->steps[i], i, tensors));
        if (with && !r->steps[i].is_given && r->steps[i].dtype == HWNAS_FLOAT32)
            TRY_OUT(add_noise(&tensors[i], graph, i, with));
    }
    for (int i = 0; i < r->n_outputs; i++)
        hwnas_graph_add_output(graph, tensors[r->outputs[i]]);
    *out = graph;
    graph = NULL;
out:
    hwnas_graph_free(graph);
    return status;
}

/* ---- Runs ---- */

static int64_t count_values(const hwnas_graph *graph, size_t n, const int *tensors)
{
    int64_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += hwnas_tensor_count(&graph->tensors[tensors[i]]);
    return count;
}

/* The inputs one after the other; each depends on its name alone. Yours to free(). */
static float *inputs_of(const recipe *r, const hwnas_graph *graph)
{
    float *values = hwnas_alloc((size_t)(count_values(graph, graph->n_inputs, graph->inputs) + 1) *
                                sizeof *values);
    float *at = values;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const hwnas_tensor *t = &graph->tensors[graph->inputs[i]];
        hwnas_rng rng = hwnas_rng_new(r->seed, strtoul(t->name + 1, NULL, 10));
        for (int64_t k = 0, n = hwnas_tensor_count(t); k < n; k++)
            *at++ = (float)(2 * hwnas_rng_double(&rng) - 1);
    }
    return values;
}

/* The outputs one after the other, yours to free(). */
static hwnas_status run(float **out, const recipe *r, const hwnas_graph *graph,
                        hwnas_device *device, hwnas_precision precision)
{
    hwnas_status status = HWNAS_OK;
    hwnas_exec *exec = NULL;
    float *given = inputs_of(r, graph), *at = given;
    float *made =
        hwnas_alloc((size_t)count_values(graph, graph->n_outputs, graph->outputs) * sizeof *made);
    const float **inputs = hwnas_alloc((graph->n_inputs + 1) * sizeof *inputs);
    float **outputs = hwnas_alloc(graph->n_outputs * sizeof *outputs);
    const hwnas_exec_options options = {.precision = precision,
                                        .n_samples = 1,
                                        .samples = given}; /* nothing is beyond the ranges */
    for (size_t i = 0; i < graph->n_inputs; i++) {
        inputs[i] = at;
        at += hwnas_tensor_count(&graph->tensors[graph->inputs[i]]);
    }
    at = made;
    for (size_t i = 0; i < graph->n_outputs; i++) {
        outputs[i] = at;
        at += hwnas_tensor_count(&graph->tensors[graph->outputs[i]]);
    }
    TRY_OUT(hwnas_device_compile(&exec, device, graph, &options));
    TRY_OUT(device->ops->run(exec, inputs, outputs)); /* what is left behind must not matter */
    TRY_OUT(device->ops->run(exec, inputs, outputs));
    *out = made;
    made = NULL;
out:
    hwnas_exec_free(exec);
    free(outputs);
    free(inputs);
    free(made);
    free(given);
    return status;
}

/* ---- Judging ---- */

/* One rounding, relative to the largest value of a tensor, and what the libraries' approximations
 * of functions are worth in fp32. */
static const double roundings[HWNAS_N_PRECISIONS] = {
    [HWNAS_F32] = 1.0 / (1 << 22), /* two: what is inside of a LayerNorm gets no noise */
    [HWNAS_BF16] = 1.0 / 256,
    [HWNAS_F16] = 1.0 / 2048,
    [HWNAS_S8] = 1.0 / 127,
    [HWNAS_W8] = 1.0 / (1 << 22), /* the weights are compared as they are packed */
    [HWNAS_W4] = 1.0 / (1 << 22),
};
enum { N_NOISY = 8, N_SHARED = 3, FACTOR = 4 };

/* Above it a bound says nothing: of the largest value. */
static const double LARGEST_BOUND = 0.5;

static bool has_bytes(const recipe *r)
{
    for (int i = 0; i < r->n; i++)
        if (r->steps[i].op && !strcmp(r->steps[i].op, "quantize_linear"))
            return true;
    return false;
}

static double largest_of(const float *values, int64_t n)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)values[i]));
    return largest;
}

/* What f16 makes infinite, or 0, which something may then be divided by. */
static bool leaves_f16(const float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (fabsf(values[i]) > 65504 || (values[i] != 0 && fabsf(values[i]) < 0x1p-24F))
            return true;
    return false;
}

/* By step: how much noise one rounding is; and whether some value is beyond f16's range. */
static hwnas_status find_amplitudes(double *out, bool *is_beyond_f16, const recipe *r,
                                    hwnas_device *ref, double rounding)
{
    hwnas_status status = HWNAS_OK;
    int tensors[RANDOM_MAX_STEPS];
    hwnas_graph *graph = NULL;
    float *values = NULL, *at;
    TRY_OUT(build(&graph, tensors, r, NULL));
    graph->n_outputs = 0;
    for (int i = 0; i < r->n; i++)
        if (tensors[i] >= 0)
            hwnas_graph_add_output(graph, tensors[i]);
    TRY_OUT(run(&values, r, graph, ref, HWNAS_F32));
    at = values;
    for (int i = 0; i < r->n; i++) {
        const int64_t n = tensors[i] < 0 ? 0 : hwnas_tensor_count(&graph->tensors[tensors[i]]);
        out[i] = rounding * largest_of(at, n);
        *is_beyond_f16 |= leaves_f16(at, n);
        at += n;
    }
out:
    free(values);
    hwnas_graph_free(graph);
    return status;
}

/* max |a - b| of the outputs, each relative to its largest value in `b`; or, where `bounds` are
 * given, relative to its bound. What is not a number is infinitely far off. */
static void find_distances(double *out, const hwnas_graph *graph, const float *a, const float *b)
{
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const int64_t n = hwnas_tensor_count(&graph->tensors[graph->outputs[i]]);
        out[i] = 0;
        for (int64_t k = 0; k < n; k++, a++, b++) {
            const double apart = fabs((double)*a - *b);
            out[i] = apart <= out[i] ? out[i] : isnan(apart) ? INFINITY : apart;
        }
    }
}

/* By output: what rounding explains; at least some roundings in fp32 of the largest value on the
 * way, which approximations of functions are off by. */
static hwnas_status find_bounds(double *out, bool *is_beyond_f16, const recipe *r,
                                const hwnas_graph *graph, const float *wanted, hwnas_device *ref,
                                double rounding)
{
    double amplitudes[RANDOM_MAX_STEPS], distances[RANDOM_MAX_OUTPUTS], most = 0;
    TRY(find_amplitudes(amplitudes, is_beyond_f16, r, ref, rounding));
    for (int i = 0; i < r->n; i++)
        most = fmax(most, amplitudes[i]);
    for (int i = 0; i < r->n_outputs; i++)
        out[i] = FACTOR * most * roundings[HWNAS_F32] / rounding;
    for (int k = 0; k < N_NOISY; k++) {
        const bool has_signs = k >= N_SHARED; /* before: -1, 0, 1 */
        noise with = {amplitudes, has_signs ? 1 : k - 1, has_signs,
                      hwnas_rng_new(r->seed, 1000 + (uint64_t)k)};
        int tensors[RANDOM_MAX_STEPS];
        hwnas_graph *noisy;
        float *values = NULL;
        TRY(build(&noisy, tensors, r, &with));
        const hwnas_status status = run(&values, r, noisy, ref, HWNAS_F32);
        if (status == HWNAS_OK)
            find_distances(distances, graph, values, wanted);
        free(values);
        hwnas_graph_free(noisy);
        TRY(status);
        for (int i = 0; i < r->n_outputs; i++)
            out[i] = fmax(out[i], FACTOR * distances[i]);
    }
    return HWNAS_OK;
}

static bool are_finite(const float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

/* Bounds are of what was; values that have become larger, as behind an exponential, are off by as
 * much more. */
static void widen(double *bounds, const hwnas_graph *graph, const float *before, const float *now)
{
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const int64_t n = hwnas_tensor_count(&graph->tensors[graph->outputs[i]]);
        const double was = largest_of(before, n), is = largest_of(now, n);
        bounds[i] *= was > 0 ? fmax(1, is / was) : 1;
        before += n;
        now += n;
    }
}

/* What `ref` makes of the graph with its weights packed, in the place of what it made of floats. */
static hwnas_status expect_packed(float **wanted, double *bounds, const recipe *r,
                                  const hwnas_graph *folded, hwnas_device *ref, int bits)
{
    hwnas_graph *packed;
    int *origin;
    float *values = NULL;
    TRY(hwnas_graph_pack_weights(&packed, &origin, folded, bits));
    const hwnas_status status = run(&values, r, packed, ref, HWNAS_F32);
    if (status == HWNAS_OK) {
        widen(bounds, folded, *wanted, values);
        free(*wanted);
        *wanted = values;
    }
    free(origin);
    hwnas_graph_free(packed);
    return status;
}

/* Of every fourth recipe, in fp32: about half of the products multiply bfloat16. */
static bool has_rounded_products(const recipe *r, hwnas_precision precision)
{
    return precision == HWNAS_F32 && r->seed % 4 == 1;
}

/* The graph in the place of which that comes is freed; `wanted` is what `ref` makes of it. */
static hwnas_status round_products(hwnas_graph **folded, float **wanted, const recipe *r,
                                   hwnas_device *ref)
{
    hwnas_rng rng = hwnas_rng_new(r->seed, 2000);
    hwnas_graph *graph = *folded;
    float *values = NULL;
    bool *is_rounded = hwnas_alloc((graph->n_nodes + 1) * sizeof *is_rounded);
    for (size_t n = 0; n < graph->n_nodes; n++)
        is_rounded[n] = graph->nodes[n].op->class == HWNAS_CLASS_PRODUCT &&
                        graph->nodes[n].n_inputs > 1 && hwnas_rng_below(&rng, 2);
    hwnas_status status = hwnas_graph_round_products(folded, graph, is_rounded);
    free(is_rounded);
    if (status != HWNAS_OK)
        return status;
    hwnas_graph_free(graph);
    TRY(run(&values, r, *folded, ref, HWNAS_F32));
    free(*wanted);
    *wanted = values;
    return HWNAS_OK;
}

/* What is wrong with the recipe itself is nobody's fault. */
static hwnas_status judge(random_verdict *out, const recipe *r, hwnas_device *cpu,
                          hwnas_device *ref, hwnas_precision precision)
{
    hwnas_status status = HWNAS_OK;
    int tensors[RANDOM_MAX_STEPS];
    hwnas_graph *graph = NULL, *fused = NULL, *folded = NULL;
    float *wanted = NULL, *got = NULL;
    double bounds[RANDOM_MAX_OUTPUTS], distances[RANDOM_MAX_OUTPUTS];
    bool is_beyond_f16 = false;
    const bool rounds = has_rounded_products(r, precision);
    const double rounding = roundings[has_bytes(r) ? HWNAS_S8 : rounds ? HWNAS_BF16 : precision];
    const int bits = hwnas_precision_weight_bits(precision);
    TRY_OUT(build(&graph, tensors, r, NULL));
    if (r->seed % 2) /* as if a file had brought it */
        TRY_OUT(hwnas_graph_fuse(&fused, graph));
    TRY_OUT(hwnas_graph_fold(&folded, fused ? fused : graph));
    TRY_OUT(run(&wanted, r, graph, ref, HWNAS_F32));
    if (!are_finite(wanted, count_values(graph, graph->n_outputs, graph->outputs)))
        goto out;
    TRY_OUT(find_bounds(bounds, &is_beyond_f16, r, graph, wanted, ref, rounding));
    if (bits && !hwnas_graph_is_quantized(folded))
        TRY_OUT(expect_packed(&wanted, bounds, r, folded, ref, bits));
    if (rounds)
        TRY_OUT(round_products(&folded, &wanted, r, ref));
    out->says_nothing = false;
    out->status = run(&got, r, folded, cpu, precision);
    if (out->status != HWNAS_OK)
        goto out;
    find_distances(distances, graph, got, wanted);
    const float *at = wanted;
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const int64_t n = hwnas_tensor_count(&graph->tensors[graph->outputs[i]]);
        const double scale = largest_of(at, n), bound = bounds[i] + 1e-30;
        at += n;
        if (isinf(distances[i]) && precision == HWNAS_F16 && is_beyond_f16)
            continue;
        /* what may be anything may be infinite */
        if (bound <= LARGEST_BOUND * scale || (isinf(distances[i]) && bound < scale))
            out->ratio = fmax(out->ratio, distances[i] / bound);
    }
out:
    free(got);
    free(wanted);
    hwnas_graph_free(folded);
    hwnas_graph_free(fused);
    hwnas_graph_free(graph);
    return status;
}

random_verdict random_recipe_judge(const recipe *r, hwnas_device *cpu, hwnas_device *ref,
                                   hwnas_precision precision)
{
    random_verdict verdict = {.says_nothing = true};
    if (judge(&verdict, r, cpu, ref, precision) != HWNAS_OK)
        verdict.says_nothing = true;
    return verdict;
}

bool random_verdict_is_bad(const random_verdict *v)
{
    return !v->says_nothing && (v->status != HWNAS_OK || v->ratio > 1);
}

/* ---- Making smaller ---- */

/* In a process of its own, since a wrong graph may be one that ends it. */
static bool is_bad(const recipe *r, hwnas_device *cpu, hwnas_device *ref, hwnas_precision precision)
{
    int how = 0;
    const pid_t child = fork();
    if (child == 0) {
        const random_verdict v = random_recipe_judge(r, cpu, ref, precision);
        _exit(random_verdict_is_bad(&v));
    }
    return child > 0 && waitpid(child, &how, 0) == child && how != 0;
}

/* A step as an input of the graph. */
static bool cut(step *s)
{
    if (!s->op || s->dtype != HWNAS_FLOAT32)
        return false;
    s->op = NULL;
    s->n_inputs = 0;
    return true;
}

/* Who reads a step reads what it reads first, of the same shape. */
static bool pass_by(recipe *r, int index)
{
    const step *s = &r->steps[index], *first;
    if (!s->op)
        return false;
    first = &r->steps[s->inputs[0]];
    if (first->rank != s->rank || first->dtype != s->dtype || first->is_constant ||
        memcmp(first->dims, s->dims, (size_t)s->rank * sizeof *s->dims) != 0)
        return false;
    for (int i = index + 1; i < r->n; i++)
        for (int k = 0; k < r->steps[i].n_inputs; k++)
            if (r->steps[i].inputs[k] == index)
                r->steps[i].inputs[k] = s->inputs[0];
    return true;
}

void random_recipe_shrink(recipe *r, hwnas_device *cpu, hwnas_device *ref,
                          hwnas_precision precision)
{
    recipe *smaller = hwnas_alloc(sizeof *smaller);
    for (int i = 0; i < r->n; i++) { /* the first step that is wrong as the only output */
        *smaller = *r;
        smaller->n_outputs = 1;
        smaller->outputs[0] = i;
        if (r->steps[i].op && r->steps[i].dtype == HWNAS_FLOAT32 &&
            is_bad(smaller, cpu, ref, precision)) {
            *r = *smaller;
            break;
        }
    }
    for (int way = 0; way < 2; way++)
        for (int i = r->n; i-- > 0;) {
            bool is_needed[RANDOM_MAX_STEPS];
            random_find_needed(is_needed, r);
            *smaller = *r;
            if (is_needed[i] && (way ? pass_by(smaller, i) : cut(&smaller->steps[i])) &&
                is_bad(smaller, cpu, ref, precision))
                *r = *smaller;
        }
    free(smaller);
}
