/* test_gpu_cudnn.c: what is given to cuDNN, run: networks as plans and recurrent layers on a
 * stand-in for it (tests/gpu/fake_cudnn.c), held to `ref`. What the real one takes is
 * test_plans.c's. */
#define _GNU_SOURCE 1 /* RTLD_DEFAULT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/gpu/running.h"

static const struct row {
    hwnas_precision precision;
    double tolerance;
} rows[] = {{HWNAS_F32, 1e-5}, {HWNAS_F16, 1e-2}, {HWNAS_BF16, 5e-2}};

static void every_operator(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *graph = graph_of(&cases[i]);
        run_on_both(cases[i].op, "0", graph, cases[i].range, HWNAS_F32, 1e-5);
        hwnas_graph_free(graph);
    }
}

static void whole_networks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int batch = 1; batch <= 3; batch += 2) {
            hwnas_graph *nets[] = {image_net(batch), text_net(batch)};
            for (int k = 0; k < 2; k++) {
                const int before = n_replays();
                run_on_both(nets[k]->name, "0", nets[k], 0, rows[i].precision, rows[i].tolerance);
                assert_int_equal(n_replays() - before,
                                 3); /* plans are recorded as well, and steps */
                hwnas_graph_free(nets[k]);
            }
        }
}

/* Straight from the network's input, which is fp32 in every precision. */
static void recurrent_layers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (strcmp(cases[i].op, "lstm") && strcmp(cases[i].op, "gru"))
            continue;
        for (size_t k = 0; k < COUNT(rows); k++) {
            hwnas_graph *graph = graph_of(&cases[i]);
            run_on_both(cases[i].inputs, "0", graph, 0, rows[k].precision, rows[k].tolerance);
            hwnas_graph_free(graph);
        }
    }
}

/* Steps of cuDNN's with a node of that operator. */
static int n_plans_of(hwnas_exec *exec, const hwnas_graph *graph, hwnas_op_id op)
{
    const hwnas_exec_step *steps;
    const size_t n = exec->ops->steps(exec, &steps);
    int found = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < steps[i].n_nodes; k++)
            found += !strcmp(steps[i].how, "cuDNN") && graph->nodes[steps[i].nodes[k]].op->id == op;
    return found;
}

static void a_plan_that_does_not_run_is_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        hwnas_precision precision;
        double tolerance;
    } faults[] = {{"run", HWNAS_F32, 1e-5}, {"bf16", HWNAS_BF16, 5e-2}};
    hwnas_graph *graph = image_net(1);
    setenv("HWNAS_PLANS", "", 1); /* what is refused here is not kept for other tests */
    for (size_t i = 0; i < COUNT(faults); i++) {
        const hwnas_exec_options options = {.precision = faults[i].precision};
        hwnas_exec *exec = NULL;
        hwnas_device *gpu = open_gpu_as("0");
        ok(hwnas_device_compile(&exec, gpu, graph, &options));
        assert_true(n_plans_of(exec, graph, HWNAS_OP_CONV) > 0);
        hwnas_exec_free(exec);
        hwnas_device_close(gpu);
        setenv("FAKE_CUDNN_FAULT", faults[i].fault, 1);
        run_on_both(faults[i].fault, "0", graph, 0, faults[i].precision, faults[i].tolerance);
        gpu = open_gpu_as("0");
        ok(hwnas_device_compile(&exec, gpu, graph, &options));
        assert_int_equal(n_plans_of(exec, graph, HWNAS_OP_CONV), 0);
        hwnas_exec_free(exec);
        hwnas_device_close(gpu);
        unsetenv("FAKE_CUDNN_FAULT");
        nothing_is_left();
    }
    unsetenv("HWNAS_PLANS");
    hwnas_graph_free(graph);
}

static void refused_recurrent_layers_run_all_the_same(void **state)
{
    (void)state;
    hwnas_graph *graph = text_net(3);
    set_fault("rnn");
    run_on_both("refused", "0", graph, 0, HWNAS_F32, rows[0].tolerance);
    set_fault(NULL);
    hwnas_graph_free(graph);
}

