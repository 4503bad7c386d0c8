/* evaluate_verify.c: whether what was measured of a candidate is to be believed: its result on a
 * device against a reference, and what computed it. */
#include <string.h>

#include "study/evaluator.h"

const char *hwnas_evaluator_unverifiable(const hwnas_evaluator *e, int device)
{
    const hwnas_site *s = &e->sites[device];
    if (s->memory)
        return "it remembers published numbers and runs nothing";
    if (s->is_told)
        return "another program runs it";
    if (!strcmp(s->row->spelling, "ref"))
        return "it is the reference itself";
    return s->info.computes ? NULL : "it computes nothing";
}

hwnas_precision hwnas_evaluate_precision(const hwnas_evaluator *e, const hwnas_candidate *c,
                                         int device)
{
    return hwnas_evaluate_floats(e, c, device);
}

hwnas_status hwnas_evaluate_verify(hwnas_verified *out, hwnas_evaluator *e,
                                   const hwnas_candidate *c, int device, double ref_seconds)
{
    hwnas_status status;
    hwnas_graph *own = NULL;
    const hwnas_graph *graph;
    hwnas_measure_options options = hwnas_evaluate_options(e, c, device, e->options.max_seconds);
    TRY_OUT(hwnas_evaluate_graph(&graph, &own, &options.exec.precision, e, c, device));
    TRY_OUT(
        hwnas_evaluator_use_runner(e, device, threads_at(&e->sites[device], c->settings.threads)));
    status = hwnas_runner_verify(out, e->runner, graph, ref_seconds, &options);
out:
    hwnas_graph_free(own);
    return status;
}

hwnas_status hwnas_evaluate_slow_code(hwnas_slow_code *out, hwnas_arena *arena, hwnas_evaluator *e,
                                      const hwnas_candidate *c, int device)
{
    hwnas_status status;
    hwnas_graph *own = NULL;
    const hwnas_graph *graph;
    hwnas_measure_options options = hwnas_evaluate_options(e, c, device, e->options.max_seconds);
    TRY_OUT(hwnas_evaluate_graph(&graph, &own, &options.exec.precision, e, c, device));
    TRY_OUT(
        hwnas_evaluator_use_runner(e, device, threads_at(&e->sites[device], c->settings.threads)));
    status = hwnas_slow_code_find(out, arena, e->runner, e->sites[device].row->spelling, graph,
                                  &options);
out:
    hwnas_graph_free(own);
    return status;
}
