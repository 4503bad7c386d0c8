/* predict_proxy.c: the kind `proxy`: "proxy:NAME", a score of the untrained network. It ranks, and
 * says so: the deviation is NaN. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/predict_priv.h"
#include "predict/proxy.h"

typedef struct proxy_predictor {
    hwnas_predictor base;
    const hwnas_proxy *proxy;
    hwnas_device *device; /* NULL where there is no oneDNN: plain loops */
} proxy_predictor;

static void free_proxy(hwnas_predictor *base)
{
    proxy_predictor *predictor = (proxy_predictor *)base;
    hwnas_device_close(predictor->device);
    free(predictor);
}

static hwnas_status find(const hwnas_proxy **out, const char *name)
{
    const char *names[16] = {0};
    hwnas_str list = {0};
    for (int i = 0; hwnas_proxies[i].name; i++) {
        names[i] = hwnas_proxies[i].name;
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
        if (!strcmp(names[i], name)) {
            hwnas_str_done(&list);
            *out = &hwnas_proxies[i];
            return HWNAS_OK;
        }
    }
    const char *near = hwnas_nearest(name, names);
    hwnas_status status =
        hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "there is no proxy called '%.60s'", name);
    status = near ? hwnas_hint(status, "did you mean proxy:%s?", near)
                  : hwnas_hint(status, "the proxies are %s", list.s);
    hwnas_str_done(&list);
    return status;
}

static hwnas_status open_proxy(hwnas_predictor **out, const char *rest, const hwnas_space *space)
{
    const hwnas_proxy *proxy = NULL;
    TRY(find(&proxy, rest));
    proxy_predictor *predictor = hwnas_alloc(sizeof *predictor);
    predictor->base = (hwnas_predictor){
        .ops = &hwnas_predictor_proxy,
        .kind = "proxy",
        .space = space,
        .target = hwnas_strdup(rest),
        .unit = hwnas_strdup("score"),
    };
    predictor->proxy = proxy;
    /* One thread: layers are small, and idle threads would spin beside a busy machine. */
    const hwnas_device_options options = {.threads = 1};
    if (hwnas_device_open(&predictor->device, "cpu", &options) != HWNAS_OK)
        hwnas_error_clear();
    *out = &predictor->base;
    return HWNAS_OK;
}

static hwnas_status score_proxy(hwnas_estimate *out, hwnas_predictor *base,
                                const hwnas_arch *const *archs, size_t n)
{
    proxy_predictor *predictor = (proxy_predictor *)base;
    hwnas_status status = HWNAS_OK;
    double *scores = hwnas_alloc(n * sizeof *scores);
    for (size_t i = 0; i < n; i++) {
        hwnas_graph *graph = NULL;
        if (base->stop && *base->stop) {
            status = hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted after %zu of %zu networks",
                                i, n);
            goto out;
        }
        TRY_OUT(hwnas_graph_build(&graph, archs[i], predictor->proxy->batch));
        status = predictor->proxy->score(&scores[i], graph, predictor->device, 0);
        hwnas_graph_free(graph);
        if (status != HWNAS_OK) {
            char *code = hwnas_arch_code(archs[i]);
            hwnas_context(status, "proxy:%s of %s", predictor->proxy->name, code);
            free(code);
            goto out;
        }
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (hwnas_estimate){.mean = scores[i], .sd = NAN};
out:
    free(scores);
    return status;
}

const hwnas_predictor_ops hwnas_predictor_proxy = {
    .abi = HWNAS_PREDICTOR_ABI,
    .name = "proxy",
    .ranks_only = true,
    .heeds_stop = true,
    .open = open_proxy,
    .score = score_proxy,
    .free = free_proxy,
};