static size_t memory_of(const char *argument, const hwnas_graph *graph)
{
    hwnas_device *gpu = open_gpu_as(argument);
    hwnas_exec *exec = NULL;
    ok(hwnas_device_compile(&exec, gpu, graph, NULL));
    const size_t bytes = exec->ops->memory(exec);
    hwnas_exec_free(exec);
    hwnas_device_close(gpu);
    return bytes;
}

/* cuDNN has its weights in a place of their own. */
static void memory_of_recurrent_layers_counts(void **state)
{
    (void)state;
    static const op_case c = {"lstm", "out=64", "1x2x64", 0};
    hwnas_graph *graph = graph_of(&c);
    assert_true(memory_of("0", graph) >= memory_of("0:own", graph) + 4 * 64 * 128 * sizeof(float));
    hwnas_graph_free(graph);
}

/* The product behind one softmax is the one before the next: it is in one plan alone. */
static void attention_behind_attention(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *graph = hwnas_graph_new("attention", 9);
        int x;
        ok(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 4, (int64_t[]){2, 3, 16, 16}));
        const int turned = add(graph, "transpose", "order=0,1,3,2", x, -1);
        int y = add(graph, "matmul", "", x, turned);
        for (int k = 0; k < 3; k++)
            y = add(graph, "matmul", "", add(graph, "softmax", "", y, -1), k % 2 ? x : turned);
        hwnas_graph_add_output(graph, y);
        run_on_both("attention", "0", graph, 0, rows[i].precision, rows[i].tolerance);
        hwnas_graph_free(graph);
    }
}

/* Whether two products and the softmax between them are one plan of cuDNN's. */
static bool has_attention(const hwnas_graph *graph, hwnas_precision precision)
{
    const hwnas_exec_options options = {.precision = precision};
    hwnas_device *gpu = open_gpu_as("0");
    hwnas_exec *exec = NULL;
    const hwnas_exec_step *steps;
    bool found = false;
    ok(hwnas_device_compile(&exec, gpu, graph, &options));
    const size_t n = exec->ops->steps(exec, &steps);
    for (size_t i = 0; i < n; i++)
        found |= steps[i].n_nodes >= 3 && !strcmp(steps[i].how, "cuDNN") &&
                 graph->nodes[steps[i].nodes[steps[i].n_nodes - 2]].op->id == HWNAS_OP_SOFTMAX;
    hwnas_exec_free(exec);
    hwnas_device_close(gpu);
    return found;
}

/* Keys that come from outside, in f32 whatever the network computes in, and lie by rows: as they
 * are or turned there, or turned by the network. */
static void attention_takes_keys_from_outside(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int is_turned_here = 0; is_turned_here < 2; is_turned_here++) {
            hwnas_graph *graph = hwnas_graph_new("attention", 9);
            int q, k, v;
            const int64_t long_first[] = {2, 3, 5, 16}, size_first[] = {2, 3, 16, 5};
            ok(hwnas_graph_add_input(&q, graph, "q", HWNAS_FLOAT32, 4, (int64_t[]){2, 3, 4, 16}));
            ok(hwnas_graph_add_input(&k, graph, "k", HWNAS_FLOAT32, 4,
                                     is_turned_here ? long_first : size_first));
            ok(hwnas_graph_add_input(&v, graph, "v", HWNAS_FLOAT32, 4, long_first));
            if (is_turned_here)
                k = add(graph, "transpose", "order=0,1,3,2", k, -1);
            const int scores = add(graph, "matmul", "", q, k);
            hwnas_graph_add_output(
                graph, add(graph, "matmul", "", add(graph, "softmax", "", scores, -1), v));
            run_on_both("attention", "0", graph, 0, rows[i].precision, rows[i].tolerance);
            const bool is_wide = rows[i].precision == HWNAS_F32 || rows[i].precision == HWNAS_TF32;
            if (has_attention(graph, rows[i].precision) == is_wide)
                fail_msg("row %zu, turned here %d: %s for the attention", i, is_turned_here,
                         is_wide ? "a plan in fp32" : "no plan");
            hwnas_graph_free(graph);
        }
}

