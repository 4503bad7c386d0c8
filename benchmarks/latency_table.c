/* How well the table of latencies estimates networks that were never run: after some minutes of
 * `hwnas calibrate`, random networks are estimated and then measured, as hwnas measures; what is
 * marked unstable is not a truth and is left out, and how many those were is printed. And how many
 * networks can be estimated in a second on one core: such as are at hand (cut and looked up), and
 * candidates that are drawn and built first.
 *
 * usage: latency_table [--quick] [--minutes X] [--networks N] [--threads N] SPACE...
 * The table is the cache of hwnas, $XDG_CACHE_HOME: calibration may be done in pieces, and
 * --minutes 0 goes straight to the estimates. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/stats.h"
#include "benchmarks/figure.h"
#include "graph/elaborate.h"
#include "latency/calibrate.h"

enum { MOST = 2000 };

typedef struct plan {
    double minutes, seconds_each;
    int n_networks, threads;
} plan;

/* A network that was estimated, and how it ran. */
typedef struct result {
    hwnas_latency_estimate e;
    double p50; /* seconds */
} result;

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

/* Estimates networks and measures them; returns how many measurements were steady. */
static size_t judge(result *results, hwnas_latency_table *table, const hwnas_space *space,
                    const plan *p)
{
    const hwnas_measure_options options = {
        .interval = 0.01, .max_seconds = p->seconds_each, .min_samples = 30, .timeout = 60};
    hwnas_runner *runner;
    hwnas_measurement m;
    hwnas_parts parts = {0};
    size_t n = 0;
    hwnas_rng rng = hwnas_rng_new(2026, 1); /* not the stream of the calibration */
    must(hwnas_runner_open(&runner, "cpu", p->threads));
    for (int i = 0; i < p->n_networks; i++) {
        hwnas_graph *graph = draw(space, &rng);
        hwnas_graph_cut(&parts, graph);
        if (hwnas_latency_table_estimate(&results[n].e, table, &parts)) {
            must(hwnas_runner_measure(&m, runner, graph, &options));
            results[n].p50 = m.p50;
            n += !m.is_unstable;
        }
        hwnas_graph_free(graph);
    }
    hwnas_parts_done(&parts);
    hwnas_runner_close(runner);
    return n;
}

static double share(const double *errors, size_t n, double within)
{
    size_t n_near = 0;
    for (size_t i = 0; i < n; i++)
        n_near += errors[i] <= within;
    return 100.0 * (double)n_near / (double)n;
}

/* Of sorted ratios, how many are so near to the middle one. */
static double share_around(const double *ratios, size_t n, double within)
{
    const double middle = hwnas_quantile(ratios, n, 0.5);
    size_t n_near = 0;
    for (size_t i = 0; i < n; i++)
        n_near += fabs(ratios[i] / middle - 1) <= within;
    return 100.0 * (double)n_near / (double)n;
}

static void report(const char *space, const result *results, size_t n)
{
    double errors[MOST] = {0}, ratios[MOST] = {0}, truth[MOST] = {0}, estimates[MOST] = {0};
    char name[128];
    size_t n_inside = 0;
    for (size_t i = 0; i < n; i++) {
        const hwnas_latency_estimate *e = &results[i].e;
        truth[i] = results[i].p50;
        estimates[i] = e->seconds;
        ratios[i] = e->seconds / truth[i];
        errors[i] = fabs(ratios[i] - 1);
        n_inside += e->low <= truth[i] && truth[i] <= e->high;
    }
    const double tau = hwnas_kendall_tau(truth, estimates, n);
    hwnas_sort(errors, n);
    hwnas_sort(ratios, n);
    printf("%s: estimates are %+.1f %% off in the middle; without that %.0f %% are within 5 %%\n",
           space, 100 * (hwnas_quantile(ratios, n, 0.5) - 1), share_around(ratios, n, 0.05));
    printf("%s: median error %.1f %%, 90 %% of them within %.1f %%, worst %.0f %%; %.0f %% in the "
           "95 %% "
           "interval; tau %.3f\n",
           space, 100 * hwnas_quantile(errors, n, 0.5), 100 * hwnas_quantile(errors, n, 0.9),
           100 * errors[n - 1], 100.0 * (double)n_inside / (double)n, tau);
    snprintf(name, sizeof name, "latency_table_within_10_%s", space);
    print_figure(name, share(errors, n, 0.1), "%", 99);
    snprintf(name, sizeof name, "latency_table_within_5_%s", space);
    print_figure(name, share(errors, n, 0.05), "%", 90);
}

/* Estimates of networks that are at hand as graphs: cut and looked up. */
static double estimates_per_second(hwnas_latency_table *table, hwnas_graph **graphs, int n_graphs,
                                   double seconds)
{
    hwnas_parts parts = {0};
    hwnas_latency_estimate e;
    const double start = cpu_now();
    size_t n = 0;
    for (; cpu_now() - start < seconds; n++) {
        hwnas_graph_cut(&parts, graphs[n % (size_t)n_graphs]);
        if (!hwnas_latency_table_estimate(&e, table, &parts))
            break;
    }
    hwnas_parts_done(&parts);
    return (double)n / (cpu_now() - start);
}

/* The same with drawing and building them, as a search does. */
static double candidates_per_second(hwnas_latency_table *table, const hwnas_space *space,
                                    double seconds)
{
    hwnas_parts parts = {0};
    hwnas_latency_estimate e;
    hwnas_rng rng = hwnas_rng_new(7, 7);
    const double start = cpu_now();
    size_t n = 0;
    for (; cpu_now() - start < seconds; n++) {
        hwnas_graph *graph = draw(space, &rng);
        hwnas_graph_cut(&parts, graph);
        const bool is_known = hwnas_latency_table_estimate(&e, table, &parts);
        hwnas_graph_free(graph);
        if (!is_known)
            break;
    }
    hwnas_parts_done(&parts);
    return (double)n / (cpu_now() - start);
}

/* By the time that this thread had a core. */
static void time_estimates(hwnas_latency_table *table, const hwnas_space *space, double seconds)
{
    enum { N = 200 };
    char name[128];
    hwnas_graph *graphs[N];
    hwnas_rng rng = hwnas_rng_new(7, 7);
    for (int i = 0; i < N; i++)
        graphs[i] = draw(space, &rng);
    snprintf(name, sizeof name, "latency_table_estimates_%s", space->name);
    print_figure(name, estimates_per_second(table, graphs, N, seconds), "networks/s", 10000);
    for (int i = 0; i < N; i++)
        hwnas_graph_free(graphs[i]);
    snprintf(name, sizeof name, "latency_table_candidates_%s", space->name);
    print_figure(name, candidates_per_second(table, space, seconds), "networks/s", 10000);
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
        printf("%s: %d networks estimated and measured, %zu of them steadily\n", name,
               p->n_networks, n);
        if (n)
            report(name, results, n);
        time_estimates(table, space, 1);
    }
    free(results);
    hwnas_latencies_close(latencies);
    hwnas_space_free(space);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"nas_bench_201", "ofa_mobilenet_v3", "accel_nasbench"};
    plan p = {.minutes = 5, .seconds_each = 0.5, .n_networks = 300, .threads = 1};
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
    for (int i = 0; !n && i < 3; i++)
        spaces[i] = usual[i];
    hwnas_runner_use(getenv("HWNAS") ? getenv("HWNAS") : "./hwnas");
    for (int i = 0; i < (n ? n : 3); i++)
        try_space(spaces[i], &p);
    return 0;
}
