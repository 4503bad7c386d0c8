/* test_plans.c: cuDNN's own word, without a GPU: all plans of some networks are built for described
 * GPUs, kernels of ours compiled, memory placed; what becomes of every operator. test_all_plans.c
 * has all networks. Skipped where CUDA's libraries are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/str.h"
#include "device/cudnn/cudnn_int8.h"
#include "device/cudnn/compile.h"
#include "device/cudnn/plans.h"
#include "device/cudnn/quick.h"
#include "graph/elaborate.h"
#include "space/arch.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/dry.h"

static hwnas_device *opened; /* closed when the test ends, however it does */

static hwnas_device *open_dry(const char *gpu)
{
    hwnas_cuda_device *device = dry_open(gpu);
    if (!device)
        skip();
    return opened = &device->base;
}

static int close_dry(void **state)
{
    (void)state;
    if (opened)
        hwnas_cuda_dry_ops.close(opened);
    opened = NULL;
    return 0;
}

/* What became of all networks of one line. */
typedef struct tally {
    size_t n_networks, n_steps, n_library, n_own;
    double seconds;
} tally;

static void count(tally *t, hwnas_device *device, hwnas_arch *arch, const char *name,
                  hwnas_precision precision)
{
    hwnas_graph *raw = NULL, *graph = NULL;
    hwnas_exec *exec = NULL;
    hwnas_footprint f;
    const hwnas_exec_options options = {.precision = precision};
    const double start = hwnas_now();
    if (hwnas_graph_build(&raw, arch, 1) != HWNAS_OK || hwnas_graph_fold(&graph, raw) != HWNAS_OK)
        fail_msg("%s: %s", name, hwnas_last_error()->message);
    hwnas_graph_free(raw);
    if (hwnas_device_compile(&exec, device, graph, &options) != HWNAS_OK) {
        char *code = hwnas_arch_code(arch);
        fail_msg("%s %s: %s", name, code, hwnas_last_error()->message);
    }
    hwnas_cudnn_footprint(exec, &f);
    assert_int_equal(f.n_steps, f.n_library + f.n_own);
    assert_true(f.n_steps > 0 && f.device_bytes > 0);
    t->n_networks++;
    t->n_steps += f.n_steps;
    t->n_library += f.n_library;
    t->n_own += f.n_own;
    t->seconds += hwnas_now() - start;
    hwnas_exec_free(exec);
    hwnas_graph_free(graph);
}

static void tell(const tally *t, const char *name, hwnas_device *device)
{
    print_message(
        "%s for %s: %zu networks, %zu steps, %zu by cuDNN, %zu own, %.1f s, %zu plans known\n",
        name, ((hwnas_cuda_device *)device)->gpu.name, t->n_networks, t->n_steps, t->n_library,
        t->n_own, t->seconds, hwnas_cudnn_plans_count(((hwnas_cuda_device *)device)->plans));
}

/* `n` networks of a space, its first and last choices first; a fixed network is one. */
static void check_space(hwnas_device *device, const char *name, int n, hwnas_precision precision)
{
    hwnas_space *space;
    tally t = {0};
    hwnas_rng rng = hwnas_rng_new(7, 1);
    if (hwnas_graph_load_space(&space, name) != HWNAS_OK)
        fail_msg("%s", hwnas_last_error()->message);
    for (int i = 0; i < n; i++) {
        hwnas_arch *arch = hwnas_arch_new(space);
        if (i)
            hwnas_arch_sample(arch, &rng);
        else
            hwnas_arch_settle(arch);
        count(&t, device, arch, name, precision);
        hwnas_arch_free(arch);
    }
    tell(&t, name, device);
    hwnas_space_free(space);
}

static void check_gpu(const char *gpu)
{
    check_space(open_dry(gpu), "mnist_cnn", 1, HWNAS_F16);
}

static void on_h200(void **state)
{
    (void)state;
    check_gpu("h200");
}

static void on_a100(void **state)
{
    (void)state;
    check_gpu("a100");
}

static void on_l4(void **state)
{
    (void)state;
    check_gpu("l4");
}

/* ---- The table of operators in docs/operators.md ---- */