/* A scaling and a mask; only a mask that cuDNN is known to read is left to it. */
static void attention_adds_a_mask(void **state)
{
    (void)state;
    static const struct {
        int rank;
        int64_t dims[4];
        bool is_whole;
    } masks[] = {{4, {1, 1, 4, 5}, true},  {3, {1, 4, 5}, true},     {2, {4, 5}, true},
                 {4, {1, 1, 1, 5}, false}, {4, {1, 3, 4, 5}, false}, {1, {5}, false},
                 {4, {1, 1, 4, 1}, false}};
    static const char *const between[] = {"m", "sm", "ms", "mm", "ssm"};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t m = 0; m < COUNT(masks) * 2; m++)
            for (size_t b = 0; b < COUNT(between); b++) {
                const int batch = m % 2 ? 2 : 1;
                const int64_t queries[] = {batch, 3, 4, 16}, keys[] = {batch, 3, 16, 5};
                const int64_t values[] = {batch, 3, 5, 16}, one[] = {1};
                hwnas_graph *graph = hwnas_graph_new("attention", 9);
                int q, k, v, mask, number;
                ok(hwnas_graph_add_input(&q, graph, "q", HWNAS_FLOAT32, 4, queries));
                ok(hwnas_graph_add_input(&k, graph, "k", HWNAS_FLOAT32, 4, keys));
                ok(hwnas_graph_add_input(&v, graph, "v", HWNAS_FLOAT32, 4, values));
                ok(hwnas_graph_add_input(&mask, graph, "m", HWNAS_FLOAT32, masks[m / 2].rank,
                                         masks[m / 2].dims));
                ok(hwnas_graph_add_weight(&number, graph, "s", 1, one, HWNAS_INIT_FAN_FIRST, true));
                int y = add(graph, "matmul", "", add(graph, "relu", "", q, -1), k);
                for (const char *c = between[b]; *c; c++)
                    y = add(graph, *c == 'm' ? "add" : "mul", "", y, *c == 'm' ? mask : number);
                y = add(graph, "matmul", "", add(graph, "softmax", "", y, -1), v);
                hwnas_graph_add_output(graph, y);
                run_on_both(between[b], "0", graph, 0, rows[i].precision, rows[i].tolerance);
                if (has_attention(graph, rows[i].precision) !=
                    (i > 0 && b < 2 && batch == 1 && masks[m / 2].is_whole))
                    fail_msg("row %zu, mask %zu, %s", i, m, between[b]);
                hwnas_graph_free(graph);
            }
}

/* ---- Networks that nobody thought of ---- */

enum { N_RANDOM = 60, N_NODES = 14 };

static bool same_dims(const hwnas_tensor *a, const hwnas_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

/* Another tensor like this one, but for its channels, or -1; the later ones rather. */
static int find_partner(const hwnas_graph *graph, hwnas_rng *rng, const int *made, int n, int x,
                        bool is_concat)
{
    for (int i = n; i-- > 0;) {
        hwnas_tensor t = graph->tensors[made[i]], like = graph->tensors[x];
        if (is_concat && t.rank == 4 && like.rank == 4)
            t.dims[1] = like.dims[1];
        if (same_dims(&t, &like) && hwnas_rng_below(rng, 3))
            return made[i];
    }
    return -1;
}

/* "conv out=%d": the number is drawn. */
static int add_form(hwnas_graph *graph, hwnas_rng *rng, const char *form, int x)
{
    char name[32], text[128];
    snprintf(text, sizeof text, form, 1 + (int)hwnas_rng_below(rng, 20));
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, " "), text);
    const char *attrs = strchr(text, ' ');
    return add(graph, name, attrs ? attrs + 1 : "", x, -1);
}

