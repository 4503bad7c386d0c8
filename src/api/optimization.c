#include "api/optimization.h"

#include <math.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/limits_kept.h"
#include "api/near_best.h"
#include "base/log.h"

/* Of one network: its median, all intervals together. */
typedef struct timing {
    double value, low, high;
    int n;
} timing;

static hwnas_status measure(const hwnas_optimization *o, timing *to, hwnas_precision precision,
                            const hwnas_graph *graph, const char *name)
{
    hwnas_status status = HWNAS_OK;
    hwnas_result *result = NULL;
    hwnas_network *network = NULL;
    hwnas_measurer *measurer = NULL;
    hwnas_graph *copy;
    hwnas_measurer_options options = HWNAS_MEASURER_OPTIONS_INIT;
    options.device = o->options.device;
    options.threads = o->options.threads;
    options.cancel = o->options.cancel;
    options.precision = precision;
    TRY_OUT(hwnas_measurer_open(&measurer, &options));
    TRY_OUT(hwnas_graph_copy(&copy, graph));
    network = hwnas_api_network_of(name, copy, o->options.batch);
    TRY_OUT(hwnas_measurer_measure(&result, measurer, network));
    const hwnas_metric_value *p50 = hwnas_result_find(result, "latency.p50");
    if (p50) {
        to->low = to->n ? fmin(to->low, p50->low) : p50->low;
        to->high = to->n ? fmax(to->high, p50->high) : p50->high;
        to->value = (to->value * to->n + p50->value) / (to->n + 1);
        to->n++;
    }
out:
    hwnas_result_free(result);
    hwnas_network_close(network);
    hwnas_measurer_close(measurer);
    return status;
}

hwnas_status hwnas_optimization_time(hwnas_optimization *o, const hwnas_graph *best)
{
    enum { N_ROUNDS = 3 };
    hwnas_status status = HWNAS_OK;
    hwnas_optimized *found = o->found;
    hwnas_graph *model = NULL;
    timing of_model = {0}, of_best = {0};
    TRY_OUT(hwnas_graph_build_trained(&model, o->first, o->options.batch));
    for (int round = 0; round < N_ROUNDS; round++) {
        TRY_OUT(measure(o, &of_model, HWNAS_F32, model, "the model"));
        if (best)
            TRY_OUT(measure(o, &of_best, found->best.precision, best, "the optimized model"));
    }
    found->original.latency = (hwnas_estimate_95){of_model.value, of_model.low, of_model.high};
    if (best)
        found->best.latency = (hwnas_estimate_95){of_best.value, of_best.low, of_best.high};
out:
    hwnas_graph_free(model);
    return status;
}

void hwnas_optimization_costs(hwnas_costs *out, const hwnas_optimization *o,
                              const hwnas_graph *graph)
{
    hwnas_graph_costs(out, graph);
    out->macs /= o->options.batch;
}

hwnas_status hwnas_optimization_take(hwnas_optimization *o, int64_t number)
{
    hwnas_network *network;
    TRY(hwnas_network_open_trial(&network, o->study_path, number, NULL));
    hwnas_arch_free(o->best);
    o->best = NULL;
    const hwnas_status status = hwnas_arch_parse(&o->best, o->space, hwnas_network_code(network));
    o->found->best.precision = network->measured;
    hwnas_network_close(network);
    return status;
}

/* It beside the model, now. */
static hwnas_status compare(hwnas_optimization *o)
{
    hwnas_graph *graph;
    TRY(hwnas_samples_build(&graph, o->samples, o->best, o->options.batch));
    const hwnas_status status = hwnas_optimization_time(o, graph);
    hwnas_optimization_costs(&o->found->best.costs, o, graph);
    hwnas_graph_free(graph);
    return status;
}

static void note_excess(int64_t number, double excess)
{
    hwnas_log(HWNAS_LOG_NOTE,
              "trial %lld kept the limit on its latency in the search, but is %.2g %% over it now, "
              "measured in turns with the model: it is left out",
              (long long)number, 100 * excess);
}

/* The best of those whose latency was `most` at most, measured anew. *median: what it was in the
 * search; NaN: there is none. */
static hwnas_status try_below(double *median, hwnas_optimization *o, double most)
{
    hwnas_front_row *front = NULL;
    size_t n = 0, i = 0;
    *median = NAN;
    hwnas_status status = hwnas_front_below(&front, &n, o->study_path, most);
    if (status == HWNAS_OK && n)
        status = hwnas_near_best(&i, o, front, n);
    if (status == HWNAS_OK && n) {
        o->taken = front[i];
        *median = front[i].median;
        status = compare(o);
    }
    free(front);
    return status;
}

hwnas_status hwnas_optimization_choose(hwnas_optimization *o)
{
    enum { MOST_TRIES = 4 };
    const char *limits = o->is_resumed ? NULL : o->options.constraints;
    double most = INFINITY, median, excess;
    TRY(hwnas_optimization_take(o, -1)); /* or why there is none */
    for (int i = 0; i < MOST_TRIES; i++) {
        TRY(try_below(&median, o, most));
        if (isnan(median))
            break;
        TRY(hwnas_limit_excess(&excess, limits, o->found));
        if (!(excess > 0))
            return HWNAS_OK;
        note_excess(o->taken.number, excess);
        most = median / (1 + excess);
    }
    return hwnas_hint(hwnas_fail(HWNAS_E_INFEASIBLE, NULL,
                                 "no network of %s keeps the limit on its latency when it is "
                                 "measured again, in turns with the model",
                                 o->study_path),
                      "--resume with more --minutes goes on with it");
}

/* The network is judged as it will be written, with a batch of 1; the search ran it in larger ones.
 * What the study says of it must hold for the file. */
static hwnas_status check_score(const hwnas_optimization *o)
{
    const double written = o->found->best.searched.value, searched = o->taken.accuracy.value;
    const double a_sample = 100. / (double)hwnas_samples_count(o->samples, HWNAS_SAMPLES_SEARCH);
    if (!(fabs(written - searched) > fmax(0.5, 3 * a_sample)))
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_WRONG_RESULT, NULL,
                                 "trial %lld of %s has an accuracy of %.2f %% in the study, and "
                                 "%.2f %% as it would be written, on the same samples",
                                 (long long)o->taken.number, o->study_path, searched, written),
                      "a study of an older version may have other weights: --overwrite begins "
                      "anew; otherwise this is a defect of hwnas");
}

hwnas_status hwnas_optimization_score(hwnas_optimization *o)
{
    hwnas_status status = HWNAS_OK;
    hwnas_optimized_row *best = &o->found->best;
    hwnas_graph *graph;
    o->found->code = hwnas_arch_code(o->best);
    o->found->n_test = hwnas_samples_count(o->samples, HWNAS_SAMPLES_TEST);
    TRY(hwnas_samples_build(&graph, o->samples, o->best, 1));
    TRY_OUT(hwnas_samples_judge(&best->searched, NULL, o->samples, graph, best->precision,
                                HWNAS_SAMPLES_SEARCH));
    TRY_OUT(check_score(o));
    TRY_OUT(hwnas_samples_judge(&best->tested, NULL, o->samples, graph, best->precision,
                                HWNAS_SAMPLES_TEST));
    status = hwnas_samples_score(&o->found->original.tested, o->samples, o->first, HWNAS_F32,
                                 HWNAS_SAMPLES_TEST);
out:
    hwnas_graph_free(graph);
    return status;
}
