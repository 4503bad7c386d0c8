#include "precision/layer_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/rewrite.h"

/* Numbers of those of the `n` nodes that a step has; returns how many. */
static size_t layers_of(size_t *out, const hwnas_step_time *step, const hwnas_graph *folded,
                        const hwnas_graph *named, const int *nodes, size_t n)
{
    size_t n_found = 0;
    for (size_t k = 0; k < step->n_nodes; k++)
        for (size_t i = 0; i < n; i++)
            if (!strcmp(folded->nodes[step->nodes[k]].name, named->nodes[nodes[i]].name))
                out[n_found++] = i;
    return n_found;
}

static hwnas_status share(double *out, const hwnas_step_times *times, const hwnas_graph *graph,
                          const hwnas_graph *named, const int *nodes, size_t n)
{
    hwnas_graph *folded;
    TRY(hwnas_graph_fold(&folded, graph)); /* as the runner did, whose steps have its numbers */
    size_t *found = hwnas_alloc((folded->n_nodes + 1) * sizeof *found);
    for (size_t s = 0; s < times->n; s++) {
        const size_t n_found = layers_of(found, &times->steps[s], folded, named, nodes, n);
        for (size_t i = 0; i < n_found; i++)
            out[found[i]] = times->steps[s].time.p50 / (double)n_found;
    }
    free(found);
    hwnas_graph_free(folded);
    return HWNAS_OK;
}

hwnas_status hwnas_layer_times(double *out, hwnas_runner *runner, const hwnas_graph *graph,
                               const hwnas_graph *named, const int *nodes, size_t n,
                               const hwnas_measure_options *options)
{
    hwnas_measurement whole;
    hwnas_step_times times = {0};
    for (size_t i = 0; i < n; i++)
        out[i] = NAN;
    hwnas_status status = hwnas_runner_measure_steps(&whole, &times, runner, graph, options);
    if (status == HWNAS_OK)
        status = share(out, &times, graph, named, nodes, n);
    hwnas_step_times_done(&times);
    return status;
}
