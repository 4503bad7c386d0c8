#include "study/setup.h"

#include "graph/elaborate.h"

hwnas_status hwnas_setup_open(hwnas_setup *out, const hwnas_job *job,
                              const volatile sig_atomic_t *stop)
{
    hwnas_strategy_config config = {.n_objectives = job->n_objectives,
                                    .seed = job->seed,
                                    .population = job->population};
    hwnas_status status = hwnas_graph_load_space(&out->space, job->space);
    if (status != HWNAS_OK)
        return hwnas_fail_at(status, &job->space_place);
    TRY(hwnas_settings_space(&out->walked, out->space, job));
    config.space = out->walked;
    status = hwnas_strategy_new(&out->strategy, job->strategy, &config);
    if (status != HWNAS_OK)
        return hwnas_fail_at(status, &job->strategy_place);
    return hwnas_evaluator_open(&out->evaluator, job, out->space, false, stop);
}

void hwnas_setup_close(hwnas_setup *setup)
{
    hwnas_evaluator_close(setup->evaluator);
    hwnas_strategy_free(setup->strategy);
    hwnas_space_free(setup->space);
    *setup = (hwnas_setup){0};
}
