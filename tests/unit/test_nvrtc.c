/* test_nvrtc.c: NVRTC compiles our kernels for the GPUs that are described, on a machine without
 * one. Each kernel is taken as one of the cases uses it, in another type of storage for each
 * architecture. What they compute is test_kernels.c's to say. ptxas' report is read as well: none
 * spills, and each stays within what a block may have. */
#define _GNU_SOURCE 1 /* memmem() */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvrtc.h>

#include "device/cudnn/driver.h"
#include "device/cudnn/kernels.h"
#include "tests/gpu/cases.h"

static const struct {
    int sm, type;
} targets[] = {
    {80, HWNAS_STORED_F16},
    {89, HWNAS_STORED_BF16},
    {90, HWNAS_STORED_F32},
};
enum { N_TARGETS = sizeof targets / sizeof *targets };

/* All that compute the case's nodes. */
static hwnas_launches lower(const hwnas_graph *graph, int type)
{
    hwnas_launches launches = {0};
    hwnas_view *views = hwnas_alloc(graph->n_tensors * sizeof *views);
    for (size_t i = 0; i < graph->n_tensors; i++)
        ok(hwnas_view_nhwc(&views[i], &graph->tensors[i],
                           hwnas_dtype_is_whole(graph->tensors[i].dtype) ? HWNAS_STORED_F32
                                                                         : type));
    for (size_t i = 0; i < graph->n_nodes; i++)
        ok(hwnas_kernels_lower(&launches, graph, &graph->nodes[i], views));
    free(views);
    return launches;
}

static void compile(const hwnas_launch *launch, int sm)
{
    const hwnas_image *image = NULL, *again = NULL;
    char *options = hwnas_launch_options(launch);
    const hwnas_kernel *k = launch->kernel;
    ok(hwnas_image_make(&image, k->name, k->file, options, sm));
    assert_true(image->n_bytes > 500);
    assert_memory_equal(image->bytes, "\177ELF", 4);
    /* The kernel is in it, under the name that it will be asked for. */
    assert_non_null(memmem(image->bytes, image->n_bytes, k->name, strlen(k->name)));
    ok(hwnas_image_make(&again, k->name, k->file, options, sm));
    assert_ptr_equal(image, again);
    free(options);
}

static void every_kernel_for_every_target(void **state)
{
    (void)state;
    bool done[64][N_TARGETS] = {{false}};
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int t = 0; t < N_TARGETS; t++) {
            hwnas_graph *graph = graph_of(&cases[i]);
            hwnas_launches launches = lower(graph, targets[t].type);
            for (size_t k = 0; k < launches.n; k++) {
                bool *is_done = &done[launches.all[k].kernel - hwnas_kernels][t];
                if (!*is_done)
                    compile(&launches.all[k], targets[t].sm);
                *is_done = true;
            }
            hwnas_launches_done(&launches);
            hwnas_graph_free(graph);
        }
    for (int k = 0; hwnas_kernels[k].name; k++)
        if (!done[k][0])
            fail_msg("no case uses '%s'", hwnas_kernels[k].name);
}

/* ---- What ptxas says of them ---- */

typedef struct resources {
    int registers, shared, spilled; /* of a thread; bytes of a block; bytes of a thread */
} resources;

typedef struct nvrtc {
    __typeof__(&nvrtcCreateProgram) create;
    __typeof__(&nvrtcCompileProgram) compile;
    __typeof__(&nvrtcGetProgramLogSize) log_size;
    __typeof__(&nvrtcGetProgramLog) log;
    __typeof__(&nvrtcDestroyProgram) destroy;
} nvrtc;