#define PAGE HWNAS_SOURCE_DIR "/docs/operators.md"
#define HEADING "\n## On a GPU\n"

/* What cuDNN is asked for is compiled; kernels of ours are by test_nvrtc. */
static hwnas_status compile_engines(hwnas_cudnn_step *step, hwnas_cudnn_net *net)
{
    return step->kind == &hwnas_cudnn_engine ? step->kind->compile(step, net) : HWNAS_OK;
}

static const char *const gpus[] = {"h200", "a100", "l4"};

typedef struct row {
    int n_cases, n_cudnn, n_own, n_views, n_bytes;
    unsigned long long engines; /* a set of bits */
} row;

/* The case as it is compiled. */
static hwnas_graph *ready(const op_case *c, hwnas_precision precision)
{
    hwnas_cuda_device device = {.is_dry = true};
    hwnas_graph *graph = graph_of(c), *folded, *bytes;
    int *origin;
    ok(hwnas_graph_fold(&folded, graph));
    hwnas_graph_free(graph);
    if (precision != HWNAS_S8)
        return folded;
    ok(hwnas_cudnn_quantize(&bytes, &origin, &device, folded, NULL));
    hwnas_graph_free(folded);
    free(origin);
    return bytes;
}

static bool multiplies_bytes(const hwnas_cudnn_step *step)
{
    return step->kind == &hwnas_cudnn_engine &&
           ((hwnas_cudnn_operation *)step->state)->ops[0].is_whole;
}

static void add_case(row *r, hwnas_device *device, const op_case *c, hwnas_precision precision)
{
    hwnas_graph *graph = ready(c, precision);
    hwnas_cudnn_net *net;
    bool by_cudnn = false, by_own = false;
    ok(hwnas_cudnn_net_new(&net, (hwnas_cuda_device *)device, graph, precision, compile_engines));
    for (size_t i = 0; i < net->n_steps; i++) {
        const hwnas_cudnn_step *step = &net->steps[i];
        by_cudnn |= step->kind == &hwnas_cudnn_engine || step->kind == &hwnas_cudnn_rnn;
        by_own |= step->kind == &hwnas_cudnn_kernel && step->about.n_nodes;
        r->n_bytes += multiplies_bytes(step);
        if (step->kind == &hwnas_cudnn_engine)
            r->engines |= 1ULL << (((hwnas_cudnn_operation *)step->state)->plan->engine & 63);
    }
    r->n_cases++;
    r->n_cudnn += by_cudnn;
    r->n_own += by_own && !by_cudnn;
    r->n_views += !by_own && !by_cudnn;
    hwnas_cudnn_net_free(net);
    hwnas_graph_free(graph);
}

/* "7, 41"; yours to free(). */
static char *numbers_in(unsigned long long set)
{
    hwnas_str out = {0};
    for (int i = 0; i < 64; i++)
        if (set >> i & 1)
            hwnas_str_addf(&out, "%s%d", out.n ? ", " : "", i);
    return out.s ? out.s : hwnas_strdup("");
}

static void add_row(hwnas_str *out, const row *r, const char *op)
{
    char *engines = numbers_in(r->engines);
    hwnas_str_addf(out, "| %s | %d | %d | %s | %d | %d |\n", op, r->n_cases, r->n_cudnn, engines,
                   r->n_views, r->n_own);
    free(engines);
}

/* Products of bytes, on each GPU. */
static void add_bytes(hwnas_str *out)
{
    static const char *const ops[] = {"conv", "linear", "matmul"};
    hwnas_str_add(
        out,
        "\nIn 8-bit integers (`--dtype s8`): how many of the cases multiply bytes in an engine of\n"
        "cuDNN's, and in which; the others are computed in f16.\n\n"
        "| Operator | Cases | GPU | Bytes | Engines |\n|---|---|---|---|---|\n");
    for (size_t g = 0; g < COUNT(gpus); g++) {
        hwnas_device *device = open_dry(gpus[g]);
        for (size_t i = 0; i < COUNT(ops); i++) {
            row r = {0};
            for (size_t k = 0; k < COUNT(cases); k++)
                if (!strcmp(cases[k].op, ops[i]))
                    add_case(&r, device, &cases[k], HWNAS_S8);
            char *engines = numbers_in(r.engines);
            hwnas_str_addf(out, "| %s | %d | %s | %d | %s |\n", ops[i], r.n_cases, gpus[g],
                           r.n_bytes, engines);
            free(engines);
        }
        hwnas_cuda_dry_ops.close(device);
        opened = NULL;
    }
}

