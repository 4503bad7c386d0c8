#include "tests/unit/device_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "graph/op.h"
#include "tests/unit/attributes.h"

#define TOLERANCE 1e-4

void ok(hwnas_status status)
{
    if (status != HWNAS_OK)
        fail_msg("%s: %s", hwnas_status_name(status), hwnas_last_error()->message);
}

hwnas_device *open_device(const char *spelling, int threads)
{
    const hwnas_device_options options = {.threads = threads};
    hwnas_device *device = NULL;
    ok(hwnas_device_open(&device, spelling, &options));
    return device;
}

int add(hwnas_graph *graph, const char *op_name, const char *attrs_text, int a, int b)
{
    const hwnas_op *op = hwnas_op_by_name(op_name);
    const int inputs[] = {a, b};
    char name[64];
    int out = -1;
    assert_non_null(op);
    hwnas_attr *attrs = attributes(op, attrs_text);
    snprintf(name, sizeof name, "%s_%zu", op_name, graph->n_nodes);
    ok(hwnas_graph_add_node(&out, graph, op, name, attrs, b < 0 ? 1 : 2, inputs, true));
    free(attrs);
    return out;
}

int add_input_of(hwnas_graph *graph, hwnas_dtype dtype, const int64_t *dims)
{
    char name[32];
    int rank = 0, out = -1;
    while (rank < 4 && dims[rank])
        rank++;
    snprintf(name, sizeof name, "input_%zu", graph->n_inputs);
    ok(hwnas_graph_add_input(&out, graph, name, dtype, rank, dims));
    return out;
}

int add_input(hwnas_graph *graph, const int64_t *dims)
{
    return add_input_of(graph, HWNAS_FLOAT32, dims);
}

hwnas_graph *graph_of_op(const op_case *c)
{
    hwnas_graph *graph = hwnas_graph_new(c->op, 5);
    const bool is_table = !strcmp(c->op, "embedding");
    int a = add_input_of(graph, is_table ? HWNAS_INT64 : HWNAS_FLOAT32, c->dims[0]);
    int b = c->dims[1][0] ? add_input(graph, c->dims[1]) : -1;
    hwnas_graph_add_output(graph, add(graph, c->op, c->attrs, a, b));
    return graph;
}

float *random_values(int64_t n, uint64_t stream)
{
    hwnas_rng rng = hwnas_rng_new(20240607, stream);
    float *values = hwnas_alloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)(2 * hwnas_rng_double(&rng) - 1);
    return values;
}

/* Whole numbers where the graph wants them. */
static float *random_input(const hwnas_graph *graph, size_t i, uint64_t stream)
{
    const hwnas_tensor *tensor = &graph->tensors[graph->inputs[i]];
    const int64_t n = hwnas_tensor_count(tensor);
    const int64_t below = hwnas_graph_input_below(graph, graph->inputs[i]);
    float *values = random_values(n, stream);
    for (int64_t k = 0; k < n && tensor->dtype == HWNAS_INT64; k++)
        values[k] = (float)floor((values[k] + 1) / 2 * (double)below * 0.999999);
    return values;
}

int64_t count_outputs(const hwnas_graph *graph)
{
    int64_t n = 0;
    for (size_t i = 0; i < graph->n_outputs; i++)
        n += hwnas_tensor_count(&graph->tensors[graph->outputs[i]]);
    return n;
}

/* As `run`, step by step: every node is in exactly one step, and each step took some time. */
static void run_steps(hwnas_exec *exec, const hwnas_graph *graph, const float *const *inputs,
                      float *const *outputs)
{
    const hwnas_exec_step *steps;
    const size_t n = exec->ops->steps(exec, &steps);
    double *seconds = hwnas_alloc((n + 1) * sizeof *seconds);
    int *seen = hwnas_alloc((graph->n_nodes + 1) * sizeof *seen);
    ok(exec->ops->run_steps(exec, inputs, outputs, seconds));
    for (size_t i = 0; i < n; i++) {
        assert_true(seconds[i] >= 0);
        assert_non_null(steps[i].how);
        for (size_t k = 0; k < steps[i].n_nodes; k++)
            seen[steps[i].nodes[k]]++;
    }
    for (size_t i = 0; i < graph->n_nodes; i++)
        assert_int_equal(seen[i], 1);
    free(seen);
    free(seconds);
}

float *outcome(hwnas_device *device, const hwnas_graph *graph, uint64_t stream)
{
    return outcome_in(HWNAS_F32, device, graph, stream);
}

float *outcome_in(hwnas_precision precision, hwnas_device *device, const hwnas_graph *graph,
                  uint64_t stream)
{
    const hwnas_exec_options options = {.precision = precision};
    const size_t bytes = (size_t)count_outputs(graph) * sizeof(float);
    float **inputs = hwnas_alloc((graph->n_inputs + 1) * sizeof *inputs);
    float **outputs = hwnas_alloc(graph->n_outputs * sizeof *outputs);
    float *result = hwnas_alloc(bytes), *first = hwnas_alloc(bytes), *at = result;
    hwnas_exec *exec = NULL;
    for (size_t i = 0; i < graph->n_inputs; i++)
        inputs[i] = random_input(graph, i, 2 * stream + i);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        outputs[i] = at;
        at += hwnas_tensor_count(&graph->tensors[graph->outputs[i]]);
    }
    ok(hwnas_device_compile(&exec, device, graph, &options));
    /* Twice: the second run must not see what the first left behind. */
    ok(exec->ops->run(exec, (const float *const *)inputs, outputs));
    memcpy(first, result, bytes);
    memset(result, 0xff, bytes);
    run_steps(exec, graph, (const float *const *)inputs, outputs);
    assert_memory_equal(first, result, bytes);
    exec->ops->free_exec(exec);
    for (size_t i = 0; i < graph->n_inputs; i++)
        free(inputs[i]);
    free(first);
    free(outputs);
    free(inputs);
    return result;
}

/* max |a - b| / max |b|, or max |a| where b is zero */
static double relative_error(const float *a, const float *b, int64_t n)
{
    double worst = 0, scale = 0;
    for (int64_t i = 0; i < n; i++) {
        const double error = fabs((double)a[i] - b[i]);
        if (!(error <= worst))
            worst = error; /* NaN as well */
        scale = fmax(scale, fabs((double)b[i]));
    }
    return scale > 0 ? worst / scale : worst;
}

double compare(const char *what, hwnas_device *on, const hwnas_graph *a, hwnas_device *truth,
               const hwnas_graph *b, uint64_t stream)
{
    float *got = outcome(on, a, stream), *wanted = outcome(truth, b, stream);
    const int64_t n = count_outputs(b);
    assert_int_equal(count_outputs(a), n);
    const double error = relative_error(got, wanted, n);
    if (!(error <= TOLERANCE))
        fail_msg("%s: relative error %g", what, error);
    free(got);
    free(wanted);
    return error;
}