static int add_on_image(hwnas_graph *graph, hwnas_rng *rng, int x)
{
    static const char *const forms[] = {
        "conv out=%d kernel=3 pad=1",
        "conv out=%d kernel=1",
        "conv out=%d kernel=3,1 pad=0,1,2,0",
        "conv out=%d kernel=2 stride=2 pad=1",
        "max_pool kernel=3 stride=2 pad=1",
        "avg_pool kernel=3 pad=1",
        "avg_pool kernel=3,2 pad=1,1,1,0 count_pad=1",
        "global_avg_pool",
        "batch_norm",
        "upsample by=2",
        "pad before=0,0,1,0 after=0,0,0,2 value=0.5",
        "slice begin=1",
        "slice axis=2 begin=1 step=2",
        "mean axes=2,3 keep=1",
        "transpose order=0,1,3,2",
        "transpose order=0,2,3,1",
        "softmax axis=1",
        "layer_norm",
    };
    const hwnas_tensor t = graph->tensors[x];
    char text[64];
    switch (hwnas_rng_below(rng, 8)) {
    case 0:
        snprintf(text, sizeof text, "out=%d kernel=3 pad=1 groups=%d", (int)t.dims[1],
                 (int)t.dims[1]);
        return add(graph, "conv", text, x, -1);
    case 1:
        snprintf(text, sizeof text, "shape=%d,-1", (int)t.dims[1]);
        return add(graph, "reshape", text, x, -1);
    default:
        return add_form(graph, rng, forms[hwnas_rng_below(rng, COUNT(forms))], x);
    }
}

static int add_on_rows(hwnas_graph *graph, hwnas_rng *rng, int x)
{
    static const char *const forms[] = {
        "linear out=%d",         "layer_norm",        "softmax", "mean axes=1", "slice begin=1",
        "transpose order=0,2,1", "mean axes=2 keep=1"};
    return add_form(graph, rng, forms[hwnas_rng_below(rng, COUNT(forms))], x);
}

static int add_on_elements(hwnas_graph *graph, hwnas_rng *rng, int x)
{
    static const char *const names[] = {"relu",    "hard_swish", "sigmoid", "gelu",
                                        "tanh",    "leaky_relu", "abs",     "hard_sigmoid",
                                        "dropout", "softplus",   "elu",     "sin"};
    return add(graph, names[hwnas_rng_below(rng, COUNT(names))], "", x, -1);
}

/* Neither so small that windows do not fit, nor large. */
static bool is_roomy(const hwnas_tensor *t)
{
    for (int i = 1; i < t->rank; i++)
        if (t->dims[i] < 3)
            return false;
    return hwnas_tensor_count(t) < 20000;
}

static hwnas_graph *random_net(hwnas_rng *rng)
{
    static const char *const sums[] = {"add", "mul", "sub", "max"};
    hwnas_graph *graph = hwnas_graph_new("random", 9);
    int made[N_NODES + 1], n = 1;
    const int64_t dims[] = {1 + hwnas_rng_below(rng, 2), 3 + hwnas_rng_below(rng, 6), 7, 8};
    ok(hwnas_graph_add_input(&made[0], graph, "x", HWNAS_FLOAT32, 4, dims));
    for (; n <= N_NODES; n++) {
        const int x = made[n - 1 - (int)hwnas_rng_below(rng, (unsigned)(n < 4 ? n : 4))];
        const int what = (int)hwnas_rng_below(rng, 8), rank = graph->tensors[x].rank;
        const int other = what > 5 ? find_partner(graph, rng, made, n, x, what == 6) : -1;
        if (other >= 0 && what == 6 && rank == 4)
            made[n] = add(graph, "concat", "axis=1", x, other);
        else if (other >= 0 && what == 7)
            made[n] = add(graph, sums[hwnas_rng_below(rng, COUNT(sums))], "", x, other);
        else if (what < 4 && rank == 4 && is_roomy(&graph->tensors[x]))
            made[n] = add_on_image(graph, rng, x);
        else if (what < 4 && rank == 3 && is_roomy(&graph->tensors[x]))
            made[n] = add_on_rows(graph, rng, x);
        else
            made[n] = add_on_elements(graph, rng, x);
    }
    hwnas_graph_add_output(graph, made[N_NODES]);
    hwnas_graph_add_output(graph, made[N_NODES / 2]);
    return graph;
}

/* In fp32: what rounding does to a network that nobody thought of has no bound. */
static void random_networks(void **state)
{
    (void)state;
    const char *seed = getenv("HWNAS_SEED");
    hwnas_rng rng = hwnas_rng_new(seed ? strtoull(seed, NULL, 10) : 1, 7);
    for (int i = 0; i < N_RANDOM; i++) {
        hwnas_graph *graph = random_net(&rng), *folded;
        ok(hwnas_graph_fold(&folded, graph));
        char what[32];
        snprintf(what, sizeof what, "random network %d", i);
        run_on_both(what, "0", folded, 0, HWNAS_F32, 1e-4);
        hwnas_graph_free(folded);
        hwnas_graph_free(graph);
    }
}