static void add_table(hwnas_str *out, hwnas_device *device)
{
    const size_t version = ((hwnas_cuda_device *)device)->cudnn->version();
    hwnas_str_addf(
        out,
        "%s\nWhat becomes of each operator on NVIDIA's GPUs, in shapes and with attributes that differ: how many\n"
        "cases run in an engine of cuDNN's and in which, how many are nothing but another view of the same\n"
        "memory, and how many fall back to a kernel of ours. Found without a GPU, for the description of an\n"
        "H200 in f16 with cuDNN %zu; [gpu.md](gpu.md) tells how. Written by `HWNAS_UPDATE_GOLDEN=1\n"
        "tests/unit/test_plans 'operators*'`, and checked by the same test. The names are those of the space\n"
        "language.\n\n"
        "| Operator | Cases | cuDNN | Engines | View | Own kernel |\n|---|---|---|---|---|---|\n",
        HEADING, version);
    for (size_t i = 0; i < COUNT(cases); i++) {
        row r = {0};
        bool is_known = false;
        for (size_t k = 0; k < i; k++)
            is_known |= !strcmp(cases[k].op, cases[i].op);
        if (is_known)
            continue;
        for (size_t k = i; k < COUNT(cases); k++)
            if (!strcmp(cases[k].op, cases[i].op))
                add_case(&r, device, &cases[k], HWNAS_F16);
        add_row(out, &r, cases[i].op);
    }
}

static void operators_are_as_the_page_says(void **state)
{
    char *page, version[32];
    hwnas_str table = {0};
    (void)state;
    hwnas_device *device = open_dry("h200");
    ok(hwnas_file_read(&page, NULL, PAGE, 1 << 20));
    char *heading = strstr(page, HEADING);
    const char *update = getenv("HWNAS_UPDATE_GOLDEN");
    snprintf(version, sizeof version, "with cuDNN %zu;",
             ((hwnas_cuda_device *)device)->cudnn->version());
    if (!(update && *update) && heading && !strstr(heading, version)) {
        free(page);
        skip(); /* another version has other engines */
    }
    add_table(&table, device);
    hwnas_cuda_dry_ops.close(device);
    add_bytes(&table);
    if (update && *update) {
        char *whole = hwnas_printf("%.*s%s", heading ? (int)(heading - page) : (int)strlen(page),
                                   page, table.s);
        ok(hwnas_file_write(PAGE, whole, strlen(whole)));
        free(whole);
    } else {
        assert_non_null(heading);
        assert_string_equal(heading, table.s);
    }
    hwnas_str_done(&table);
    free(page);
}

/* Every precision, and what becomes of recurrent layers. */
static void in_all_precisions(void **state)
{
    static const hwnas_precision precisions[] = {HWNAS_F32, HWNAS_TF32, HWNAS_BF16, HWNAS_S8};
    (void)state;
    hwnas_device *device = open_dry("h200");
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        check_space(device, "mnist_cnn", 1, precisions[i]);
        check_space(device, "lstm_text_generation", 1, precisions[i]);
    }
}

