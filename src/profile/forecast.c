#include "profile/forecast.h"

#include <stdlib.h>

#include "base/mem.h"

static hwnas_status compile(hwnas_forecast *p, const hwnas_graph *graph,
                            const hwnas_exec_options *options)
{
    const hwnas_device_options device_options = {0};
    TRY(hwnas_graph_fold(&p->graph, graph));
    TRY(hwnas_device_open(&p->device, p->device_name, &device_options));
    p->device->ops->describe(p->device, &p->info);
    TRY(hwnas_device_compile(&p->exec, p->device, p->graph, options));
    if (!p->exec->ops->steps || !p->exec->ops->footprint)
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                     "the device '%s' does not tell what it is going to do",
                                     p->exec->ops->name),
                          "cuda-dry and cuda do");
    p->exec->ops->footprint(p->exec, &p->footprint);
    p->n_steps = p->exec->ops->steps(p->exec, &p->steps);
    return HWNAS_OK;
}

hwnas_status hwnas_forecast_make(hwnas_forecast **out, const char *model, const hwnas_graph *graph,
                                 const char *device, const hwnas_exec_options *options)
{
    hwnas_forecast *p = hwnas_alloc(sizeof *p);
    p->model = hwnas_strdup(model);
    p->device_name = hwnas_strdup(device);
    p->precision = options->precision;
    const hwnas_status status = compile(p, graph, options);
    if (status == HWNAS_OK)
        *out = p;
    else
        hwnas_forecast_free(p);
    return status;
}

void hwnas_forecast_free(hwnas_forecast *p)
{
    if (!p)
        return;
    hwnas_exec_free(p->exec);
    hwnas_device_close(p->device);
    hwnas_graph_free(p->graph);
    free(p->device_name);
    free(p->model);
    free(p);
}