/* ---- Quick plans ---- */

/* Pools and functions of elements are kernels of ours there, chains of them in one. */
static void quick_plans_compute_the_same(void **state)
{
    (void)state;
    hwnas_rng rng = hwnas_rng_new(5, 7);
    setenv("FAKE_CUDNN_COMPILES", "1", 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *graph = graph_of(&cases[i]);
        run_on_both(cases[i].op, "0:quick", graph, cases[i].range, HWNAS_F32, 1e-5);
        hwnas_graph_free(graph);
    }
    for (size_t i = 0; i < COUNT(rows); i++) {
        hwnas_graph *nets[] = {image_net(3), text_net(2)};
        for (int k = 0; k < 2; k++) {
            run_on_both(nets[k]->name, "0:quick", nets[k], 0, rows[i].precision, rows[i].tolerance);
            hwnas_graph_free(nets[k]);
        }
    }
    for (int i = 0; i < N_RANDOM / 2; i++) {
        hwnas_graph *graph = random_net(&rng), *folded;
        char what[40];
        ok(hwnas_graph_fold(&folded, graph));
        snprintf(what, sizeof what, "quick random network %d", i);
        run_on_both(what, "0:quick", folded, 0, HWNAS_F32, 1e-4);
        hwnas_graph_free(folded);
        hwnas_graph_free(graph);
    }
    unsetenv("FAKE_CUDNN_COMPILES");
}

static hwnas_graph *convolutions(int channels, int pixels, const char *kernel)
{
    hwnas_graph *graph = hwnas_graph_new("convolutions", 9);
    char attrs[64];
    int x;
    ok(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 4, (int64_t[]){1, 8, pixels, pixels}));
    snprintf(attrs, sizeof attrs, "out=%d kernel=%s pad=1", channels, kernel);
    x = add(graph, "hard_swish", "", add(graph, "conv", attrs, x, -1), -1);
    x = add(graph, "max_pool", "kernel=2 stride=2", x, -1);
    hwnas_graph_add_output(graph, add(graph, "sin", "", add(graph, "relu", "", x, -1), -1));
    return graph;
}

/* How many kernels cuDNN compiled for a network that one device compiles after others. */
static int n_compiled(hwnas_device *gpu, hwnas_graph *graph)
{
    int *compiled = dlsym(dlopen("libcudnn.so.9", RTLD_NOW), "fake_cudnn_compiled");
    hwnas_exec *exec = NULL;
    *compiled = 0;
    ok(hwnas_device_compile(&exec, gpu, graph, NULL));
    assert_true(n_plans_of(exec, graph, HWNAS_OP_CONV) == 1);
    assert_int_equal(n_plans_of(exec, graph, HWNAS_OP_MAX_POOL), 0);
    hwnas_exec_free(exec);
    hwnas_graph_free(graph);
    return *compiled;
}

static void a_kernel_serves_all_sizes(void **state)
{
    (void)state;
    setenv("FAKE_CUDNN_COMPILES", "1", 1);
    hwnas_device *gpu = open_gpu_as("0:quick");
    assert_int_equal(n_compiled(gpu, convolutions(16, 12, "3")), 1);
    assert_int_equal(n_compiled(gpu, convolutions(24, 20, "3")), 0);
    assert_int_equal(n_compiled(gpu, convolutions(40, 9, "5")), 1); /* another form */
    hwnas_device_close(gpu);
    nothing_is_left();
    unsetenv("FAKE_CUDNN_COMPILES");
}

static void quick_and_timed_is_refused(void **state)
{
    (void)state;
    static const char *const spellings[] = {"0:quick:tune", "0:own:quick", "0:quicker"};
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device;
    for (size_t i = 0; i < COUNT(spellings); i++)
        assert_int_equal(hwnas_cuda_ops.open(&device, spellings[i], &options), HWNAS_E_INPUT);
}

