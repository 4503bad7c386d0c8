/* model.h: a compiled network with inputs that are filled and room for its outputs. */
#ifndef HWNAS_BENCHMARKS_MODEL_H
#define HWNAS_BENCHMARKS_MODEL_H

#include "benchmarks/engine_worker.h"
#include "device/device.h"

typedef struct model {
    hwnas_exec *exec;
    size_t n_inputs, n_outputs;
    float **inputs, **outputs;
} model;

/* Those of the graph that it was compiled of. */
static inline void model_take_buffers(model *m, const hwnas_graph *graph)
{
    m->n_inputs = graph->n_inputs;
    m->n_outputs = graph->n_outputs;
    m->inputs = calloc(graph->n_inputs, sizeof *m->inputs);
    m->outputs = calloc(graph->n_outputs, sizeof *m->outputs);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const hwnas_tensor *tensor = &graph->tensors[graph->inputs[i]];
        const size_t n = (size_t)hwnas_tensor_count(tensor);
        m->inputs[i] = malloc(n * sizeof **m->inputs);
        worker_fill(m->inputs[i], n, hwnas_dtype_is_whole(tensor->dtype));
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        m->outputs[i] = malloc((size_t)hwnas_tensor_bytes(&graph->tensors[graph->outputs[i]]));
}

static inline hwnas_status model_run(const model *m)
{
    return m->exec->ops->run(m->exec, (const float *const *)m->inputs, m->outputs);
}

static inline void model_free(model *m)
{
    for (size_t i = 0; i < m->n_inputs; i++)
        free(m->inputs[i]);
    for (size_t i = 0; i < m->n_outputs; i++)
        free(m->outputs[i]);
    free(m->inputs);
    free(m->outputs);
    hwnas_exec_free(m->exec);
}

#endif
