/* How near one more token of a language model comes to what the memory allows: SmolLM-135M after
 * 128 tokens, one thread. A token and a plain read of as many bytes as it needs at least (weights,
 * scales and what it has of the tokens before) take turns, so that whoever shares the memory slows
 * both down.
 * usage: benchmarks/decode [--quick] */
#include <stdlib.h>
#include <string.h>

#include "benchmarks/figure.h"
#include "benchmarks/model.h"
#include "device/onednn/simd.h"
#include "graph/pack_weights.h"
#include "profile/model_load.h"

enum { TURNS = 41, QUICK_TURNS = 7, GOAL = 87 /* 1 / 1.15 */ };

static const struct way {
    hwnas_precision precision;
    int bits;
} ways[] = {{HWNAS_W8, 8}, {HWNAS_W4, 4}, {HWNAS_F32, 32}};

static void ok(hwnas_status status)
{
    if (status == HWNAS_OK)
        return;
    fprintf(stderr, "decode: %s\n", hwnas_last_error()->message);
    exit(2);
}

/* Weights, a scale for each group of them where they are packed, and inputs. */
static size_t least_bytes(const hwnas_graph *graph, int bits)
{
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    const size_t n = (size_t)costs.params;
    size_t bytes = n * (size_t)bits / 8;
    if (bits < 32)
        bytes += n / HWNAS_PACKED_GROUP * sizeof(float);
    for (size_t i = 0; i < graph->n_inputs; i++)
        bytes += (size_t)hwnas_tensor_bytes(&graph->tensors[graph->inputs[i]]);
    return bytes;
}

/* As fast as one core reads: nothing else is done with it. */
HWNAS_CLONES static float read_all(const float *values, size_t n)
{
    enum { CHAINS = 4 };
    hwnas_half sums[CHAINS] = {{0}};
    const size_t step = (size_t)CHAINS * HWNAS_HALF_LANES;
    for (size_t i = 0; i + step <= n; i += step)
        for (int k = 0; k < CHAINS; k++)
            sums[k] += *(const hwnas_half *)(values + i + (size_t)k * HWNAS_HALF_LANES);
    sums[0] += sums[1] + sums[2] + sums[3];
    return sums[0][0] + sums[0][HWNAS_HALF_LANES - 1];
}

/* The median of what a plain read takes of the time of a token. */
static void take_turns(const struct way *way, const model *m, const hwnas_graph *graph, int n_turns)
{
    const size_t bytes = least_bytes(graph, way->bits);
    float *block = aligned_alloc(64, (bytes + 63) / 64 * 64);
    double *shares = calloc(3 * (size_t)n_turns, sizeof *shares);
    double *tokens = shares + n_turns, *reads = tokens + n_turns;
    volatile float sink;
    memset(block, 0, bytes);
    for (int i = -1; i < n_turns; i++) { /* one to warm up */
        const double begin = worker_now();
        ok(model_run(m));
        const double middle = worker_now();
        sink = read_all(block, bytes / sizeof *block);
        const double end = worker_now();
        if (i < 0)
            continue;
        tokens[i] = middle - begin;
        reads[i] = end - middle;
        shares[i] = 100 * reads[i] / tokens[i];
    }
    (void)sink;
    for (int k = 0; k < 3; k++)
        qsort(shares + k * n_turns, (size_t)n_turns, sizeof *shares, worker_by_size);
    const int half = n_turns / 2, quarter = n_turns / 4;
    const char *name = hwnas_precision_name(way->precision);
    printf("%s: a token %.2f ms, a plain read of %.1f MB %.2f ms (%.1f GB/s): %.0f %%, half of the "
           "turns between %.0f and %.0f\n",
           name, 1e3 * tokens[half], 1e-6 * (double)bytes, 1e3 * reads[half],
           1e-9 * (double)bytes / reads[half], shares[half], shares[quarter],
           shares[n_turns - 1 - quarter]);
    char figure[32];
    snprintf(figure, sizeof figure, "decode_%s_of_bandwidth", name);
    print_figure(figure, shares[half], "%", GOAL);
    free(shares);
    free(block);
}

int main(int argc, char **argv)
{
    const bool is_quick = argc > 1 && !strcmp(argv[1], "--quick");
    const hwnas_device_options with = {.threads = 1};
    hwnas_device *device;
    hwnas_graph *graph;
    ok(hwnas_model_load(&graph, "smollm_135m:phase=decode", NULL, 1, NULL));
    ok(hwnas_device_open(&device, "cpu", &with));
    for (size_t i = 0; i < (is_quick ? 1 : sizeof ways / sizeof *ways); i++) {
        const hwnas_exec_options options = {.precision = ways[i].precision};
        hwnas_graph *form;
        model m = {0};
        ok(hwnas_exec_form(&form, graph, &options));
        ok(hwnas_device_compile(&m.exec, device, form, &options));
        model_take_buffers(&m, graph);
        take_turns(&ways[i], &m, graph, is_quick ? QUICK_TURNS : TURNS);
        model_free(&m);
        hwnas_graph_free(form);
    }
    hwnas_device_close(device);
    hwnas_graph_free(graph);
    return 0;
}
