#include "predict/percent.h"

#include <math.h>
#include <string.h>

#include "predict/predict_priv.h"

hwnas_printed hwnas_printed_of(const char *word)
{
    return !strcmp(word, "percent")    ? HWNAS_PRINTED_PERCENT
           : !strcmp(word, "fraction") ? HWNAS_PRINTED_FRACTION
                                       : HWNAS_PRINTED_UNKNOWN;
}

bool hwnas_has_percentage(const hwnas_results *results)
{
    for (size_t i = 0; i < results->n; i++)
        if (results->rows[i].value > 1)
            return true;
    return false;
}

hwnas_status hwnas_percent_check(const hwnas_results *results, const hwnas_giver *g)
{
    const hwnas_place place = {.file = results->path};
    double most = 0;
    for (size_t i = 0; i < results->n; i++)
        most = fmax(most, results->rows[i].value);
    if (strcmp(hwnas_column_unit(g->column), "%") || g->printed || most <= 0 || most > 1)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                 "no result in '%s' is above %g %%: are these fractions?",
                                 g->column, most),
                      "if so, multiply them by 100; %s", g->how_to_say);
}

hwnas_status hwnas_percent_convert(double *value, double *sd, bool has_sign, const hwnas_giver *g)
{
    const bool is_fraction = g->printed == HWNAS_PRINTED_FRACTION;
    if (strcmp(hwnas_column_unit(g->column), "%"))
        return has_sign || g->printed
                   ? hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "%s %g%s, but '%s' is not in %%",
                                           g->said, *value, has_sign ? " %" : "", g->column),
                                "leave out the sign and 'printed', or name another column")
                   : HWNAS_OK;
    if (is_fraction && has_sign)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%s %g %%, where printed=fraction", g->said, *value);
    if (*value < 0 || *value > (is_fraction ? 1 : 100))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "%s %g, which is not a %s", g->said,
                                     *value, is_fraction ? "fraction" : "percentage"),
                          "for another measure name the column otherwise, with %s", g->how_to_name);
    if (!g->printed && !has_sign && *value > 0 && *value <= 1 && !g->has_percentage)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL,
                                     "%s %g: is this a fraction, or less than 1 %%?", g->said,
                                     *value),
                          "%s", g->how_to_say);
    *value *= is_fraction ? 100 : 1;
    *sd *= is_fraction ? 100 : 1;
    return HWNAS_OK;
}
