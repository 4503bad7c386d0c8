/* buffers.c: inputs and outputs of a run. */
#include "measure/buffers.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

/* Random values: between -1 and 1, or whole numbers that the graph can look up. */
static void fill_input(float *values, const hwnas_graph *graph, int input, hwnas_rng *rng)
{
    const int64_t below = hwnas_graph_input_below(graph, input);
    for (int64_t i = 0, n = hwnas_tensor_count(&graph->tensors[input]); i < n; i++) {
        const double uniform = hwnas_rng_double(rng);
        values[i] = (float)(below ? floor(uniform * (double)below) : 2 * uniform - 1);
    }
}

/* Takes a buffer as large as the tensor. */
static hwnas_status take(float **out, const hwnas_graph *graph, int tensor, const char *what)
{
    void *buffer;
    TRY(hwnas_try_alloc(&buffer, (size_t)hwnas_tensor_bytes(&graph->tensors[tensor]), what));
    *out = buffer;
    return HWNAS_OK;
}

hwnas_status hwnas_buffers_open(hwnas_buffers *out, const hwnas_graph *graph)
{
    hwnas_buffers *b = out;
    hwnas_rng rng = hwnas_rng_new(graph->seed, 0x696e70757473); /* the stream "inputs" */
    *b = (hwnas_buffers){.inputs = hwnas_alloc(graph->n_inputs * sizeof *b->inputs),
                         .outputs = hwnas_alloc(graph->n_outputs * sizeof *b->outputs)};
    for (; b->n_inputs < graph->n_inputs; b->n_inputs++) {
        const int input = graph->inputs[b->n_inputs];
        TRY(take(&b->inputs[b->n_inputs], graph, input, "the network's input"));
        fill_input(b->inputs[b->n_inputs], graph, input, &rng);
    }
    for (; b->n_outputs < graph->n_outputs; b->n_outputs++)
        TRY(take(&b->outputs[b->n_outputs], graph, graph->outputs[b->n_outputs],
                 "the network's output"));
    return HWNAS_OK;
}

void hwnas_buffers_done(hwnas_buffers *buffers)
{
    for (size_t i = 0; i < buffers->n_inputs; i++)
        free(buffers->inputs[i]);
    for (size_t i = 0; i < buffers->n_outputs; i++)
        free(buffers->outputs[i]);
    free(buffers->inputs);
    free(buffers->outputs);
}