/* Of two engines the second is the fast one. */
static void the_faster_plan_is_kept(void **state)
{
    (void)state;
    int *runs = dlsym(dlopen("libcudnn.so.9", RTLD_NOW), "fake_cudnn_runs");
    hwnas_graph *graph = image_net(1);
    const double tolerance = rows[0].tolerance;
    runs[0] = runs[1] = 0;
    run_on_both("as ranked", "0", graph, 0, HWNAS_F32, tolerance);
    assert_true(runs[0] > 0 && runs[1] == 0);
    runs[0] = 0;
    run_on_both("timed", "0:tune", graph, 0, HWNAS_F32, tolerance);
    assert_true(runs[0] > 0 && runs[0] < runs[1]);
    hwnas_graph_free(graph);
}

/* Engine 0 of a product by cublasLt is not the generic one, and has tensor cores. */
static void assert_not_called_slow(const hwnas_graph *graph)
{
    const hwnas_exec_options options = {.precision = HWNAS_TF32};
    hwnas_device *gpu = open_gpu_as("0");
    hwnas_exec *exec = NULL;
    const hwnas_exec_step *steps;
    ok(hwnas_device_compile(&exec, gpu, graph, &options));
    const size_t n = exec->ops->steps(exec, &steps);
    for (size_t i = 0; i < n; i++)
        if (steps[i].n_nodes)
            assert_string_equal(steps[i].how, "cuDNN");
    hwnas_exec_free(exec);
    hwnas_device_close(gpu);
}

/* How often cuBLAS multiplied since the last call. */
static int n_products(void)
{
    int *runs = dlsym(dlopen("libcublasLt.so.13", RTLD_NOW), "fake_cublas_runs"), n;
    assert_non_null(runs);
    n = *runs;
    *runs = 0;
    return n;
}

/* The only node of a graph, and what is behind it. */
static hwnas_graph *product_net(const char *op, const char *attrs, int *x, int *out, int rank,
                                const int64_t *dims)
{
    hwnas_graph *graph = hwnas_graph_new("product", 9);
    ok(hwnas_graph_add_input(x, graph, "x", HWNAS_FLOAT32, rank, dims));
    *out = add(graph, op, attrs, *x, strcmp(op, "matmul") ? -1 : *x);
    return graph;
}

/* Engines of cublasLt multiply in tf32 when cuDNN asks them and do not say so (seen on an H100); in
 * exact fp32 cuBLAS itself is asked. */
static void exact_products_are_not_by_cudnn(void **state)
{
    (void)state;
    int *runs = dlsym(dlopen("libcudnn.so.9", RTLD_NOW), "fake_cudnn_runs"), x, out;
    hwnas_graph *graph = product_net("matmul", "", &x, &out, 3, (int64_t[]){2, 8, 8});
    hwnas_graph_add_output(graph, out);
    setenv("FAKE_CUDNN_CUBLASLT", "1", 1);
    runs[0] = runs[1] = 0;
    n_products();
    run_on_both("in tf32", "0", graph, 0, HWNAS_TF32, 1e-5);
    assert_true(runs[0] > 0 && runs[1] == 0);
    assert_int_equal(n_products(), 0);
    assert_not_called_slow(graph);
    runs[0] = 0;
    run_on_both("in f32", "0", graph, 0, HWNAS_F32, 1e-5);
    assert_true(runs[0] == 0 && runs[1] == 0);
    assert_true(n_products() > 0);
    unsetenv("FAKE_CUDNN_CUBLASLT");
    hwnas_graph_free(graph);
}

static const char *how_of(const hwnas_graph *graph, size_t *n_steps, size_t *n_nodes)
{
    hwnas_device *gpu = open_gpu_as("0");
    hwnas_exec *exec = NULL;
    const hwnas_exec_step *steps;
    const char *how = NULL;
    ok(hwnas_device_compile(&exec, gpu, graph, NULL));
    const size_t n = exec->ops->steps(exec, &steps);
    *n_steps = 0;
    for (size_t i = 0; i < n; i++)
        if (steps[i].n_nodes) {
            how = how ? how : steps[i].how;
            *n_nodes = *n_steps ? *n_nodes : steps[i].n_nodes;
            ++*n_steps;
        }
    hwnas_exec_free(exec);
    hwnas_device_close(gpu);
    return how;
}

