/* roofline.c: the graphs that show what a device can do at most.
 *
 * On two cores of a Xeon with AVX-512 products of 256 and 512 reached 97 % and 90 % of what
 * multiply-adds in registers do, those of 1024 and 2048 84 % and 86 %; sums of arrays had the
 * bandwidth of a plain triad, in memory and, without the call, in the second cache. */
#include "measure/roofline.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_number.h"
#include "base/str.h"
#include "graph/op.h"
#include "measure/cores.h"
#include "measure/roofline_cache.h"

/* Of the matrices, as far as a product takes less than LONG_SECONDS: a core has its best rate by
 * then, and many cores or a GPU need larger ones. */
static const int SIDES[] = {256, 384, 512, 1024, 2048, 4096, 8192};
static const double LONG_SECONDS = 1.5e-3;
/* What takes so long in all, but for compiling, is no device for larger ones. */
static const double PATIENCE = 1;
/* Bytes of the three arrays together; the last is made larger where the last cache asks for it. */
static const double SIZES[HWNAS_N_BANDWIDTHS] = {96e3, 384e3, 1536e3, 6144e3, 24576e3, 384e6};

enum { SUM_ROW = 1000, CALL_VALUES = 16 };

static const double ROUGH_SECONDS = 0.02; /* for each graph, where a factor of two is good enough */

/* A graph of one operator: its first input is the network's, the second too or a weight. */
static hwnas_status make_graph(hwnas_graph **out, const char *op, bool has_weight, int64_t rows,
                               int64_t columns)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = hwnas_graph_new(op, 1);
    const int64_t dims[] = {rows, columns};
    int inputs[2], output;
    TRY_OUT(hwnas_graph_add_input(&inputs[0], graph, "a", HWNAS_FLOAT32, 2, dims));
    if (has_weight)
        TRY_OUT(
            hwnas_graph_add_weight(&inputs[1], graph, "b", 2, dims, HWNAS_INIT_FAN_FIRST, true));
    else
        TRY_OUT(hwnas_graph_add_input(&inputs[1], graph, "b", HWNAS_FLOAT32, 2, dims));
    TRY_OUT(hwnas_graph_add_node(&output, graph, hwnas_op_by_name(op), op, NULL, 2, inputs, false));
    hwnas_graph_add_output(graph, output);
    *out = graph;
    graph = NULL;
out:
    hwnas_graph_free(graph);
    return status;
}

/* Work a second, without what the call cost: at most nine tenths of it. */
static double rate_of(double work, double seconds, double call)
{
    return work / fmax(seconds - call, seconds / 10);
}

/* One roofline while it is measured. */
typedef struct task {
    hwnas_roofline *out;
    hwnas_runner *runner;
    const hwnas_device_info *info;
    hwnas_measure_options options;
    double compile_seconds; /* of all its graphs so far */
} task;

/* The graph is taken. A roofline that was disturbed in one part is doubted, and believed for a
 * short while: other attempts at its other parts would change nothing. */
static hwnas_status measure(hwnas_measurement *out, task *t, hwnas_graph *graph)
{
    if (t->out->is_unstable)
        t->options.max_attempts = 1;
    const hwnas_status status = hwnas_runner_measure(out, t->runner, graph, &t->options);
    hwnas_graph_free(graph);
    TRY(status);
    t->compile_seconds += out->compile_seconds;
    t->out->is_unstable |= out->is_unstable;
    return HWNAS_OK;
}

/* `work` of something in a run of the graph, which is taken, makes a rate. */
static hwnas_status measure_rate(hwnas_rate *out, task *t, hwnas_graph *graph, double work)
{
    hwnas_measurement m;
    TRY(measure(&m, t, graph));
    const double call = t->out->call_seconds;
    *out = (hwnas_rate){rate_of(work, m.p50, call), rate_of(work, m.p50_high, call),
                        rate_of(work, m.p50_low, call)};
    return HWNAS_OK;
}

