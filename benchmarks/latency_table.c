/* How well the table of latencies estimates networks that were never run: after some minutes of
 * `hwnas calibrate` on two cores, random networks are estimated and then measured; and how many
 * networks can be drawn, built, cut and estimated in a second on one core.
 *
 * The machine may be faster or slower from one second to the next. So the truth takes turns, run by
 * run, with a reference network: the ratio of the two medians, times the median of the reference
 * over the whole session. What the plain median would say is printed beside it.
 *
 * usage: latency_table [--quick] [--minutes X] [--networks N] [--threads N] SPACE...
 * The table is the cache of hwnas, $XDG_CACHE_HOME: calibration may be done in pieces, and
 * --minutes 0 goes straight to the estimates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stats.h"
#include "benchmarks/figure.h"
#include "graph/elaborate.h"
#include "measure/buffers.h"
#include "study/calibrate.h"

enum { MOST = 2000, MOST_RUNS = 400 };

typedef struct plan {
    double minutes, seconds_each;
    int n_networks, threads;
} plan;

/* A network that was estimated, and how it ran. */
typedef struct result {
    hwnas_latency_estimate e;
    double p50, reference; /* seconds, of it and of the reference beside it */
} result;

/* An executable with its buffers. */
typedef struct loaded {
    hwnas_graph *graph;
    hwnas_exec *exec;
    hwnas_buffers buffers;
} loaded;

static void must(hwnas_status status)
{
    if (status == HWNAS_OK)
        return;
    fprintf(stderr, "%s\n", hwnas_last_error()->message);
    exit(2);
}

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void load(loaded *out, hwnas_device *device, const hwnas_graph *raw)
{
    must(hwnas_graph_fold(&out->graph, raw));
    must(hwnas_device_compile(&out->exec, device, out->graph, NULL));
    must(hwnas_buffers_open(&out->buffers, out->graph));
}

static void unload(loaded *net)
{
    hwnas_buffers_done(&net->buffers);
    hwnas_exec_free(net->exec);
    hwnas_graph_free(net->graph);
}

static double run(loaded *net)
{
    const double start = hwnas_now();
    must(net->exec->ops->run(net->exec, (const float *const *)net->buffers.inputs,
                             net->buffers.outputs));
    return hwnas_now() - start;
}

/* Both take turns; the first fifth of the time is warm-up. */
static void time_both(result *out, loaded *net, loaded *reference, double seconds)
{
    double own[MOST_RUNS], other[MOST_RUNS], start = hwnas_now();
    size_t n = 0;
    while (hwnas_now() - start < seconds / 5) {
        run(net);
        run(reference);
    }
    for (; n < MOST_RUNS && (n < 5 || hwnas_now() - start < seconds); n++) {
        run(net); /* its own caches, not the reference's */
        own[n] = run(net);
        run(reference);
        other[n] = run(reference);
    }
    hwnas_sort(own, n);
    hwnas_sort(other, n);
    out->p50 = hwnas_quantile(own, n, 0.5);
    out->reference = hwnas_quantile(other, n, 0.5);
}

static hwnas_graph *draw(const hwnas_space *space, hwnas_rng *rng)
{
    hwnas_arch *arch = hwnas_arch_new(space);
    hwnas_graph *graph = NULL;
    while (!graph) {
        hwnas_arch_sample(arch, rng);
        if (hwnas_graph_build(&graph, arch, 1) != HWNAS_OK)
            hwnas_error_clear();
    }
    hwnas_arch_free(arch);
    return graph;
}

static size_t judge(result *results, hwnas_latency_table *table, const hwnas_space *space,
                    const plan *p)
{
    const hwnas_device_options options = {.threads = p->threads};
    hwnas_device *device;
    loaded reference, net;
    hwnas_parts parts = {0};
    size_t n = 0;
    hwnas_rng rng = hwnas_rng_new(2026, 1); /* not the stream of the calibration */
    must(hwnas_device_open(&device, "cpu", &options));
    hwnas_graph *graph = draw(space, &rng);
    load(&reference, device, graph);
    hwnas_graph_free(graph);
    for (int i = 0; i < p->n_networks; i++) {
        graph = draw(space, &rng);
        hwnas_graph_cut(&parts, graph);
        if (hwnas_latency_table_estimate(&results[n].e, table, &parts)) {
            load(&net, device, graph);
            time_both(&results[n++], &net, &reference, p->seconds_each);
            unload(&net);
        }
        hwnas_graph_free(graph);
    }
    hwnas_parts_done(&parts);
    unload(&reference);
    hwnas_device_close(device);
    return n;
}

static double median(const result *results, size_t n, double (*of)(const result *))
{
    double values[MOST];
    for (size_t i = 0; i < n; i++)
        values[i] = of(&results[i]);
    hwnas_sort(values, n);
    return hwnas_quantile(values, n, 0.5);
}

static double reference_of(const result *r)
{
    return r->reference;
}

static double share(const result *results, size_t n, double reference, double within)
{
    size_t n_near = 0;
    for (size_t i = 0; i < n; i++) {
        const double level = reference > 0 ? results[i].reference / reference : 1;
        n_near += fabs(results[i].e.seconds * level / results[i].p50 - 1) <= within;
    }
    return 100.0 * (double)n_near / (double)n;
}

