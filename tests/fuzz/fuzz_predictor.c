/* Any bytes as a fitted predictor: it is refused with a message, or it estimates every network of a
 * small space. */
#include "fuzz.h"
#include "predict/predict.h"
#include "space/space.h"

enum { N_VALUES = 3, N_ARCHS = N_VALUES * N_VALUES * N_VALUES };

static void score_all(hwnas_predictor *predictor)
{
    hwnas_arch *archs[N_ARCHS];
    hwnas_estimate estimates[N_ARCHS];
    FUZZ_CHECK(fuzz_space()->n_genes == 3);
    for (int i = 0; i < N_ARCHS; i++) {
        archs[i] = hwnas_arch_new(fuzz_space());
        for (int gene = 0, rest = i; gene < 3; gene++, rest /= N_VALUES)
            archs[i]->genes[gene] = (uint16_t)(rest % N_VALUES);
    }
    hwnas_status status =
        hwnas_predictor_score(estimates, predictor, (const hwnas_arch *const *)archs, N_ARCHS);
    if (status != HWNAS_OK)
        fuzz_check_message(status);
    for (int i = 0; i < N_ARCHS; i++)
        hwnas_arch_free(archs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_predictor *predictor = NULL;
    hwnas_status status =
        hwnas_predictor_load(&predictor, fuzz_file(data, size, "fuzz.json"), fuzz_space());
    if (status == HWNAS_OK) {
        FUZZ_CHECK(hwnas_predictor_kind(predictor) && hwnas_predictor_unit(predictor));
        FUZZ_CHECK(hwnas_predictor_target(predictor));
        score_all(predictor);
    } else {
        fuzz_check_refused(status);
    }
    hwnas_predictor_free(predictor);
    return 0;
}
