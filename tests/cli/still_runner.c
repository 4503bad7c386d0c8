/* still_runner.c: `hwnas runner` on a machine where nothing else ever runs, for tests of what the
 * search makes of clean measurements: with HWNAS_RUNNER it takes the place of the program itself.
 *
 * It has a machine and a device `null` of its own, which the linker finds before the library's.
 * Time passes only in an inference: a millisecond, give or take one percent, whatever the
 * network; with STILL_BY_SIZE for each operator of the network. With STILL_GROWS each inference
 * takes 0.1 % more than the one before. With STILL_SHARED somebody else is on the core all the
 * time. With STILL_BY_NETWORK what is measured of a network is a function of the network alone: it
 * has a pace of its own, up to 10 % off, chance begins anew with each, and one in 16 cannot be
 * compiled.
 *
 * With STILL_NOISE=RUN,LEVEL,LENGTH,BURSTS it is a machine with a known truth that is not as still:
 * two runs of a network lie apart by a standard deviation of RUN; all networks become slower and
 * faster together by one of LEVEL, which is forgotten after LENGTH compiled networks (an
 * Ornstein-Uhlenbeck process); and with a share of BURSTS somebody else comes to the core for a
 * while, which makes it two fifths slower. Chance is another one in each of its runs. STILL_SEED
 * draws it, and STILL_CLOCK names a file that counts the compiled networks over all runners. With
 * STILL_SLOW=FIRST,LAST,FACTOR those of that count, from 1 on, take FACTOR times as long.
 *
 * With STILL_COUNTS_OWN time passes while the runner itself computes, and only then, for devices
 * that compute: whatever else runs, each measurement is taken once, and of that nothing is in it.
 * It is a number: so many times as much passes, and a measurement is over that much sooner.
 *
 * With STILL_COMPUTES the device computes as well, as `ref` does, so that its results are verified;
 * with STILL_WRONG=DIGEST[,DIGEST...] the results of networks whose folded graphs have these
 * digests are wrong, and with STILL_WRONG=all those of each. STILL_LOG names a file that gets the
 * digest of each network that is computed: once when it is measured, and once when it is verified.
 * STILL_MACHINE is the machine that it says to be on. STILL_WAITS=SECONDS lets that much real time
 * pass for each network, between lines "+MACHINE" and "-MACHINE" in the file that STILL_SPANS
 * names. MORTAL_CLOCK names a file that gets five bytes, seconds, for each network that is
 * compiled. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/host.h"
#include "base/rng.h"
#include "device/devices.h"
#include "graph/rewrite.h"
#include "measure/far.h"
#include "measure/machine.h"

static double clock_seconds = 1000;

/* In steps that make every difference between two times exact, whatever the time. */
static double pass(double seconds)
{
    return clock_seconds += ldexp(rint(ldexp(seconds, 38)), -38);
}

/* ---- The device ---- */

typedef struct still_exec {
    hwnas_exec base;
    double seconds;
    hwnas_rng *rng, own;
    hwnas_graph *graph; /* to be computed in the first run; NULL: nothing is */
    bool is_wrong;
} still_exec;

static bool computes(void)
{
    return getenv("STILL_COMPUTES") != NULL;
}

