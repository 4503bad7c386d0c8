/* test_nvrtc.c: NVRTC compiles our kernels for the GPUs that are described, on a machine without
 * one. Each kernel is taken as one of the cases uses it, in another type of storage for each
 * architecture. What they compute is test_kernels.c's to say. */
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
        cmocka_unit_test(what_cannot_be_compiled_is_said),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
