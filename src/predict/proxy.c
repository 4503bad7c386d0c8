/* proxy.c: the table of proxies, and those that are a count. */
#include "predict/proxy.h"

#include <math.h>

static hwnas_status log_macs(double *out, const hwnas_graph *graph, hwnas_device *device,
                             uint64_t seed)
{
    hwnas_costs costs;
    (void)device, (void)seed;
    hwnas_graph_costs(&costs, graph);
    *out = log1p((double)costs.macs);
    return HWNAS_OK;
}

static hwnas_status log_params(double *out, const hwnas_graph *graph, hwnas_device *device,
                               uint64_t seed)
{
    hwnas_costs costs;
    (void)device, (void)seed;
    hwnas_graph_costs(&costs, graph);
    *out = log1p((double)costs.params);
    return HWNAS_OK;
}

const hwnas_proxy hwnas_proxies[] = {
    {"naswot", "how many inputs the ReLUs tell apart (Mellor et al. 2021)", 32, hwnas_proxy_naswot},
    {"zen", "how much the features move with the input (Lin et al. 2021)", 16, hwnas_proxy_zen},
    {"synflow", "how much flows through the weights (Tanaka et al. 2020)", 2, hwnas_proxy_synflow},
    {"log-macs", "logarithm of the multiply-accumulates", 1, log_macs},
    {"log-params", "logarithm of the parameters", 1, log_params},
    {0},
};