static void report(const char *space, const result *results, size_t n)
{
    double errors[MOST], truth[MOST], estimates[MOST];
    char name[128];
    size_t n_inside = 0;
    const double reference = median(results, n, reference_of);
    for (size_t i = 0; i < n; i++) {
        const double seconds = results[i].p50 * reference / results[i].reference;
        truth[i] = seconds;
        estimates[i] = results[i].e.seconds;
        errors[i] = fabs(results[i].e.seconds / seconds - 1);
        n_inside += results[i].e.low <= seconds && seconds <= results[i].e.high;
    }
    const double tau = hwnas_kendall_tau(truth, estimates, n);
    hwnas_sort(errors, n);
    printf("%s: %zu networks: median error %.1f %%, 90 %% of them within %.1f %%, worst %.0f %%; "
           "%.0f %% in the 95 %% interval; tau %.3f\n",
           space, n, 100 * hwnas_quantile(errors, n, 0.5), 100 * hwnas_quantile(errors, n, 0.9),
           100 * errors[n - 1], 100.0 * (double)n_inside / (double)n, tau);
    printf("%s: against plain medians: %.0f %% within 5 %%, %.0f %% within 10 %%\n", space,
           share(results, n, 0, 0.05), share(results, n, 0, 0.1));
    snprintf(name, sizeof name, "latency_table_within_10_%s", space);
    print_figure(name, share(results, n, reference, 0.1), "%", 99);
    snprintf(name, sizeof name, "latency_table_within_5_%s", space);
    print_figure(name, share(results, n, reference, 0.05), "%", 90);
}

/* Drawn, built, cut and estimated, by the time that this thread had a core. */
static void time_estimates(hwnas_latency_table *table, const hwnas_space *space, double seconds)
{
    char name[128];
    hwnas_parts parts = {0};
    hwnas_latency_estimate e;
    hwnas_rng rng = hwnas_rng_new(7, 7);
    const double start = cpu_now();
    size_t n = 0;
    for (; cpu_now() - start < seconds; n++) {
        hwnas_graph *graph = draw(space, &rng);
        hwnas_graph_cut(&parts, graph);
        if (!hwnas_latency_table_estimate(&e, table, &parts))
            break;
        hwnas_graph_free(graph);
    }
    snprintf(name, sizeof name, "latency_table_estimates_%s", space->name);
    print_figure(name, (double)n / (cpu_now() - start), "networks/s", 10000);
    hwnas_parts_done(&parts);
}

static void try_space(const char *name, const plan *p)
{
    hwnas_space *space;
    hwnas_calibration done;
    hwnas_latency_table *table;
    result *results = calloc(MOST, sizeof *results);
    const hwnas_calibrate_options options = {.device = "cpu",
                                             .threads = p->threads,
                                             .batch = 1,
                                             .seconds = 60 * p->minutes,
                                             .seed = (uint64_t)time(NULL)};
    must(hwnas_graph_load_space(&space, name));
    hwnas_latencies *latencies = hwnas_latencies_open(true);
    must(hwnas_calibrate(&done, latencies, space, &options));
    printf("%s: %zu networks measured in %.0f s; the table has %zu networks, %zu parts\n", name,
           done.n_measured, done.seconds, done.table.n_networks, done.table.n_parts);
    must(hwnas_latencies_table(&table, latencies, done.key));
    if (p->n_networks) {
        const size_t n = judge(results, table, space, p);
        if (n)
            report(name, results, n);
        time_estimates(table, space, 2);
    }
    free(results);
    hwnas_latencies_close(latencies);
    hwnas_space_free(space);
    fflush(stdout);
}

/* OpenMP reads its settings when the program starts. */
static void set_threads(char **argv, int threads)
{
    char text[16];
    if (getenv("OMP_PROC_BIND"))
        return;
    snprintf(text, sizeof text, "%d", threads);
    setenv("OMP_NUM_THREADS", text, 1);
    setenv("OMP_PROC_BIND", "close", 1);
    setenv("OMP_WAIT_POLICY", "active", 1);
    setenv("OMP_DYNAMIC", "false", 1);
    execv("/proc/self/exe", argv);
    exit(2);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"nas_bench_201", "ofa_mobilenet_v3", "accel_nasbench"};
    plan p = {.minutes = 5, .seconds_each = 0.3, .n_networks = 300, .threads = 2};
    const char *spaces[16];
    int n = 0;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            p = (plan){
                .minutes = 0.15, .seconds_each = 0.1, .n_networks = 20, .threads = p.threads};
        else if (!strcmp(argv[i], "--minutes") && i + 1 < argc)
            p.minutes = atof(argv[++i]);
        else if (!strcmp(argv[i], "--networks") && i + 1 < argc)
            p.n_networks = atoi(argv[++i]) < MOST ? atoi(argv[i]) : MOST;
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            p.threads = atoi(argv[++i]);
        else if (n < 16)
            spaces[n++] = argv[i];
    set_threads(argv, p.threads);
    for (int i = 0; !n && i < 3; i++)
        spaces[i] = usual[i];
    hwnas_runner_use(getenv("HWNAS") ? getenv("HWNAS") : "./hwnas");
    for (int i = 0; i < (n ? n : 3); i++)
        try_space(spaces[i], &p);
    return 0;
}