static void too_large_a_model_is_told(void **state)
{
    (void)state;
    hwnas_device *device = open_dry("l4");
    hwnas_cuda_device *cuda = (hwnas_cuda_device *)device;
    hwnas_space *space;
    hwnas_graph *graph;
    hwnas_exec *exec = NULL;
    assert_int_equal(hwnas_graph_load_space(&space, "mnist_mlp"), HWNAS_OK);
    hwnas_arch *arch = hwnas_arch_new(space);
    assert_int_equal(hwnas_graph_build(&graph, arch, 64), HWNAS_OK);
    cuda->gpu.memory_bytes = (size_t)513 << 20; /* CUDA's own share is 512 */
    assert_int_equal(hwnas_device_compile(&exec, device, graph, NULL), HWNAS_E_MEMORY);
    assert_non_null(strstr(hwnas_last_error()->message, "NVIDIA L4 has 513"));
    assert_non_null(strstr(hwnas_last_error()->message, "weights 3"));
    cuda->gpu.memory_bytes = (size_t)600 << 20;
    assert_int_equal(hwnas_device_compile(&exec, device, graph, NULL), HWNAS_OK);
    assert_int_equal(exec->ops->run(exec, NULL, NULL), HWNAS_E_UNSUPPORTED);
    assert_non_null(strstr(hwnas_last_error()->message, "would run"));
    hwnas_exec_free(exec);
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

/* Which GPU, must be said; `hwnas devices` opens it without. */
static void no_gpu_is_named(void **state)
{
    hwnas_space *space;
    hwnas_graph *graph;
    hwnas_exec *exec = NULL;
    (void)state;
    hwnas_device *device = open_dry("");
    assert_int_equal(hwnas_graph_load_space(&space, "mnist_mlp"), HWNAS_OK);
    hwnas_arch *arch = hwnas_arch_new(space);
    assert_int_equal(hwnas_graph_build(&graph, arch, 1), HWNAS_OK);
    assert_int_equal(hwnas_device_compile(&exec, device, graph, NULL), HWNAS_E_INPUT);
    hwnas_graph_free(graph);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

/* A convolution whose kernel is compiled, in one size. */
static const hwnas_cudnn_plan *swish(hwnas_device *device, int channels, int pixels)
{
    char attrs[32], dims[32];
    const op_case convolution = {"conv", attrs, dims, 0};
    const hwnas_cudnn_plan *plan = NULL;
    hwnas_cudnn_net *net;
    int swished;
    snprintf(attrs, sizeof attrs, "out=%d kernel=3 pad=1", channels);
    snprintf(dims, sizeof dims, "1x64x%dx%d", pixels, pixels);
    hwnas_graph *graph = graph_of(&convolution);
    const int output = graph->outputs[0];
    graph->n_outputs = 0;
    ok(hwnas_graph_add_node(&swished, graph, hwnas_op_by_name("hard_swish"), "swish", NULL, 1,
                            &output, true));
    hwnas_graph_add_output(graph, swished);
    ok(hwnas_cudnn_net_new(&net, (hwnas_cuda_device *)device, graph, HWNAS_F16, compile_engines));
    for (size_t i = 0; i < net->n_steps; i++)
        if (net->steps[i].kind == &hwnas_cudnn_engine)
            plan = ((hwnas_cudnn_operation *)net->steps[i].state)->plan;
    hwnas_cudnn_net_free(net);
    hwnas_graph_free(graph);
    assert_non_null(plan);
    return plan;
}

/* cuDNN takes graphs whose sizes may change, with the engines that it takes otherwise, and compiles
 * one kernel for several sizes. */
static void quick_plans(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(gpus); i++) {
        char *quick = hwnas_printf("%s:quick", gpus[i]);
        hwnas_device *device = open_dry(gpus[i]);
        const int64_t engine = swish(device, 128, 28)->engine;
        close_dry(NULL);
        device = open_dry(quick);
        const hwnas_cudnn_plan *first = swish(device, 128, 28), *second = swish(device, 96, 14);
        assert_true(first != second && first->behavior & second->behavior &
                                           1U << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
        assert_int_equal(first->engine, engine);
        assert_int_equal(second->engine, engine);
        assert_int_equal(hwnas_cudnn_caches_count(((hwnas_cuda_device *)device)->caches), 1);
        check_space(device, "mnist_cnn", 1, HWNAS_F16);
        close_dry(NULL);
        free(quick);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(on_h200, close_dry),
        cmocka_unit_test_teardown(on_a100, close_dry),
        cmocka_unit_test_teardown(on_l4, close_dry),
        cmocka_unit_test_teardown(operators_are_as_the_page_says, close_dry),
        cmocka_unit_test_teardown(in_all_precisions, close_dry),
        cmocka_unit_test_teardown(quick_plans, close_dry),
        cmocka_unit_test_teardown(too_large_a_model_is_told, close_dry),
        cmocka_unit_test_teardown(no_gpu_is_named, close_dry),
    };
    setenv("HWNAS_PLANS", "", 1); /* each run makes its own */
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