/* A number, a sum, a bias and a ReLU are of the product; a GELU, another order or a second sum is
 * not. */
static void what_cublas_does_behind_a_product(void **state)
{
    (void)state;
    static const struct {
        const char *behind; /* '*' by a number, '+' the input, 'b' a bias, 'r', 'g', 'l' */
        size_t in_product;  /* nodes */
    } table[] = {{"", 1},   {"r", 2}, {"+", 2},  {"+r", 3}, {"b+r", 4}, {"*+br", 5},
                 {"/b", 3}, {"g", 1}, {"+g", 2}, {"r+", 2}, {"++", 2},  {"+*", 2},
                 {"rr", 2}, {"l", 1}, {"bb", 2}, {"s", 1}};
    for (size_t i = 0; i < COUNT(table); i++)
        for (int has_weights = 0; has_weights < 2; has_weights++) {
            int x, out;
            size_t n_steps, n_nodes;
            const int64_t square[] = {2, 9, 9}, number[] = {1}, row[] = {9};
            hwnas_graph *graph = product_net(has_weights ? "linear" : "matmul",
                                             has_weights ? "out=9" : "", &x, &out, 3, square);
            for (const char *c = table[i].behind; *c; c++) {
                int weight = -1;
                if (strchr("*/", *c))
                    ok(hwnas_graph_add_weight(&weight, graph, "n", 1, number, HWNAS_INIT_FAN_FIRST,
                                              true));
                if (*c == 'b')
                    ok(hwnas_graph_add_weight(&weight, graph, "b", 1, row, HWNAS_INIT_FAN_FIRST, true));
                out = *c == '*'   ? add(graph, "mul", "", out, weight)
                      : *c == '/' ? add(graph, "div", "", out, weight)
                      : *c == 'b' ? add(graph, "add", "", out, weight)
                      : *c == '+' ? add(graph, "add", "", out, x)
                      : *c == 's' ? add(graph, "add", "", out, out)
                      : *c == 'r' ? add(graph, "relu", "", out, -1)
                      : *c == 'l' ? add(graph, "leaky_relu", "alpha=0.2", out, -1)
                                  : add(graph, "gelu", "", out, -1);
            }
            hwnas_graph_add_output(graph, out);
            run_on_both(table[i].behind, "0", graph, 0, HWNAS_F32, 1e-5);
            if (!has_weights) { /* linear has a bias of its own */
                assert_string_equal(how_of(graph, &n_steps, &n_nodes), "cuBLAS");
                assert_int_equal(n_nodes, table[i].in_product);
                assert_int_equal(n_steps, 1 + (n_nodes <= strlen(table[i].behind)));
            }
            hwnas_graph_free(graph);
        }
}

/* One row, one column, slices that begin at odd places. */
static void products_of_odd_shapes(void **state)
{
    (void)state;
    static const struct {
        int rank;
        int64_t dims[4];
        int out;
    } table[] = {{2, {1, 7}, 5}, {2, {6, 7}, 1}, {2, {1, 1}, 1}, {3, {2, 1, 3}, 4}, {2, {5, 1}, 3}};
    for (size_t i = 0; i < COUNT(table); i++) {
        int x, out;
        char attrs[16];
        snprintf(attrs, sizeof attrs, "out=%d", table[i].out);
        hwnas_graph *graph = product_net("linear", attrs, &x, &out, table[i].rank, table[i].dims);
        hwnas_graph_add_output(graph, add(graph, "concat", "axis=-1", out, x));
        n_products();
        run_on_both(attrs, "0", graph, 0, HWNAS_F32, 1e-5);
        assert_true(n_products() > 0);
        hwnas_graph_free(graph);
    }
    int x;
    hwnas_graph *graph = hwnas_graph_new("slices", 9);
    ok(hwnas_graph_add_input(&x, graph, "x", HWNAS_FLOAT32, 3, (int64_t[]){3, 4, 12}));
    x = add(graph, "relu", "", x, -1);
    const int a = add(graph, "slice", "axis=2 begin=1 end=6", x, -1);
    const int b = add(graph, "slice", "axis=2 begin=6 end=11", x, -1);
    hwnas_graph_add_output(
        graph, add(graph, "matmul", "", a, add(graph, "transpose", "order=0,2,1", b, -1)));
    n_products();
    run_on_both("slices", "0", graph, 0, HWNAS_F32, 1e-5);
    assert_true(n_products() > 0);
    hwnas_graph_free(graph);
}