static const nvrtc *open_nvrtc(void)
{
    static const hwnas_symbol symbols[] = {
        {"nvrtcCreateProgram", offsetof(nvrtc, create)},
        {"nvrtcCompileProgram", offsetof(nvrtc, compile)},
        {"nvrtcGetProgramLogSize", offsetof(nvrtc, log_size)},
        {"nvrtcGetProgramLog", offsetof(nvrtc, log)},
        {"nvrtcDestroyProgram", offsetof(nvrtc, destroy)},
        {NULL, 0},
    };
    static nvrtc api;
    char file[32];
    void *library;
    if (!api.create) {
        ok(hwnas_nvrtc_open(&library, file));
        ok(hwnas_library_symbols(&api, symbols, library, file));
    }
    return &api;
}

static const char *text_of(const char *name)
{
    const hwnas_kernel_source *s = hwnas_kernel_sources;
    while (strcmp(s->name, name))
        s++;
    return s->text;
}

/* The number before (or behind, with `is_after`) the words in ptxas' report; 0 where they are
 * not in it, which is its way to say 0 bytes of shared memory. */
static int number_at(const char *log, const char *words, bool is_after)
{
    const char *at = strstr(log, words);
    if (!at || is_after)
        return at ? atoi(at + strlen(words)) : 0;
    while (at > log && (at[-1] == ' ' || (at[-1] >= '0' && at[-1] <= '9')))
        at--;
    return atoi(at);
}

static resources ask_ptxas(const hwnas_launch *launch, int sm, const char *more)
{
    static const char *const names[] = {"kernel_job.h", "kernel.h", "functions.h"};
    const nvrtc *api = open_nvrtc();
    const char *texts[COUNT(names)], *options[64];
    char architecture[40], *lines = hwnas_launch_options(launch), *rest = lines;
    int n = 0;
    size_t n_log = 0;
    nvrtcProgram program;
    for (size_t i = 0; i < COUNT(names); i++)
        texts[i] = text_of(names[i]);
    snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d", sm);
    options[n++] = architecture;
    options[n++] = "--std=c++17";
    options[n++] = "--ptxas-options=-v";
    if (more)
        options[n++] = more;
    for (char *line; n < 64 && (line = strsep(&rest, "\n"));)
        if (*line)
            options[n++] = line;
    const char *file = launch->kernel->file;
    assert_int_equal(api->create(&program, text_of(file), file, COUNT(names), texts, names), 0);
    assert_int_equal(api->compile(program, n, options), 0);
    assert_int_equal(api->log_size(program, &n_log), 0);
    char *log = hwnas_alloc(n_log + 1);
    assert_int_equal(api->log(program, log), 0);
    api->destroy(&program);
    if (!strstr(log, "spill stores") || !strstr(log, "Used "))
        fail_msg("no report of ptxas: %s", log);
    const resources r = {.registers = number_at(log, "Used ", true),
                         .shared = number_at(log, " bytes smem", false),
                         .spilled = number_at(log, " bytes spill stores", false) +
                                    number_at(log, " bytes spill loads", false)};
    free(lines);
    free(log);
    return r;
}

/* Those that CUDA 13 has and that ours were compiled for. */
static const int architectures[] = {75, 80, 86, 89, 90, 100, 103, 120, 121};
enum {
    MOST_SHARED = 48 << 10,   /* of a block, without asking for more: of all of these */
    MOST_REGISTERS = 1 << 16, /* of a block, likewise (CUDA C++ Programming Guide, table of compute
                                 capabilities) */
};

static void check_resources(const hwnas_launch *launch, int sm)
{
    int n_blocks, n_threads;
    hwnas_launch_shape(&n_blocks, &n_threads, launch);
    const resources r = ask_ptxas(launch, sm, NULL);
    if (r.spilled || r.shared > MOST_SHARED || r.registers <= 0 ||
        r.registers * n_threads > MOST_REGISTERS)
        fail_msg("%s for sm_%d: %d registers, %d bytes shared, %d bytes spilled",
                 launch->kernel->name, sm, r.registers, r.shared, r.spilled);
    if (getenv("HWNAS_SHOW"))
        printf("# %s sm_%d: %d registers, %d bytes shared\n", launch->kernel->name, sm, r.registers,
               r.shared);
}