/* Bytes of the device's memory, and of its last cache. */
static double memory_of(const hwnas_device_info *info)
{
    return info->memory_bytes > 0 ? info->memory_bytes
                                  : (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

static double cache_of(const hwnas_device_info *info)
{
    return info->memory_bytes > 0 ? info->cache_bytes : hwnas_cores_last_cache();
}

/* The best of the first `n` sides, as far as they make sense for the device. */
static hwnas_status measure_flops(task *t, size_t n)
{
    double seconds = 0, spent = 0;
    for (size_t i = 0; i < n && seconds < LONG_SECONDS && spent < PATIENCE; i++) {
        const double work = 2 * pow(SIDES[i], 3);
        hwnas_graph *graph = NULL;
        hwnas_rate rate;
        if (3 * sizeof(float) * pow(SIDES[i], 2) > memory_of(t->info) / 8)
            break;
        TRY(make_graph(&graph, "matmul", true, SIDES[i], SIDES[i]));
        const double begin = hwnas_now() - t->compile_seconds;
        TRY(measure_rate(&rate, t, graph, work));
        spent = hwnas_now() - t->compile_seconds - begin;
        if (rate.p50 > t->out->flops.p50)
            t->out->flops = rate;
        seconds = work / rate.p50;
    }
    return HWNAS_OK;
}

/* A sum of so few values that only the call is left. Its fastest run counts: the call is taken off
 * what work took, and one that was held up would make the machine faster than it is. */
static hwnas_status measure_call(task *t)
{
    hwnas_graph *graph = NULL;
    hwnas_measurement m;
    TRY(make_graph(&graph, "add", false, 1, CALL_VALUES));
    TRY(measure(&m, t, graph));
    t->out->call_seconds = m.min;
    return HWNAS_OK;
}

/* All three arrays of the memory's test; at most a quarter of the memory that there is. STREAM asks
 * for four times the last cache each; together they are as slow, and soon filled where a virtual
 * machine is told of all its host's cache: beside 300 MiB of it 1.3 GB were read and written with
 * 18.2 and 34.0 GB/s (one and two threads, medians of three), 3.8 GB with 18.9 and 33.2. */
static double memory_test_bytes(const hwnas_device_info *info, double cache)
{
    const double least =
        info->memory_bytes > 0 ? 2 * SIZES[HWNAS_N_BANDWIDTHS - 2] : SIZES[HWNAS_N_BANDWIDTHS - 1];
    return fmin(fmax(least, 4 * cache), memory_of(info) / 4);
}

/* Of the i-th size, with three arrays of so many bytes together. */
static hwnas_status measure_bandwidth(task *t, int i, double wanted)
{
    const int64_t rows = (int64_t)(wanted / 3 / sizeof(float) / SUM_ROW);
    const double bytes = 3.0 * sizeof(float) * SUM_ROW * (double)rows;
    hwnas_graph *graph = NULL;
    TRY(make_graph(&graph, "add", false, rows, SUM_ROW));
    t->out->bandwidths[i].bytes = bytes;
    return measure_rate(&t->out->bandwidths[i].rate, t, graph, bytes);
}

static hwnas_status measure_bandwidths(task *t)
{
    enum { MEMORY = HWNAS_N_BANDWIDTHS - 1 };
    t->options.exec.precision = HWNAS_F32;
    TRY(measure_call(t));
    t->out->cache_bytes = cache_of(t->info);
    for (int i = 0; i < MEMORY; i++)
        TRY(measure_bandwidth(t, i, SIZES[i]));
    t->options.max_seconds *= 4;
    const hwnas_status status =
        measure_bandwidth(t, MEMORY, memory_test_bytes(t->info, t->out->cache_bytes));
    t->options.max_seconds /= 4;
    return status;
}

const hwnas_rate *hwnas_roofline_memory(const hwnas_roofline *roofline)
{
    return &roofline->bandwidths[HWNAS_N_BANDWIDTHS - 1].rate;
}

/* Between two sizes by the logarithm of both. What is smaller is no slower: where it was measured
 * so, the call itself was what took the time. */
double hwnas_roofline_bandwidth(const hwnas_roofline *roofline, double bytes)
{
    double best = hwnas_roofline_memory(roofline)->p50;
    for (int i = HWNAS_N_BANDWIDTHS - 2; i >= 0; i--) {
        const double size = roofline->bandwidths[i].bytes, next = roofline->bandwidths[i + 1].bytes;
        const double here = fmax(best, roofline->bandwidths[i].rate.p50);
        if (bytes >= next)
            return best;
        if (bytes > size)
            return best * pow(here / best, log(next / bytes) / log(next / size));
        best = here;
    }
    return best;
}

/* Bandwidths are those of fp32 in every precision: a byte is a byte. */
static hwnas_status measure_all(hwnas_roofline *out, hwnas_runner *runner, const char *device,
                                const hwnas_device_info *info, hwnas_precision precision,
                                const hwnas_measure_options *options)
{
    hwnas_roofline roofline = {0};
    task t = {.out = &roofline, .runner = runner, .info = info, .options = HWNAS_MEASURE_DEFAULTS};
    t.options.max_seconds = 0.2;
    t.options.min_samples = 10;
    t.options.stop = options->stop;
    t.options.progress = options->progress;
    t.options.context = options->context;
    if (precision == HWNAS_F32)
        TRY(measure_bandwidths(&t));
    else
        TRY(hwnas_roofline_get(&roofline, runner, device, HWNAS_F32, false, options));
    roofline.precision = precision;
    roofline.threads = info->threads;
    roofline.flops = (hwnas_rate){0};
    t.options.exec.precision = precision;
    TRY(measure_flops(&t, sizeof SIDES / sizeof *SIDES));
    *out = roofline;
    return HWNAS_OK;
}

static hwnas_status measure_roughly(hwnas_roofline *out, hwnas_runner *runner,
                                    const hwnas_device_info *info, hwnas_precision precision,
                                    const hwnas_measure_options *options)
{
    hwnas_roofline roofline = {.precision = precision, .threads = info->threads};
    task t = {.out = &roofline, .runner = runner, .info = info, .options = HWNAS_MEASURE_DEFAULTS};
    t.options.max_seconds = ROUGH_SECONDS;
    t.options.min_samples = 1;
    t.options.max_attempts = 1;
    t.options.priority = options->priority;
    t.options.stop = options->stop;
    TRY(measure_call(&t));
    roofline.cache_bytes = cache_of(info);
    for (int i = 0; i < HWNAS_N_BANDWIDTHS; i++)
        if (i < HWNAS_N_BANDWIDTHS - 1)
            TRY(measure_bandwidth(&t, i, SIZES[i]));
        else
            roofline.bandwidths[i] = roofline.bandwidths[i - 1];
    roofline.bandwidths[HWNAS_N_BANDWIDTHS - 1].bytes = SIZES[HWNAS_N_BANDWIDTHS - 1];
    t.options.exec.precision = precision;
    TRY(measure_flops(&t, 1));
    *out = roofline;
    return HWNAS_OK;
}

hwnas_status hwnas_roofline_rough(hwnas_roofline *out, hwnas_runner *runner, const char *device,
                                  hwnas_precision precision, const hwnas_measure_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_device_info info;
    if (hwnas_precision_weight_bits(precision))
        precision = HWNAS_F32; /* in which it computes */
    TRY(hwnas_runner_describe(&info, runner));
    char *key = hwnas_roofline_key(device, &info, precision);
    char *rough_key = hwnas_printf("%s; rough", key);
    if (!hwnas_roofline_lookup(out, key) && !hwnas_roofline_lookup(out, rough_key)) {
        TRY_OUT(measure_roughly(out, runner, &info, precision, options));
        hwnas_roofline_keep(out, rough_key);
    }
out:
    free(rough_key);
    free(key);
    return status;
}

hwnas_status hwnas_roofline_get(hwnas_roofline *out, hwnas_runner *runner, const char *device,
                                hwnas_precision precision, bool refresh,
                                const hwnas_measure_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_device_info info;
    if (hwnas_precision_weight_bits(precision))
        precision = HWNAS_F32; /* in which it computes */
    TRY(hwnas_runner_describe(&info, runner));
    char *key = hwnas_roofline_key(device, &info, precision);
    if (refresh || !hwnas_roofline_lookup(out, key)) {
        TRY_OUT(measure_all(out, runner, device, &info, precision, options));
        hwnas_roofline_keep(out, key);
    }
out:
    free(key);
    return status;
}

json_t *hwnas_roofline_json(const hwnas_roofline *r)
{
    json_t *bandwidths = json_array();
    for (int i = 0; i < HWNAS_N_BANDWIDTHS; i++) {
        const hwnas_rate *rate = &r->bandwidths[i].rate;
        json_array_append_new(bandwidths,
                              json_pack("{s:f, s:f, s:f, s:f}", "bytes", r->bandwidths[i].bytes,
                                        "bytes_per_second", rate->p50, "low", rate->low, "high",
                                        rate->high));
    }
    json_t *out = json_pack(
        "{s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:o, s:b}", "precision",
        hwnas_precision_name(r->precision), "threads", r->threads, "flops_per_second", r->flops.p50,
        "flops_low", r->flops.low, "flops_high", r->flops.high, "call_seconds", r->call_seconds,
        "cache_bytes", r->cache_bytes, "bandwidths", bandwidths, "unstable", r->is_unstable);
    if (r->s8_flops.p50 > 0)
        json_object_set_new(out, "s8_flops_per_second", json_real(r->s8_flops.p50));
    if (r->bf16_flops.p50 > 0)
        json_object_set_new(out, "bf16_flops_per_second", json_real(r->bf16_flops.p50));
    return out;
}

/* 0: it is not there. */
static hwnas_rate rate_in(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    return json_is_number(value) ? (hwnas_rate){json_number_value(value), NAN, NAN}
                                 : (hwnas_rate){0};
}

void hwnas_roofline_of_json(hwnas_roofline *out, const json_t *json)
{
    const json_t *list = json_object_get(json, "bandwidths");
    const json_t *memory = json_array_get(list, json_array_size(list) - 1);
    *out = (hwnas_roofline){.s8_flops = rate_in(json, "s8_flops_per_second"),
                            .bf16_flops = rate_in(json, "bf16_flops_per_second"),
                            .flops = {.p50 = hwnas_json_number(json, "flops_per_second"),
                                      .low = hwnas_json_number(json, "flops_low"),
                                      .high = hwnas_json_number(json, "flops_high")},
                            .is_unstable = json_is_true(json_object_get(json, "unstable"))};
    out->bandwidths[HWNAS_N_BANDWIDTHS - 1].bytes = hwnas_json_number(memory, "bytes");
    out->bandwidths[HWNAS_N_BANDWIDTHS - 1].rate =
        (hwnas_rate){.p50 = hwnas_json_number(memory, "bytes_per_second"),
                     .low = hwnas_json_number(memory, "low"),
                     .high = hwnas_json_number(memory, "high")};
}