/* The list has the digest, or "all". */
static bool is_listed(const char *list, const char *digest)
{
    while (list && *list) {
        const size_t n = strcspn(list, ",");
        if (n && (!strncmp(list, digest, n) || !strncmp(list, "all", n)))
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

static hwnas_status still_open(hwnas_device **out, const char *argument,
                               const hwnas_device_options *options)
{
    (void)options;
    TRY(hwnas_device_takes_no_argument("null", argument));
    *out = hwnas_alloc(sizeof **out);
    return HWNAS_OK;
}

static void still_describe(const hwnas_device *device, hwnas_device_info *out)
{
    (void)device;
    *out = (hwnas_device_info){
        .name = "a still machine", .threads = 1, .native = ~0U, .computes = computes()};
}

static void still_close(hwnas_device *device)
{
    free(device);
}

/* ---- Noise ---- */

static struct {
    bool is_on;
    double run, level, length, bursts;
    double burst_end; /* by the clock */
} noise;

/* Box and Muller. */
static double normal(hwnas_rng *rng)
{
    const double radius = sqrt(-2 * log(1 - hwnas_rng_double(rng)));
    return radius * cos(2 * M_PI * hwnas_rng_double(rng));
}

/* How many networks were compiled before, by all runners. */
static long tick(void)
{
    FILE *file = getenv("STILL_CLOCK") ? fopen(getenv("STILL_CLOCK"), "a") : NULL;
    if (!file)
        return 0;
    fputs(".", file);
    const long n = ftell(file);
    fclose(file);
    return n;
}

/* By how much a network is slower that is compiled now; with noise, chance is another one in each
 * of its runs. */
static double draw_noise(hwnas_rng *chance)
{
    const char *text = getenv("STILL_NOISE"), *seed = getenv("STILL_SEED");
    noise.is_on = text && sscanf(text, "%lf,%lf,%lf,%lf", &noise.run, &noise.level, &noise.length,
                                 &noise.bursts) == 4;
    if (!noise.is_on)
        return 1;
    const uint64_t number = strtoull(seed ? seed : "0", NULL, 10);
    const long now = tick();
    *chance = hwnas_rng_new(number, UINT64_C(0x6368616e6365) + (uint64_t)now); /* "chance" */
    hwnas_rng levels = hwnas_rng_new(number, 2), own = hwnas_rng_new(number, 3 + (uint64_t)now);
    const double memory = exp(-1 / noise.length);
    double level = normal(&levels);
    for (long i = 0; i < now; i++)
        level = memory * level + sqrt(1 - memory * memory) * normal(&levels);
    /* One in four lasts longer than any measurement does. */
    noise.burst_end = clock_seconds;
    if (hwnas_rng_double(&own) < noise.bursts)
        noise.burst_end += hwnas_rng_double(&own) < 0.25 ? 30 : 0.4;
    return exp(noise.level * level + noise.run * normal(&own));
}

static double slowness(void)
{
    const char *text = getenv("STILL_SLOW");
    long first, last;
    double factor;
    if (!text || sscanf(text, "%ld,%ld,%lf", &first, &last, &factor) != 3)
        return 1;
    const long now = tick();
    return first <= now && now <= last ? factor : 1;
}

static bool is_in_burst(void)
{
    return noise.is_on && clock_seconds < noise.burst_end;
}

/* What measuring a network takes, to the clock of the search (mortal.c): five seconds. */
static void spend(void)
{
    FILE *file = getenv("MORTAL_CLOCK") ? fopen(getenv("MORTAL_CLOCK"), "a") : NULL;
    if (file) {
        fputs("mmmmm", file);
        fclose(file);
    }
}

static void tell_span(char sign)
{
    FILE *file = getenv("STILL_SPANS") ? fopen(getenv("STILL_SPANS"), "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%c%s\n", sign, getenv("STILL_MACHINE"));
    fclose(file);
}

static void wait_a_while(void)
{
    const char *seconds = getenv("STILL_WAITS");
    const double all = seconds ? atof(seconds) : 0;
    const struct timespec nap = {.tv_sec = (time_t)all, .tv_nsec = (long)(1e9 * fmod(all, 1))};
    if (!(all > 0))
        return;
    tell_span('+');
    nanosleep(&nap, NULL);
    tell_span('-');
}

static hwnas_status still_compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                                  const hwnas_exec_options *options)
{
    (void)options;
    static hwnas_rng rng;
    static bool is_seeded;
    const hwnas_digest digest = hwnas_graph_digest(graph);
    const unsigned long long number = strtoull(digest.hex + 20, NULL, 16); /* 48 bits of it */
    const bool is_by_network = getenv("STILL_BY_NETWORK") != NULL;
    if (is_by_network && number % 16 == 0)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the still machine cannot do this network");
    if (!is_seeded)
        rng = hwnas_rng_new(2026, 1);
    is_seeded = true;
    still_exec *exec = hwnas_alloc(sizeof *exec);
    exec->base.ops = device->ops;
    exec->seconds = getenv("STILL_BY_SIZE") ? 1e-3 * (double)graph->n_nodes : 1e-3;
    exec->own = hwnas_rng_new(number, 1);
    exec->rng = is_by_network ? &exec->own : &rng;
    exec->seconds *= is_by_network ? 0.9 + 0.2 * hwnas_rng_double(&exec->own) : 1;
    if (computes())
        TRY(hwnas_graph_copy(&exec->graph, graph));
    exec->seconds *= draw_noise(exec->rng) * slowness();
    exec->is_wrong = is_listed(getenv("STILL_WRONG"), digest.hex);
    spend();
    wait_a_while();
    *out = &exec->base;
    return HWNAS_OK;
}

/* One result of the graph, which is folded, by `ref`. */
static hwnas_status compute(const still_exec *exec, const float *const *inputs,
                            float *const *outputs)
{
    hwnas_status status;
    const hwnas_device_options options = {.threads = 1};
    hwnas_device *ref = NULL;
    hwnas_exec *right = NULL;
    TRY_OUT(hwnas_device_open(&ref, "ref", &options));
    TRY_OUT(hwnas_device_compile(&right, ref, exec->graph, NULL));
    TRY_OUT(ref->ops->run(right, inputs, outputs));
    if (exec->is_wrong)
        outputs[0][1] += 10;
    FILE *log = getenv("STILL_LOG") ? fopen(getenv("STILL_LOG"), "a") : NULL;
    if (log) {
        fprintf(log, "%s\n", hwnas_graph_digest(exec->graph).hex);
        fclose(log);
    }
out:
    hwnas_exec_free(right);
    hwnas_device_close(ref);
    return status;
}

static hwnas_status still_run(hwnas_exec *base, const float *const *inputs, float *const *outputs)
{
    static double slowness = 1;
    still_exec *exec = (still_exec *)base;
    pass((is_in_burst() ? 1.4 : 1) * slowness * exec->seconds *
         (0.99 + 0.02 * hwnas_rng_double(exec->rng)));
    slowness *= getenv("STILL_GROWS") ? 1.001 : 1;
    if (exec->graph)
        TRY(compute(exec, inputs, outputs));
    hwnas_graph_free(exec->graph);
    exec->graph = NULL;
    return HWNAS_OK;
}

static void still_free_exec(hwnas_exec *base)
{
    hwnas_graph_free(((still_exec *)base)->graph);
    free(base);
}

const hwnas_device_ops hwnas_null_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "null",
    .help = "an inference takes a millisecond",
    .open = still_open,
    .describe = still_describe,
    .close = still_close,
    .precisions = ~0U,
    .compile = still_compile,
    .run = still_run,
    .free_exec = still_free_exec,
};

