#include "predict/epochs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "predict/predict_priv.h"

/* What plans more tells its steps. */
enum { MOST_EPOCHS = 10000 };

void hwnas_epochs_done(hwnas_epochs *epochs)
{
    free(epochs->values);
    *epochs = (hwnas_epochs){.n = 0};
}

/* What stands behind the comma of 85,2; of 0.93,85.2 it is a number of its own. */
static bool is_fraction(const char *line, const char *begin, const char *end)
{
    const char *before = begin - 1;
    if (begin == line || *before != ',' || memchr(begin, '.', (size_t)(end - begin)))
        return false;
    while (before > line && before[-1] >= '0' && before[-1] <= '9')
        before--;
    return before < begin - 1 && (before == line || before[-1] != '.');
}

/* The number that a line ends with, perhaps with "%". */
static bool read_last(double *out, bool *is_percent, const char *line)
{
    const char *end = line + strlen(line);
    char *stop;
    while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *is_percent = end > line && end[-1] == '%';
    end -= *is_percent;
    while (end > line && end[-1] == ' ')
        end--;
    const char *begin = end;
    while (begin > line && strchr("+-.0123456789eE", begin[-1]))
        begin--;
    if (is_fraction(line, begin, end))
        return false;
    *out = strtod(begin, &stop);
    return begin < end && stop == end && isfinite(*out);
}

bool hwnas_epochs_hear(hwnas_epochs *epochs, const char *line, const hwnas_giver *giver)
{
    unsigned epoch, planned;
    int length = 0;
    double value, sd = 0;
    bool is_percent;
    line += hwnas_starts_with(line, "was ") ? 4 : 0;
    if (sscanf(line, "epoch %7u of %7u:%n", &epoch, &planned, &length) != 2 || !length || !epoch ||
        epoch > planned || planned > MOST_EPOCHS || epoch > epochs->n + 1 ||
        !read_last(&value, &is_percent, line + length))
        return false;
    if (hwnas_percent_convert(&value, &sd, is_percent, giver) != HWNAS_OK) {
        hwnas_error_clear();
        return false;
    }
    epochs->n = epoch - 1;
    epochs->n_planned = planned;
    HWNAS_GROW(epochs->values, epochs->n, epochs->capacity);
    epochs->values[epochs->n++] = value;
    return true;
}

bool hwnas_epochs_foresee(hwnas_curve_end *out, const double *values, size_t n, size_t n_planned,
                          const hwnas_results *curves, const hwnas_results *results)
{
    hwnas_curve *known = hwnas_alloc((curves->n + 1) * sizeof *known);
    size_t n_known = 0;
    for (size_t i = 0; i < curves->n; i++) {
        const hwnas_result *row = &curves->rows[i];
        const hwnas_result *whole = hwnas_results_find(results, row->digest);
        if (whole && row->n_epochs == n_planned && hwnas_results_find(curves, row->digest) == row)
            known[n_known++] =
                (hwnas_curve){.values = row->curve, .n = row->n_curve, .end = whole->value};
    }
    const bool is_percent = !strcmp(hwnas_column_unit(curves->target), "%");
    const bool is_known = hwnas_curve_extrapolate(out, values, n, known, n_known, is_percent);
    free(known);
    return is_known;
}
