/* predictor_handle.c: predictors in hwnas.h: scores of codes. */
#include <stdlib.h>

#include "base/c_locale.h"
#include "predict/predict.h"

hwnas_status hwnas_predictor_open(hwnas_predictor **out, const char *name, const hwnas_space *space)
{
    IN_C_LOCALE;
    return hwnas_predictor_load(out, name, space);
}

void hwnas_predictor_close(hwnas_predictor *predictor)
{
    hwnas_predictor_free(predictor);
}

hwnas_status hwnas_predictor_score_codes(hwnas_estimate *out, hwnas_predictor *predictor,
                                         const char *const *codes, size_t n)
{
    IN_C_LOCALE;
    hwnas_status status = HWNAS_OK;
    hwnas_arch **archs = hwnas_alloc(n * sizeof *archs);
    hwnas_estimate *estimates = hwnas_alloc(n * sizeof *estimates);
    for (size_t i = 0; i < n; i++)
        TRY_OUT(hwnas_arch_parse(&archs[i], hwnas_predictor_space(predictor), codes[i]));
    TRY_OUT(hwnas_predictor_score(estimates, predictor, (const hwnas_arch *const *)archs, n));
    for (size_t i = 0; i < n; i++)
        out[i] = estimates[i];
out:
    for (size_t i = 0; i < n; i++)
        hwnas_arch_free(archs[i]);
    free(estimates);
    free(archs);
    return status;
}