/* ---- The machine ---- */

static void do_nothing(hwnas_machine *machine)
{
    (void)machine;
}

static double still_now(hwnas_machine *machine)
{
    (void)machine;
    const char *counts_own = getenv("STILL_COUNTS_OWN");
    struct timespec own;
    if (!counts_own || !*counts_own)
        return pass(20e-9);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    return atof(counts_own) * ((double)own.tv_sec + 1e-9 * (double)own.tv_nsec);
}

static unsigned long no_preemptions(hwnas_machine *machine)
{
    (void)machine;
    return 0;
}

static double no_seconds(hwnas_machine *machine)
{
    (void)machine;
    return 0;
}

static double no_joules(hwnas_machine *machine)
{
    (void)machine;
    return NAN;
}

static double same_reference(hwnas_machine *machine)
{
    (void)machine;
    return 1e-4;
}

static bool is_shared_where_asked(hwnas_machine *machine, double *hertz)
{
    (void)machine;
    *hertz = 3e9;
    return is_in_burst() || getenv("STILL_SHARED") != NULL;
}

static hwnas_conditions no_conditions(hwnas_machine *machine)
{
    (void)machine;
    return (hwnas_conditions){0};
}

static void still_pause(hwnas_machine *machine, double seconds)
{
    (void)machine;
    pass(seconds);
}

static bool stays(hwnas_machine *machine)
{
    (void)machine;
    return false;
}

static double no_cpu_time(hwnas_machine *machine)
{
    (void)machine;
    return NAN;
}

static hwnas_status needs_no_priority(hwnas_machine *machine, const hwnas_measure_options *options)
{
    (void)machine;
    (void)options;
    return HWNAS_OK;
}

static bool is_ordinary(hwnas_machine *machine)
{
    (void)machine;
    return false;
}

hwnas_machine *hwnas_machine_open(void)
{
    static hwnas_machine still = {.watch = do_nothing,
                                  .now = still_now,
                                  .preemptions = no_preemptions,
                                  .waited = no_seconds,
                                  .stolen = no_seconds,
                                  .cpu_time = no_cpu_time,
                                  .joules = no_joules,
                                  .reference = same_reference,
                                  .is_shared = is_shared_where_asked,
                                  .conditions = no_conditions,
                                  .pause = still_pause,
                                  .take_priority = needs_no_priority,
                                  .is_realtime = is_ordinary,
                                  .settle = stays};
    return &still;
}

void hwnas_machine_close(hwnas_machine *machine)
{
    (void)machine;
}

void hwnas_host_id(char out[HWNAS_HOST_ID])
{
    const char *machine = getenv("STILL_MACHINE");
    snprintf(out, HWNAS_HOST_ID, "%.16s", machine && *machine ? machine : "still");
}

/* Of the members of an archive the linker takes both of these or none. */
void hwnas_host_id_of(char out[HWNAS_HOST_ID], const char *machine_id, const char *name)
{
    snprintf(out, HWNAS_HOST_ID, "%.8s%.8s", machine_id, name);
}

/* As `runner serve` it is the runner of a search on another machine. */
int main(int argc, char **argv)
{
    const bool is_far = argc > 2 && !strcmp(argv[2], "serve");
    return (is_far ? hwnas_far_serve("null") : hwnas_runner_serve()) == HWNAS_OK ? 0 : 1;
}