/* The first case of each kernel, for another architecture each; in long tests for all. */
static void no_kernel_spills(void **state)
{
    (void)state;
    bool done[64] = {false};
    for (size_t i = 0; i < COUNT(cases); i++) {
        hwnas_graph *graph = graph_of(&cases[i]);
        hwnas_launches launches = lower(graph, targets[i % N_TARGETS].type);
        for (size_t k = 0; k < launches.n; k++) {
            const size_t number = (size_t)(launches.all[k].kernel - hwnas_kernels);
            for (size_t a = 0; a < COUNT(architectures) && !done[number]; a++)
                if (getenv("HWNAS_LONG") || a == number % COUNT(architectures))
                    check_resources(&launches.all[k], architectures[a]);
            done[number] = true;
        }
        hwnas_launches_done(&launches);
        hwnas_graph_free(graph);
    }
}

/* Where there are too few registers, ptxas spills (fewer than 20 it does not take); and what the
 * recurrent one shares is known. */
static void what_ptxas_says_is_read(void **state)
{
    (void)state;
    static const op_case product = {"conv", "out=4 kernel=3 groups=2", "1x4x7x7", 0},
                         gates = {"lstm", "out=16", "1x2x3", 0};
    hwnas_graph *graph = graph_of(&product), *recurrent = graph_of(&gates);
    hwnas_launches launches = lower(graph, HWNAS_STORED_F16);
    assert_true(ask_ptxas(&launches.all[0], 90, "--maxrregcount=20").spilled > 0);
    hwnas_launches_done(&launches);
    hwnas_graph_free(graph);
    launches = lower(recurrent, HWNAS_STORED_F32);
    for (size_t k = 0; k < launches.n; k++)
        if (!strcmp(launches.all[k].kernel->name, "hwnas_recurrent"))
            assert_int_equal(ask_ptxas(&launches.all[k], 90, NULL).shared,
                             3 * HWNAS_RNN_MOST_HIDDEN * (int)sizeof(float));
    hwnas_launches_done(&launches);
    hwnas_graph_free(recurrent);
}

/* For GPUs that this NVRTC does not know there is PTX of the newest that it does. */
static void a_newer_gpu_gets_ptx(void **state)
{
    (void)state;
    static const op_case product = {"layer_norm", "", "2x3x40", 0};
    hwnas_graph *graph = graph_of(&product);
    hwnas_launches launches = lower(graph, HWNAS_STORED_F16);
    const hwnas_kernel *k = launches.all[0].kernel;
    const hwnas_image *image = NULL;
    char *options = hwnas_launch_options(&launches.all[0]);
    ok(hwnas_image_make(&image, k->name, k->file, options, 999));
    const char *text = image->bytes, *target = strstr(text, ".target sm_");
    assert_int_equal(text[image->n_bytes - 1], '\0');
    assert_non_null(target);
    assert_in_range(atoi(target + strlen(".target sm_")), 90, 998);
    char *entry = hwnas_printf(".entry %s(", k->name);
    assert_non_null(strstr(text, entry));
    free(entry);
    free(options);
    hwnas_launches_done(&launches);
    hwnas_graph_free(graph);
}

static void what_cannot_be_compiled_is_said(void **state)
{
    (void)state;
    const hwnas_image *image = NULL;
    assert_int_equal(
        hwnas_image_make(&image, "hwnas_reduce", "lines", "-DWANT_hwnas_reduce=,\n", 90),
        HWNAS_E_LIBRARY);
    assert_non_null(strstr(hwnas_last_error()->message, "hwnas_reduce"));
    assert_non_null(strstr(hwnas_last_error()->message, "JOB_TYPE_0"));
    assert_null(image);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_for_every_target),
        cmocka_unit_test(a_newer_gpu_gets_ptx),
        cmocka_unit_test(what_cannot_be_compiled_is_said),
        cmocka_unit_test(what_ptxas_says_is_read),
        cmocka_unit_test(no_kernel_spills),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
