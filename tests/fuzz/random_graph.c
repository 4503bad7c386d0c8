/* random_graph.c: what rounding explains is measured and not guessed: `ref` computes the graph
 * again with noise on each value, as large as the precision's roundings, and the bound is some
 * times what that changes in the outputs (Vignes, "Discrete Stochastic Arithmetic for Validating
 * Results of Numerical Software", Numerical Algorithms 37, 2004). */
#include "tests/fuzz/random_graph.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graph/op.h"
#include "tests/unit/attributes.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef random_recipe recipe;
typedef random_step step;

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

static hwnas_status add_leaf(int *out, hwnas_graph *graph, const step *s, const char *name)
{
    if (!s->is_constant)
        return hwnas_graph_add_input(out, graph, name, s->dtype, s->rank, s->dims);
    if (s->is_given)
        TRY(hwnas_graph_add_constant(out, graph, name, s->rank, s->dims, &s->value));
    else
        TRY(hwnas_graph_add_weight(out, graph, name, s->rank, s->dims, HWNAS_INIT_NEAR_ONE, false));
    graph->tensors[*out].dtype = s->dtype;
    return HWNAS_OK;
}

static hwnas_status add_step(int *out, hwnas_graph *graph, const step *s, int index,
                             const int *tensors)
{
    char name[48];
    int inputs[RANDOM_MAX_INPUTS];
    snprintf(name, sizeof name, "v%d", index);
    if (!s->op)
        return add_leaf(out, graph, s, name);
    const hwnas_op *op = hwnas_op_by_name(s->op);
    const bool has_weights = s->n_inputs <= op->max_inputs;
    for (int i = 0; i < s->n_inputs; i++)
        inputs[i] = tensors[s->inputs[i]];
    hwnas_attr *attrs = attributes(op, s->attrs);
    hwnas_status status =
        hwnas_graph_add_node(out, graph, op, name, attrs, s->n_inputs, inputs, has_weights);
    free(attrs);
    return status;
}

/* Which steps the outputs need. */
static void find_needed(bool *is_needed, const recipe *r)
{
    memset(is_needed, 0, RANDOM_MAX_STEPS * sizeof *is_needed);
    for (int i = 0; i < r->n_outputs; i++)
        is_needed[r->outputs[i]] = true;
    for (int i = r->n; i-- > 0;)
        for (int k = 0; k < r->steps[i].n_inputs && is_needed[i]; k++)
            is_needed[r->steps[i].inputs[k]] = true;
}