/* Numbers that are none together: each is a step of its own. */
static void numbers_behind_a_product_do_not_vanish(void **state)
{
    (void)state;
    int x, out, large, small;
    const int64_t one[] = {1};
    hwnas_graph *graph = product_net("matmul", "", &x, &out, 3, (int64_t[]){1, 8, 8});
    ok(hwnas_graph_add_constant(&large, graph, "large", 1, one, (const float[]){1e30F}));
    ok(hwnas_graph_add_constant(&small, graph, "small", 1, one, (const float[]){1e-30F}));
    out = add(graph, "mul", "", add(graph, "mul", "", add(graph, "mul", "", out, large), small),
              small);
    hwnas_graph_add_output(graph, add(graph, "mul", "", add(graph, "mul", "", out, small), large));
    run_on_both("numbers", "0", graph, 0, HWNAS_F32, 1e-5);
    hwnas_graph_free(graph);
}

static void what_cublas_refuses_is_a_kernel_of_ours(void **state)
{
    (void)state;
    hwnas_graph *graph = text_net(2);
    set_fault("cublas");
    n_products();
    run_on_both("refused", "0", graph, 0, HWNAS_F32, rows[0].tolerance);
    assert_int_equal(n_products(), 0);
    set_fault(NULL);
    hwnas_graph_free(graph);
}

/* Also where it is cuDNN that notices: the next network needs a new process. */
static void the_gpu_is_lost(void **state)
{
    (void)state;
    for (int at = 1; at < 80; at += 5) {
        hwnas_graph *nets[] = {image_net(1), text_net(1)}, *graph = nets[at % 2];
        char fault[32];
        hwnas_device *gpu = open_gpu_as("0");
        hwnas_exec *exec = NULL;
        buffers b = new_buffers(graph, 0);
        snprintf(fault, sizeof fault, "lost:%d", at);
        set_fault(fault);
        hwnas_status status = hwnas_device_compile(&exec, gpu, graph, NULL);
        for (int i = 0; i < 4 && status == HWNAS_OK; i++)
            status = exec->ops->run(exec, (const float *const *)b.inputs, b.outputs);
        assert_int_equal(status, HWNAS_E_CRASHED);
        hwnas_exec_free(exec);
        hwnas_device_close(gpu);
        nothing_is_left();
        free_buffers(&b);
        for (int i = 0; i < 2; i++)
            hwnas_graph_free(nets[i]);
    }
    set_fault(NULL);
}

int main(int argc, char **argv)
{
    setenv("HWNAS_PLANS", "", 1);
    begin_with_the_fake(argv);
    find_fake();
    set_fault(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator),
        cmocka_unit_test(whole_networks),
        cmocka_unit_test(recurrent_layers),
        cmocka_unit_test(refused_recurrent_layers_run_all_the_same),
        cmocka_unit_test(memory_of_recurrent_layers_counts),
        cmocka_unit_test(attention_behind_attention),
        cmocka_unit_test(attention_takes_keys_from_outside),
        cmocka_unit_test(attention_adds_a_mask),
        cmocka_unit_test(random_networks),
        cmocka_unit_test(quick_plans_compute_the_same),
        cmocka_unit_test(a_kernel_serves_all_sizes),
        cmocka_unit_test(quick_and_timed_is_refused),
        cmocka_unit_test(the_faster_plan_is_kept),
        cmocka_unit_test(exact_products_are_not_by_cudnn),
        cmocka_unit_test(what_cublas_does_behind_a_product),
        cmocka_unit_test(products_of_odd_shapes),
        cmocka_unit_test(numbers_behind_a_product_do_not_vanish),
        cmocka_unit_test(what_cublas_refuses_is_a_kernel_of_ours),
        cmocka_unit_test(a_plan_that_does_not_run_is_left_out),
        cmocka_unit_test(the_gpu_is_lost),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
