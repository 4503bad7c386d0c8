/* sweep_progress.c: what a sweep says of itself while it runs. */
#include <stdlib.h>

#include "base/str.h"
#include "profile/sweep.h"

int hwnas_sweep_threads(const hwnas_sweep *s)
{
    int most = 1;
    for (int i = 0; i < s->n_threads; i++)
        most = s->threads[i] > most ? s->threads[i] : most;
    return most;
}

/* Not all of these come to be: an ONNX file may lack a batch, and mixtures need the cpu. */
static size_t count_rows(const hwnas_sweep *s)
{
    int n_precisions = s->n_precisions;
    for (int i = HWNAS_UNMIXED + 1; i < HWNAS_N_MIXINGS; i++)
        n_precisions += (s->mixings & 1U << i) != 0;
    return (size_t)(s->n_models * s->n_devices * s->n_batches * s->n_threads * s->n_streams *
                    n_precisions) *
           (s->n_shapes ? s->n_shapes : 1);
}

void hwnas_sweep_tell(const hwnas_sweep *s, const hwnas_profile_row *row, size_t number, size_t of)
{
    if (!s->progress)
        return;
    char *words = hwnas_printf(
        "measuring %s, %s, batch %d, %d thread%s, %s: %zu of %s%zu", row->model, row->device,
        row->batch, row->threads, row->threads == 1 ? "" : "s",
        row->mixing ? hwnas_mixing_name(row->mixing) : hwnas_precision_name(row->precision), number,
        of ? "" : "up to ", of ? of : count_rows(s));
    s->progress(s->progress_context, words);
    free(words);
}