/* Of each step that is needed the tensor, else -1. */
static hwnas_status build(hwnas_graph **out, int *tensors, const recipe *r, noise *with)
{
    hwnas_status status = HWNAS_OK;
    bool is_needed[RANDOM_MAX_STEPS];
    hwnas_graph *graph = hwnas_graph_new("random", r->seed);
    find_needed(is_needed, r);
    for (int i = 0; i < r->n; i++) {
        tensors[i] = -1;
        if (!is_needed[i])
            continue;
        TRY_OUT(add_step(&tensors[i], graph, &r->steps[i], i, tensors));
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

/* By step: how much noise one rounding is. */
static hwnas_status find_amplitudes(double *out, const recipe *r, hwnas_device *ref,
                                    double rounding)
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
static hwnas_status find_bounds(double *out, const recipe *r, const hwnas_graph *graph,
                                const float *wanted, hwnas_device *ref, double rounding)
{
    double amplitudes[RANDOM_MAX_STEPS], distances[RANDOM_MAX_OUTPUTS], most = 0;
    TRY(find_amplitudes(amplitudes, r, ref, rounding));
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

/* What is wrong with the recipe itself is nobody's fault. */
static hwnas_status judge(random_verdict *out, const recipe *r, hwnas_device *cpu,
                          hwnas_device *ref, hwnas_precision precision)
{
    hwnas_status status = HWNAS_OK;
    int tensors[RANDOM_MAX_STEPS];
    hwnas_graph *graph = NULL, *folded = NULL;
    float *wanted = NULL, *got = NULL;
    double bounds[RANDOM_MAX_OUTPUTS], distances[RANDOM_MAX_OUTPUTS];
    const double rounding = roundings[has_bytes(r) ? HWNAS_S8 : precision];
    TRY_OUT(build(&graph, tensors, r, NULL));
    TRY_OUT(hwnas_graph_fold(&folded, graph));
    TRY_OUT(run(&wanted, r, graph, ref, HWNAS_F32));
    const float *at = wanted;
    if (!are_finite(wanted, count_values(graph, graph->n_outputs, graph->outputs)))
        goto out;
    TRY_OUT(find_bounds(bounds, r, graph, wanted, ref, rounding));
    out->says_nothing = false;
    out->status = run(&got, r, folded, cpu, precision);
    if (out->status != HWNAS_OK)
        goto out;
    find_distances(distances, graph, got, wanted);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const int64_t n = hwnas_tensor_count(&graph->tensors[graph->outputs[i]]);
        const double scale = largest_of(at, n), bound = bounds[i] + 1e-30;
        at += n;
        if (bound <= LARGEST_BOUND * scale || isinf(distances[i]))
            out->ratio = fmax(out->ratio, distances[i] / bound);
    }
out:
    free(got);
    free(wanted);
    hwnas_graph_free(folded);
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
            find_needed(is_needed, r);
            *smaller = *r;
            if (is_needed[i] && (way ? pass_by(smaller, i) : cut(&smaller->steps[i])) &&
                is_bad(smaller, cpu, ref, precision))
                *r = *smaller;
        }
    free(smaller);
}

void random_recipe_print(FILE *to, const recipe *r)
{
    bool is_needed[RANDOM_MAX_STEPS];
    find_needed(is_needed, r);
    for (int i = 0; i < r->n; i++) {
        const step *s = &r->steps[i];
        hwnas_tensor shape = {.rank = s->rank};
        if (!is_needed[i])
            continue;
        memcpy(shape.dims, s->dims, sizeof s->dims);
        fprintf(to, "# v%d (%s) = %s", i, hwnas_tensor_shape(&shape).s,
                s->op            ? s->op
                : s->is_constant ? "constant"
                                 : "input");
        if (s->is_given)
            fprintf(to, " %g", (double)s->value);
        for (int k = 0; k < s->n_inputs; k++)
            fprintf(to, " v%d", s->inputs[k]);
        fprintf(to, " %s\n", s->op ? s->attrs : "");
    }
    for (int i = 0; i < r->n_outputs; i++)
        fprintf(to, "# output v%d\n", r->outputs[i]);
}

/* ---- Making ---- */

typedef struct maker {
    recipe *r;
    random_source *source;
    hwnas_graph *graph; /* the same, for its shapes */
    int tensors[RANDOM_MAX_STEPS];
} maker;

/* A number below `n`. */
static int below(maker *m, int n)
{
    random_source *s = m->source;
    if (!s->bytes)
        return (int)hwnas_rng_below(&s->rng, (uint32_t)n);
    if (!s->n_bytes)
        return 0;
    s->n_bytes--;
    return *s->bytes++ % n;
}

static bool maybe(maker *m, int percent)
{
    return below(m, 100) < percent;
}

#define ONE_OF(m, array) ((array)[below(m, (int)COUNT(array))])

static int rank_of(const maker *m, int v)
{
    return m->r->steps[v].rank;
}

static const int64_t *dims_of(const maker *m, int v)
{
    return m->r->steps[v].dims;
}

/* Appends a step; -1 where there is no room, the graph does not take it, or it is too large. */
static int append(maker *m, const step *s)
{
    enum { MAX_VALUES = 1 << 13 };
    const int index = m->r->n;
    int tensor;
    if (index == RANDOM_MAX_STEPS)
        return -1;
    for (int i = 0; i < s->n_inputs; i++)
        if (s->inputs[i] < 0)
            return -1;
    if (add_step(&tensor, m->graph, s, index, m->tensors) != HWNAS_OK)
        return -1;
    const hwnas_tensor *t = &m->graph->tensors[tensor];
    if (hwnas_tensor_count(t) > MAX_VALUES)
        return -1;
    m->tensors[index] = tensor;
    m->r->steps[index] = *s;
    m->r->steps[index].rank = t->rank;
    m->r->steps[index].dtype = t->dtype;
    memcpy(m->r->steps[index].dims, t->dims, sizeof t->dims);
    return m->r->n++;
}

/* A node of one or two steps. */
__attribute__((format(printf, 5, 6))) static int node(maker *m, const char *op, int a, int b,
                                                      const char *format, ...)
{
    step s = {.op = op, .n_inputs = b < 0 ? 1 : 2, .inputs = {a, b}};
    va_list args;
    va_start(args, format);
    vsnprintf(s.attrs, sizeof s.attrs, format, args);
    va_end(args);
    return a < 0 ? -1 : append(m, &s);
}

/* Of two steps, neither of which may be missing. */
static int join(maker *m, const char *op, int a, int b)
{
    return a < 0 || b < 0 ? -1 : node(m, op, a, b, "%s", "");
}

static int function(maker *m, const char *op, int x)
{
    return node(m, op, x, -1, "%s", "");
}

static int constant(maker *m, int rank, const int64_t *dims)
{
    step s = {.is_constant = true, .rank = rank};
    s.dtype = HWNAS_FLOAT32;
    memcpy(s.dims, dims, (size_t)rank * sizeof *dims);
    return append(m, &s);
}

static int number(maker *m, float value, hwnas_dtype dtype)
{
    const step s = {.is_constant = true, .is_given = true, .value = value, .dtype = dtype};
    return append(m, &s);
}

/* A part of `v`'s dimensions, some of them one, that can be repeated to be like `v`. */
static int constant_for(maker *m, int v)
{
    const int rank = rank_of(m, v), n = below(m, rank + 1);
    int64_t dims[HWNAS_MAX_RANK];
    for (int i = 0; i < n; i++)
        dims[i] = maybe(m, 35) ? 1 : dims_of(m, v)[rank - n + i];
    return constant(m, n, dims);
}

/* An earlier step other than `v`, or -1. `is_alike`: of its shape. */
static int earlier(maker *m, int v, bool is_alike)
{
    int found[RANDOM_MAX_STEPS], n = 0;
    for (int i = 0; i < m->r->n; i++) {
        const step *s = &m->r->steps[i];
        const bool has_dims = s->rank == rank_of(m, v) &&
                              !memcmp(s->dims, dims_of(m, v), (size_t)s->rank * sizeof *s->dims);
        if (i != v && !s->is_constant && s->dtype == HWNAS_FLOAT32 && (!is_alike || has_dims))
            found[n++] = i;
    }
    return n ? found[below(m, n)] : -1;
}

/* ---- Operators: each makes a step of `x`, or -1 ---- */

static int make_function(maker *m, int x)
{
    static const char *const plain[] = {"relu",       "sigmoid",      "tanh", "hard_swish", "gelu",
                                        "leaky_relu", "hard_sigmoid", "erf",  "abs",        "relu",
                                        "softsign",   "neg",          "mish"};
    switch (below(m, 12)) {
    case 0:
        return node(m, "clip", x, -1, "low=-0.5 high=0.75");
    case 1:
        return node(m, "gelu", x, -1, "tanh=1");
    case 2:
        return function(m, "exp", function(m, "tanh", x));
    case 3:
        return function(m, "sqrt", function(m, "sigmoid", x));
    case 4:
        return join(m, "mul", x, function(m, "sigmoid", x));
    case 5:
        return join(m, "mul", function(m, "hard_sigmoid", x), x);
    case 6:
        return node(m, "scale", x, -1, "by=0.3");
    }
    return function(m, ONE_OF(m, plain), x);
}

static int make_conv(maker *m, int x)
{
    static const int outs[] = {1, 3, 4, 8, 16, 17};
    const int channels = (int)dims_of(m, x)[1], bias = below(m, 2), out = ONE_OF(m, outs);
    switch (below(m, 6)) {
    case 0:
        return node(m, "conv", x, -1, "out=%d kernel=3 pad=1 bias=%d", out, bias);
    case 1:
        return node(m, "conv", x, -1, "out=%d kernel=3 pad=1 stride=2 bias=%d", out, bias);
    case 2:
        return node(m, "conv", x, -1, "out=%d kernel=3 pad=1 groups=%d bias=%d", channels, channels,
                    bias);
    case 3:
        return node(m, "conv", x, -1, "out=8 kernel=3 pad=2 dilation=2 groups=2");
    }
    return node(m, "conv", x, -1, "out=%d bias=%d", out, bias);
}

static int make_pool(maker *m, int x)
{
    const char *op = maybe(m, 50) ? "max_pool" : "avg_pool";
    switch (below(m, 4)) {
    case 0:
        return node(m, op, x, -1, "kernel=2 stride=2");
    case 1:
        return node(m, op, x, -1, "kernel=3 pad=1");
    case 2:
        return node(m, "avg_pool", x, -1, "kernel=3 stride=2 pad=1 count_pad=1");
    }
    return function(m, "global_avg_pool", x);
}

static int make_image(maker *m, int x)
{
    switch (below(m, 4)) {
    case 0:
        return node(m, "upsample", x, -1, "by=2 linear=%d", below(m, 2));
    case 1:
        return node(m, "zero", x, -1, "stride=%d", 1 + below(m, 2));
    }
    return function(m, "batch_norm", x);
}

static int make_with_constant(maker *m, int x)
{
    static const char *const joins[] = {"add", "add", "mul", "sub", "div"};
    const char *op = ONE_OF(m, joins);
    const int c = constant_for(m, x);
    if (maybe(m, 70))
        return join(m, op, x, c);
    return join(m, op, c, strcmp(op, "div") ? x : function(m, "sigmoid", x));
}

static int make_join(maker *m, int x)
{
    static const char *const joins[] = {"add", "add", "add", "mul", "sub"};
    int other = earlier(m, x, maybe(m, 80));
    if (other < 0)
        other = make_function(m, x);
    return maybe(m, 50) ? join(m, ONE_OF(m, joins), x, other) : join(m, ONE_OF(m, joins), other, x);
}

static int make_slice(maker *m, int x)
{
    const int axis = below(m, rank_of(m, x)), n = (int)dims_of(m, x)[axis], begin = below(m, n);
    return node(m, "slice", x, -1, "begin=%d end=%d axis=%d step=%d", begin,
                begin + 1 + below(m, n - begin), axis, 1 + below(m, 2));
}

static int make_concat(maker *m, int x)
{
    int other = earlier(m, x, maybe(m, 50));
    if (other < 0 || rank_of(m, other) != rank_of(m, x))
        other = make_function(m, x);
    if (other < 0)
        return -1;
    return node(m, "concat", x, other, "axis=%d", maybe(m, 60) ? 1 : below(m, rank_of(m, x)));
}

/* Halves, each with a function, joined again: GLU, cross-stage blocks. */
static int make_halves(maker *m, int x)
{
    const int axis = maybe(m, 50) ? 1 : rank_of(m, x) - 1, n = (int)dims_of(m, x)[axis];
    if (n % 2)
        return -1;
    int a = node(m, "slice", x, -1, "end=%d axis=%d", n / 2, axis);
    int b = node(m, "slice", x, -1, "begin=%d axis=%d", n / 2, axis);
    if (a < 0 || b < 0)
        return -1;
    a = maybe(m, 50) ? make_function(m, a) : a;
    b = maybe(m, 50) ? make_function(m, b) : b;
    if (a < 0 || b < 0 || maybe(m, 50))
        return join(m, "mul", a, b);
    return node(m, "concat", b, a, "axis=%d", axis);
}

static int make_flat(maker *m, int x)
{
    const int64_t *d = dims_of(m, x);
    switch (below(m, 3)) {
    case 0:
        return node(m, "flatten", x, -1, "axis=%d", 1 + below(m, rank_of(m, x) - 1));
    case 1:
        return node(m, "reshape", x, -1, "shape=-1,%d", (int)d[rank_of(m, x) - 1]);
    }
    if (rank_of(m, x) == 4) /* an image as a sequence */
        return node(m, "transpose", node(m, "reshape", x, -1, "shape=%d,-1", (int)d[1]), -1,
                    "order=0,2,1");
    return node(m, "reshape", x, -1, "shape=-1");
}

/* A sequence or a vector as an image. */
static int make_raised(maker *m, int x)
{
    const int64_t *d = dims_of(m, x);
    if (rank_of(m, x) == 2)
        return node(m, "reshape", x, -1, "shape=%d,1,1", (int)d[1]);
    return rank_of(m, x) == 3
               ? node(m, "reshape", x, -1, "shape=%d,-1,%d", 1 + below(m, 2), (int)d[2])
               : -1;
}

static int make_transpose(maker *m, int x)
{
    int order[HWNAS_MAX_RANK], n = 0;
    const int rank = rank_of(m, x), first = maybe(m, 80);
    char text[64] = "order=";
    for (int i = 0; i < rank; i++)
        order[i] = i;
    for (int i = first; i < rank; i++) {
        const int other = first + below(m, rank - first), old = order[i];
        order[i] = order[other];
        order[other] = old;
    }
    for (; n < rank; n++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", n ? "," : "", order[n]);
    return node(m, "transpose", x, -1, "%s", text);
}

static int make_reduction(maker *m, int x)
{
    static const char *const ops[] = {"mean", "mean", "reduce_max", "reduce_sum", "reduce_l2"};
    const int rank = rank_of(m, x), axis = below(m, rank), keep = below(m, 2);
    if (rank == 4 && maybe(m, 50))
        return node(m, ONE_OF(m, ops), x, -1, "axes=2,3 keep=%d", keep);
    if (!keep && rank == 1)
        return -1;
    return node(m, ONE_OF(m, ops), x, -1, "axes=%d keep=%d", axis, keep);
}

static int make_norm(maker *m, int x)
{
    switch (below(m, 5)) {
    case 0:
        return node(m, "softmax", x, -1, "axis=%d", below(m, rank_of(m, x)));
    case 1:
        return node(m, "softmax", x, -1, "axis=-1");
    case 2: { /* RMSNorm of primitives */
        const int squares = join(m, "mul", x, x);
        const int mean = node(m, "mean", squares, -1, "axes=%d keep=1", rank_of(m, x) - 1);
        const int root = function(m, "sqrt", join(m, "add", mean, number(m, 0.01F, HWNAS_FLOAT32)));
        return join(m, "div", x, root);
    }
    }
    return node(m, "layer_norm", x, -1, "axis=%d bias=%d epsilon=0.001",
                maybe(m, 80) ? -1 : below(m, rank_of(m, x)), maybe(m, 70));
}

static int make_linear(maker *m, int x)
{
    static const int outs[] = {1, 5, 8, 16, 33};
    const int rank = rank_of(m, x), out = ONE_OF(m, outs);
    if (rank <= 3 && maybe(m, 70))
        return node(m, "linear", x, -1, "out=%d bias=%d", out, below(m, 2));
    const int64_t dims[] = {dims_of(m, x)[rank - 1], out};
    return node(m, "scale", join(m, "matmul", x, constant(m, 2, dims)), -1, "by=0.2");
}

/* Softmax of q k' with something added or not, times v, of any rank that has heads. */
static int attend(maker *m, int q, int k, int v)
{
    int x = join(m, "matmul", q, k);
    if (x >= 0 && maybe(m, 70))
        x = node(m, "scale", x, -1, "by=0.35");
    if (x >= 0 && maybe(m, 50))
        x = join(m, "add", x, constant_for(m, x));
    return join(m, "matmul", function(m, "softmax", x), v);
}

static int make_attention(maker *m, int x)
{
    const int length = (int)dims_of(m, x)[1], width = (int)dims_of(m, x)[2];
    const int heads = 1 + below(m, 2);
    int parts[3];
    if (rank_of(m, x) != 3 || width % heads)
        return -1;
    for (int i = 0; i < 3; i++) {
        int y = maybe(m, 90) ? node(m, "linear", x, -1, "out=%d", width) : x;
        y = node(m, "reshape", y, -1, "shape=%d,%d,%d", length, heads, width / heads);
        parts[i] = node(m, "transpose", y, -1, "order=%s", i == 1 ? "0,2,3,1" : "0,2,1,3");
    }
    if (parts[0] < 0 || parts[1] < 0 || parts[2] < 0)
        return -1;
    int y = attend(m, parts[0], parts[1], parts[2]);
    if (y < 0)
        return -1;
    y = node(m, "transpose", y, -1, "order=0,2,1,3");
    y = y < 0 ? -1 : node(m, "reshape", y, -1, "shape=%d,%d", length, width);
    return y >= 0 && maybe(m, 70) ? node(m, "linear", y, -1, "out=%d", width) : y;
}

static int make_sequence(maker *m, int x)
{
    switch (below(m, 6)) {
    case 0:
        return node(m, "lstm", x, -1, "out=%d", 5 + below(m, 2) * 11);
    case 1:
        return node(m, "gru", x, -1, "out=8 bidirectional=%d last=%d", below(m, 2), below(m, 2));
    }
    return make_attention(m, x);
}

static int make_excited(maker *m, int x)
{
    int s = function(m, "relu", node(m, "conv", function(m, "global_avg_pool", x), -1, "out=3"));
    if (s < 0)
        return -1;
    s = node(m, "conv", s, -1, "out=%d", (int)dims_of(m, x)[1]);
    return join(m, "mul", x, function(m, maybe(m, 50) ? "sigmoid" : "hard_sigmoid", s));
}

static int make_shuffled(maker *m, int x)
{
    const int64_t *d = dims_of(m, x);
    if (d[1] % 4)
        return -1;
    int y = node(m, "reshape", x, -1, "shape=%d,2,2,%d,%d", (int)d[1] / 4, (int)d[2], (int)d[3]);
    y = y < 0 ? -1 : node(m, "transpose", y, -1, "order=0,1,4,2,5,3");
    d = dims_of(m, x);
    return y < 0 ? -1
                 : node(m, "reshape", y, -1, "shape=%d,%d,%d", (int)d[1] / 4, 2 * (int)d[2],
                        2 * (int)d[3]);
}

static int make_quantized(maker *m, int x)
{
    const bool is_signed = maybe(m, 50);
    const hwnas_dtype dtype = is_signed ? HWNAS_INT8 : HWNAS_UINT8;
    const float scale = maybe(m, 50) ? 0.02F : 0.05F;
    const int s = number(m, scale, HWNAS_FLOAT32);
    const int z = number(m, is_signed ? (maybe(m, 50) ? 0 : 5) : 128, dtype);
    step q = {.op = "quantize_linear", .attrs = "axis=0", .n_inputs = 3, .inputs = {x, s, z}};
    const int bytes = s < 0 || z < 0 ? -1 : append(m, &q);
    step back = {
        .op = "dequantize_linear", .attrs = "axis=0", .n_inputs = 3, .inputs = {bytes, s, z}};
    return append(m, &back);
}

/* Of the same shape. */
static int make_alike(maker *m, int x)
{
    const int rank = rank_of(m, x), width = (int)dims_of(m, x)[rank > 1 ? 1 : 0];
    const int last = (int)dims_of(m, x)[rank - 1];
    switch (below(m, 7)) {
    case 0:
        return make_function(m, x);
    case 1:
        return node(m, "layer_norm", x, -1, "bias=%d epsilon=0.001", below(m, 2));
    case 2:
        return rank == 3 ? make_attention(m, x) : make_function(m, x);
    case 3:
        return make_with_constant(m, x);
    case 4:
        return rank == 4 ? make_excited(m, x) : make_function(m, x);
    }
    if (rank == 4)
        return node(m, "conv", x, -1, "out=%d kernel=3 pad=1", width);
    return rank <= 3 ? node(m, "linear", x, -1, "out=%d", last) : function(m, "relu", x);
}

static int make_residual(maker *m, int x)
{
    int y = make_alike(m, x);
    for (int n = below(m, 3); n > 0 && y >= 0; n--)
        y = make_alike(m, y);
    return maybe(m, 50) ? join(m, "add", x, y) : join(m, "add", y, x);
}

static const struct {
    int (*make)(maker *m, int x);
    int min_rank, max_rank, weight;
} makers[] = {
    {make_alike, 1, 8, 3},         {make_attention, 3, 3, 4}, {make_concat, 1, 8, 3},
    {make_conv, 4, 4, 8},          {make_excited, 4, 4, 2},   {make_flat, 2, 8, 3},
    {make_function, 0, 8, 5},      {make_halves, 2, 8, 2},    {make_image, 4, 4, 2},
    {make_join, 0, 8, 4},          {make_linear, 2, 8, 5},    {make_norm, 1, 8, 4},
    {make_pool, 4, 4, 3},          {make_quantized, 0, 8, 1}, {make_raised, 2, 3, 2},
    {make_reduction, 1, 8, 2},     {make_residual, 1, 8, 6},  {make_sequence, 3, 3, 2},
    {make_shuffled, 4, 4, 1},      {make_slice, 1, 8, 4},     {make_transpose, 2, 8, 3},
    {make_with_constant, 0, 8, 5},
};

static int make_any(maker *m, int x)
{
    int total = 0, rank = rank_of(m, x);
    for (int turn = 0, at = 0; turn < 2; turn++) {
        const int wanted = turn ? below(m, total) : 0;
        for (size_t i = 0; i < COUNT(makers); i++) {
            if (rank < makers[i].min_rank || rank > makers[i].max_rank)
                continue;
            at += makers[i].weight;
            if (turn && at > wanted)
                return makers[i].make(m, x);
        }
        total = at;
        at = 0;
    }
    return -1;
}

static int make_input(maker *m)
{
    static const int64_t channels[] = {1, 3, 4, 8, 16}, sides[] = {1, 5, 6, 7, 9};
    static const int64_t widths[] = {1, 6, 8, 16, 24};
    step s = {.rank = 2 + below(m, 3), .dtype = HWNAS_FLOAT32};
    s.dims[0] = 1 + below(m, 3);
    s.dims[1] = s.rank == 2   ? ONE_OF(m, widths)
                : s.rank == 3 ? ONE_OF(m, sides)
                              : ONE_OF(m, channels);
    s.dims[2] = s.rank == 3 ? ONE_OF(m, widths) : ONE_OF(m, sides);
    s.dims[3] = ONE_OF(m, sides);
    return append(m, &s);
}

/* What nobody reads, from the last on, and now and then something more. */
static void choose_outputs(maker *m)
{
    recipe *r = m->r;
    bool is_read[RANDOM_MAX_STEPS] = {false};
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->steps[i].n_inputs; k++)
            is_read[r->steps[i].inputs[k]] = true;
    for (int i = r->n; i-- > 0 && r->n_outputs < RANDOM_MAX_OUTPUTS;)
        if (r->steps[i].op && r->steps[i].dtype == HWNAS_FLOAT32 && (!is_read[i] || maybe(m, 5)))
            r->outputs[r->n_outputs++] = i;
}

void random_recipe_make(recipe *out, random_source *source, uint64_t seed)
{
    maker *m = hwnas_alloc(sizeof *m);
    *out = (recipe){.seed = seed};
    *m = (maker){.r = out, .source = source, .graph = hwnas_graph_new("random", seed)};
    int x = make_input(m);
    for (int n = 4 + below(m, 9); n > 0; n--) {
        const int from = maybe(m, 75) ? x : earlier(m, x, false);
        const int made = make_any(m, from < 0 ? x : from);
        x = made < 0 ? x : made;
    }
    choose_outputs(m);
    hwnas_graph_free(m->graph);
    free(m);
}
