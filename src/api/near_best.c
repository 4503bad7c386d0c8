#include "api/near_best.h"

#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"

/* So far apart one time in three the other one is the better one. At 1, as in trees, a ViT gave up
 * a point of accuracy for a few percent of its latency. */
#define MOST_ERRORS 0.5

/* How well a network does with each sample. */
typedef struct judged {
    double *each; /* heap */
    double sum;
} judged;

static hwnas_status judge(judged *out, hwnas_optimization *o, int64_t number)
{
    const int64_t n = hwnas_samples_count(o->samples, HWNAS_SAMPLES_SEEN);
    hwnas_estimate_95 accuracy;
    hwnas_graph *graph;
    TRY(hwnas_optimization_take(o, number));
    TRY(hwnas_samples_build(&graph, o->samples, o->best, 1));
    out->each = hwnas_alloc((size_t)n * sizeof *out->each);
    const hwnas_status status = hwnas_samples_judge(&accuracy, out->each, o->samples, graph,
                                                    o->found->best.precision, HWNAS_SAMPLES_SEEN);
    for (int64_t i = 0; i < n && status == HWNAS_OK; i++)
        out->sum += out->each[i];
    hwnas_graph_free(graph);
    return status;
}

/* By how much a is better than b in the mean, in standard errors of that. */
static double errors_apart(const judged *a, const judged *b, int64_t n)
{
    const double sum = a->sum - b->sum;
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (a->each[i] - b->each[i]) * (a->each[i] - b->each[i]);
    const double variance = squares - sum * sum / (double)n;
    return sum <= 0 ? 0 : variance > 0 ? sum / sqrt(variance) : INFINITY;
}

static void tell(const hwnas_optimization *o, const hwnas_front_row *best,
                 const hwnas_front_row *taken, double errors)
{
    if (best == taken)
        return;
    hwnas_log(
        HWNAS_LOG_NOTE,
        "trial %lld is about as accurate as trial %lld (%.1f standard errors of the difference "
        "apart) and takes %.2f of its latency: it is taken; 'hwnas export %s --trial %lld' "
        "writes the other",
        (long long)taken->number, (long long)best->number, errors, taken->median / best->median,
        o->study_path, (long long)best->number);
}

/* The last one that may be as good as the first; faster ones come later. */
static size_t count_rivals(const hwnas_front_row *front, size_t n)
{
    size_t n_rivals = n;
    while (n_rivals > 1 && !(front[n_rivals - 1].accuracy.value >= front[0].accuracy.low))
        n_rivals--;
    return n_rivals;
}

hwnas_status hwnas_near_best(size_t *out, hwnas_optimization *o, const hwnas_front_row *front,
                             size_t n)
{
    const int64_t n_samples = hwnas_samples_count(o->samples, HWNAS_SAMPLES_SEEN);
    const size_t n_rivals = count_rivals(front, n);
    hwnas_status status = HWNAS_OK;
    judged *rivals = hwnas_alloc((n_rivals + 1) * sizeof *rivals);
    size_t best = 0, taken = n_rivals - 1;
    for (size_t i = 0; i < n_rivals && n_rivals > 1; i++) {
        TRY_OUT(judge(&rivals[i], o, front[i].number));
        if (rivals[i].sum > rivals[best].sum)
            best = i;
    }
    while (taken > best && errors_apart(&rivals[best], &rivals[taken], n_samples) > MOST_ERRORS)
        taken--;
    if (n_rivals > 1)
        tell(o, &front[best], &front[taken],
             errors_apart(&rivals[best], &rivals[taken], n_samples));
    *out = taken;
    status = hwnas_optimization_take(o, front[taken].number);
out:
    for (size_t i = 0; i < n_rivals; i++)
        free(rivals[i].each);
    free(rivals);
    return status;
}
