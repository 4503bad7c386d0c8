/* How many networks of a search are compiled for a GPU in a minute, from nothing: random networks
 * of two spaces, for a described GPU, nothing runs. Time is that of a core, so other work on the
 * machine does not count. Without cuDNN: nothing to measure. usage: benchmarks/compile_speed
 * [--quick] [--networks N] [--static] [--gpu NAME] [SPACE]...
 * --quick: 12 networks of each space; --static: plans as they are without :quick, for comparison.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/str.h"
#include "benchmarks/figure.h"
#include "device/cudnn/cuda_device.h"
#include "graph/elaborate.h"
#include "graph/rewrite.h"

enum { GOAL = 30, SEED = 1, MOST_SPACES = 16 }; /* networks a minute */

/* Seconds that this process had a core. */
static double core_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(hwnas_status status)
{
    if (status == HWNAS_OK)
        return;
    fprintf(stderr, "%s\n", hwnas_last_error()->message);
    exit(2);
}

static void compile(hwnas_device *device, const hwnas_arch *arch)
{
    const hwnas_exec_options options = {.precision = HWNAS_F16};
    hwnas_graph *raw, *graph;
    hwnas_exec *exec;
    must(hwnas_graph_build(&raw, arch, 1));
    must(hwnas_graph_fold(&graph, raw));
    must(hwnas_device_compile(&exec, device, graph, &options));
    hwnas_exec_free(exec);
    hwnas_graph_free(graph);
    hwnas_graph_free(raw);
}

static void measure(const char *name, const char *spelling, int n)
{
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *device;
    hwnas_space *space;
    hwnas_rng rng = hwnas_rng_new(SEED, 0);
    must(hwnas_graph_load_space(&space, name));
    hwnas_arch *arch = hwnas_arch_new(space);
    const double begin = hwnas_now(), core_begin = core_seconds();
    must(hwnas_cuda_dry_ops.open(&device, spelling, &options));
    device->ops = &hwnas_cuda_dry_ops;
    for (int i = 0; i < n; i++) {
        if (!hwnas_arch_sample(arch, &rng))
            must(hwnas_space_none_found(space));
        compile(device, arch);
    }
    const double core = core_seconds() - core_begin;
    printf("%s for cuda-dry:%s: %d networks, %.1f s of a core, %.1f s by the clock\n", name,
           spelling, n, core, hwnas_now() - begin);
    char *figure = hwnas_printf("compile_speed_%s", name);
    print_figure(figure, 60 * n / core, "networks/min", GOAL);
    free(figure);
    hwnas_device_close(device);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

int main(int argc, char **argv)
{
    const char *spaces[MOST_SPACES] = {"accel_nasbench", "ofa_mobilenet_v3"}, *gpu = "h200";
    int n_networks = 200, n_given = 0;
    bool is_static = false;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            n_networks = 12;
        else if (!strcmp(argv[i], "--static"))
            is_static = true;
        else if (!strcmp(argv[i], "--networks") && i + 1 < argc)
            n_networks = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--gpu") && i + 1 < argc)
            gpu = argv[++i];
        else if (n_given < MOST_SPACES)
            spaces[n_given++] = argv[i];
    setenv("HWNAS_PLANS", "", 1); /* nothing of earlier runs */
    char *spelling = hwnas_printf("%s%s", gpu, is_static ? "" : ":quick");
    for (int i = 0; i < (n_given ? n_given : 2); i++)
        measure(spaces[i], spelling, n_networks);
    free(spelling);
    return 0;
}
