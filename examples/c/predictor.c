/* predictor.c: a kind of predictor `size:WEIGHT`: the logarithm of the parameters, times a weight.
 * Larger networks of a family are mostly more accurate; it only ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <hwnas/graph.h>

#include "parts.h"

typedef struct size_model {
    hwnas_predictor base;
    double weight;
} size_model;

static hwnas_status size_open(hwnas_predictor **out, const char *rest, const hwnas_space *space)
{
    char *end;
    const double weight = *rest ? strtod(rest, &end) : 1;
    if (*rest && (*end || !(weight > 0)))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "'%.40s' is not a weight", rest),
                          "write size:1.5");
    size_model *model = calloc(1, sizeof *model);
    if (!model)
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for a predictor");
    model->weight = weight;
    model->base.ops = &size_predictor;
    model->base.space = space;
    model->base.kind = "size";
    model->base.target = strdup("log_params");
    model->base.unit = strdup("");
    *out = &model->base;
    return HWNAS_OK;
}

static hwnas_status size_score(hwnas_estimate *out, hwnas_predictor *predictor,
                               const hwnas_arch *const *archs, size_t n)
{
    const size_model *model = (const size_model *)predictor;
    for (size_t i = 0; i < n; i++) {
        hwnas_graph *graph;
        hwnas_costs costs;
        const hwnas_status status = hwnas_graph_build(&graph, archs[i], 1);
        if (status != HWNAS_OK)
            return status;
        hwnas_graph_costs(&costs, graph);
        hwnas_graph_free(graph);
        out[i] = (hwnas_estimate){.mean = model->weight * log((double)costs.params), .sd = NAN};
    }
    return HWNAS_OK;
}

static void size_free(hwnas_predictor *predictor)
{
    free(predictor);
}

const hwnas_predictor_ops size_predictor = {
    .abi = HWNAS_PREDICTOR_ABI,
    .name = "size",
    .ranks_only = true,
    .open = size_open,
    .score = size_score,
    .free = size_free,
};
