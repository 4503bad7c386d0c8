/* engine_ours.c: the device `cpu` as a worker of `engine`: engine_ours MODEL.onnx THREADS
 * PRECISION. With a fourth argument `steps` it prints the time of each step of a run instead;
 * `engine_ours overhead` prints the microseconds of a step that does next to nothing. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "benchmarks/model.h"
#include "graph/op.h"
#include "graph/rewrite.h"
#include "onnx/onnx.h"

static void ok(hwnas_status status)
{
    if (status == HWNAS_OK)
        return;
    fprintf(stderr, "engine_ours: %s\n", hwnas_last_error()->message);
    exit(1);
}

static void run(void *context)
{
    ok(model_run(context));
}

/* The least of some runs for each step. */
static void print_steps(const model *m, const hwnas_graph *graph)
{
    const hwnas_exec_step *steps;
    const size_t n = m->exec->ops->steps(m->exec, &steps);
    double *seconds = calloc(2 * n, sizeof *seconds), *least = seconds + n, sum = 0;
    for (int round = 0; round < 30; round++) {
        ok(m->exec->ops->run_steps(m->exec, (const float *const *)m->inputs, m->outputs, seconds));
        for (size_t i = 0; i < n; i++)
            least[i] = !round || seconds[i] < least[i] ? seconds[i] : least[i];
    }
    for (size_t i = 0; i < n; sum += least[i++]) {
        printf("%9.1f us  %-12s", least[i] * 1e6, steps[i].how);
        for (size_t k = 0; k < steps[i].n_nodes; k++)
            printf(" %s", graph->nodes[steps[i].nodes[k]].op->name);
        const hwnas_node *last =
            steps[i].n_nodes ? &graph->nodes[steps[i].nodes[steps[i].n_nodes - 1]] : NULL;
        printf(" -> %s (%s)\n", last ? hwnas_tensor_shape(hwnas_node_output(graph, last)).s : "",
               last ? last->name : "between types or layouts");
    }
    printf("%9.1f us in %zu steps\n", sum * 1e6, n);
    free(seconds);
}

/* What else to say: the inputs as engine_torch.py wants them, and how many steps a run has. Yours
 * to free(). */
static char *describe(const model *m, const hwnas_graph *graph, double compile, long before)
{
    const hwnas_exec_step *steps;
    hwnas_costs costs;
    hwnas_str text = {0};
    hwnas_graph_costs(&costs, graph);
    hwnas_str_addf(&text,
                   "\"compile_s\": %.9f, \"rss_before_kib\": %ld, \"steps\": %zu, "
                   "\"held_bytes\": %zu, \"peak_bytes\": %lld, \"inputs\": [",
                   compile, before, m->exec->ops->steps(m->exec, &steps),
                   m->exec->ops->memory(m->exec), (long long)costs.peak_bytes);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const hwnas_tensor *tensor = &graph->tensors[graph->inputs[i]];
        hwnas_str_addf(&text, "%s\"%s%s\"", i ? ", " : "",
                       hwnas_dtype_is_whole(tensor->dtype) ? "i" : "",
                       hwnas_tensor_shape(tensor).s);
    }
    hwnas_str_add(&text, "]");
    return text.s;
}

/* A chain of `n` functions of one value, of 16 numbers. */
static double time_chain(hwnas_device *device, int n)
{
    const int64_t dims[] = {1, 16};
    enum { RUNS = 2000 };
    double seconds[RUNS];
    hwnas_graph *graph = hwnas_graph_new("chain", 1);
    model m = {0};
    int tensor;
    ok(hwnas_graph_add_input(&tensor, graph, "x", HWNAS_FLOAT32, 2, dims));
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "step_%d", i);
        ok(hwnas_graph_add_node(&tensor, graph, hwnas_op_by_name("relu"), name, NULL, 1, &tensor,
                                false));
    }
    hwnas_graph_add_output(graph, tensor);
    ok(hwnas_device_compile(&m.exec, device, graph, NULL));
    model_take_buffers(&m, graph);
    for (int i = 0; i < RUNS; i++) {
        const double start = worker_now();
        run(&m);
        seconds[i] = worker_now() - start;
    }
    qsort(seconds, RUNS, sizeof *seconds, worker_by_size);
    hwnas_exec_free(m.exec);
    hwnas_graph_free(graph);
    return seconds[RUNS / 2];
}

/* What each further step of a run costs, its bit of computation included. */
static int print_overhead(void)
{
    const hwnas_device_options with = {.threads = 1};
    hwnas_device *device;
    ok(hwnas_device_open(&device, "cpu", &with));
    const double one = time_chain(device, 1), many = time_chain(device, 101);
    printf("%.3f\n", (many - one) / 100 * 1e6);
    hwnas_device_close(device);
    return 0;
}

int main(int argc, char **argv)
{
    hwnas_device *device;
    hwnas_device_info about;
    hwnas_graph *read, *graph;
    hwnas_exec_options options = {0};
    model m = {0};
    if (argc == 2 && !strcmp(argv[1], "overhead"))
        return print_overhead();
    if (argc < 4) {
        fprintf(stderr, "usage: engine_ours MODEL.onnx THREADS PRECISION [steps]\n");
        return 2;
    }
    const hwnas_device_options with = {.threads = atoi(argv[2])};
    ok(hwnas_precision_find(&options.precision, argv[3]));
    double start = worker_now();
    ok(hwnas_device_open(&device, "cpu", &with));
    const long before = worker_resident();
    ok(hwnas_onnx_load(&read, argv[1], NULL));
    const double load = worker_now() - start;
    start = worker_now();
    ok(hwnas_graph_fold(&graph, read));
    ok(hwnas_device_compile(&m.exec, device, graph, &options));
    const double compile = worker_now() - start;
    hwnas_graph_free(read);
    model_take_buffers(&m, graph);
    device->ops->describe(device, &about);
    if (argc > 4) {
        print_steps(&m, graph);
    } else {
        char *more = describe(&m, graph, compile, before);
        hwnas_graph_free(graph);
        graph = NULL;
        malloc_trim(0); /* what the file took, so that what stays can be seen */
        worker_serve(run, &m, load + compile, about.library, more);
        free(more);
    }
    hwnas_exec_free(m.exec);
    hwnas_graph_free(graph);
    hwnas_device_close(device);
    return 0;
}
