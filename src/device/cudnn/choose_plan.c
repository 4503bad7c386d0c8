/* choose_plan.c: which plan cuDNN makes of an operation.
 *
 * cuDNN's heuristic ranks configurations of engines. Being ranked proves nothing: some cannot be
 * compiled, so they are finalised in turn until one is. For exact fp32 those that use tensor cores
 * are passed over, as these round the factors to 10 bits. */
#include "device/cudnn/choose_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "device/cudnn/cudnn_names.h"
#include "device/cudnn/describe.h"
#include "device/cudnn/quick.h"

enum {
    MAX_CONFIGS = 64,
    MAX_TUNED = 4, /* plans that --tune times */
    LONGEST_REASONS = 1 << 16,
};

typedef cudnnBackendDescriptor_t descriptor;

char *hwnas_cudnn_reasons(const hwnas_cudnn_api *api)
{
    char *all = hwnas_alloc(LONGEST_REASONS);
    hwnas_str kept = {0};
    api->last_error(all, LONGEST_REASONS);
    char *rest = all, *line;
    while ((line = strsep(&rest, "\n"))) {
        const char *why = strstr(line, "Reason: ");
        why = why ? why + strlen("Reason: ") : "";
        const bool is_condition = strpbrk(why, "=<>!&| ") != NULL;
        if (!is_condition || kept.n > 400 || (kept.s && strstr(kept.s, why)))
            continue;
        hwnas_str_addf(&kept, "%s%.200s", kept.n ? "; " : "", why);
    }
    free(all);
    return kept.s ? kept.s : hwnas_strdup("no engine takes it");
}

/* cuDNN's reasons accumulate until they are read. */
static void forget_reasons(const hwnas_cudnn_api *api)
{
    char *all = hwnas_alloc(LONGEST_REASONS);
    api->last_error(all, LONGEST_REASONS);
    free(all);
}

hwnas_status hwnas_cudnn_describe_gpu(hwnas_cuda_device *device)
{
    const hwnas_cudnn_api *api = device->cudnn;
    descriptor made = NULL;
    cudnnStatus_t status = api->create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &made);
    if (!status)
        status = api->set(made, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                          (int64_t)strlen(device->gpu.cudnn), device->gpu.cudnn);
    if (!status)
        status = api->finalize(made);
    if (!status) {
        device->properties = made;
        return HWNAS_OK;
    }
    char *why = hwnas_cudnn_reasons(api);
    if (made)
        api->destroy(made);
    hwnas_status failure =
        hwnas_fail(HWNAS_E_INPUT, NULL, "cuDNN does not take the description of '%s': %s: %.300s",
                   device->gpu.name, api->error_string(status), why);
    free(why);
    return failure;
}

/* ---- Configurations ---- */

typedef struct configs {
    int n;
    descriptor made[MAX_CONFIGS];
} configs;

static void configs_done(configs *c, const hwnas_cudnn_api *api)
{
    while (c->n)
        api->destroy(c->made[--c->n]);
}

/* What one mode of the heuristic offers; nothing where it fails. */
static void ask(configs *out, const hwnas_cuda_device *device, descriptor graph,
                cudnnBackendHeurMode_t mode)
{
    const hwnas_cudnn_api *api = device->cudnn;
    descriptor heuristic = NULL;
    int64_t n = 0, got = 0;
    *out = (configs){0};
    if (api->create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic))
        return;
    if (!api->set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  1, &graph) &&
        !api->set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) &&
        !api->set(heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                  &device->properties) &&
        !api->finalize(heuristic) &&
        !api->get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n,
                  NULL)) {
        n = n < MAX_CONFIGS ? n : MAX_CONFIGS;
        while (out->n < n && !api->create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &out->made[out->n]))
            out->n++;
        if (out->n && api->get(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, out->n, &got, out->made))
            got = 0;
        while (out->n > got)
            api->destroy(out->made[--out->n]);
    }
    api->destroy(heuristic);
}

static unsigned notes(const hwnas_cudnn_api *api, descriptor engine,
                      cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type)
{
    int values[32]; /* both sorts of notes are enumerations */
    int64_t n = 0;
    unsigned set = 0;
    if (api->get(engine, name, type, 32, &n, values))
        return 0;
    for (int64_t i = 0; i < n && i < 32; i++)
        set |= 1U << values[i];
    return set;
}

static void read_engine(hwnas_cudnn_plan *plan, const hwnas_cudnn_api *api, descriptor config)
{
    descriptor engine = NULL;
    int64_t n = 0;
    plan->engine = -1;
    if (api->create(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine))
        return;
    if (!api->get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
                  &engine)) {
        api->get(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, &plan->engine);
        plan->numerical =
            notes(api, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
        plan->behavior =
            notes(api, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
    }
    api->destroy(engine);
}

bool hwnas_cudnn_is_by_cublaslt(const hwnas_cudnn_plan *plan)
{
    return plan->behavior >> CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY & 1;
}

bool hwnas_cudnn_rounds_factors(const hwnas_cudnn_plan *plan)
{
    return hwnas_cudnn_is_by_cublaslt(plan) ||
           plan->numerical & (1U << CUDNN_NUMERICAL_NOTE_TENSOR_CORE |
                              1U << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
}

/* The plan of one configuration; false where there is none. `cache`: of kernels; NULL: without. */
static bool finalise(hwnas_cudnn_plan *plan, const hwnas_cuda_device *device, descriptor config,
                     descriptor cache)
{
    const hwnas_cudnn_api *api = device->cudnn;
    int64_t n = 0, workspace = 0;
    if (api->create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan->made))
        return false;
    if (!api->set(plan->made, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) &&
        !api->set(plan->made, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  1, &device->properties) &&
        (!cache || !api->set(plan->made, CUDNN_ATTR_EXECUTION_PLAN_KERNEL_CACHE,
                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &cache)) &&
        !api->finalize(plan->made) &&
        !api->get(plan->made, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n,
                  &workspace) &&
        workspace >= 0) {
        plan->workspace = (size_t)workspace;
        return true;
    }
    api->destroy(plan->made);
    plan->made = NULL;
    return false;
}

/* Which plans will do. */
typedef enum way_kind {
    ANY,
    READY,  /* whose kernel cuDNN has, if it is the one that it ranks first */
    SHARED, /* whose kernel serves other sizes as well */
} way_kind;

/* The first plan of the offered that can be made; with tuning the fastest of the first few. */
static bool choose(hwnas_cudnn_plan *out, hwnas_cuda_device *device, const hwnas_cudnn_operation *o,
                   const configs *offered, way_kind way, descriptor cache)
{
    const bool tunes = device->tunes;
    double best = 0;
    int n = 0;
    for (int i = 0; i < offered->n && n < (tunes ? MAX_TUNED : 1); i++) {
        hwnas_cudnn_plan plan = *out;
        plan.made = NULL;
        read_engine(&plan, device->cudnn, offered->made[i]);
        if (o->is_exact && hwnas_cudnn_rounds_factors(&plan))
            continue;
        if (way == READY && plan.behavior >> CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION & 1)
            return false;
        if (!finalise(&plan, device, offered->made[i], cache))
            continue;
        const double seconds = tunes ? device->time_plan(device, o, plan.made, plan.workspace) : 0;
        if (n++ && seconds >= best) {
            device->cudnn->destroy(plan.made);
            continue;
        }
        if (out->made)
            device->cudnn->destroy(out->made);
        *out = plan;
        best = seconds;
    }
    return n > 0;
}

/* By the heuristic's best mode, then by the one that has what no other has. What could not be
 * described is told in `why`, which is yours to free(). */
static bool make_in(way_kind way, hwnas_cudnn_plan *plan, hwnas_cuda_device *device,
                    const hwnas_cudnn_operation *o, char **why)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    const size_t n_modes = way == ANY ? sizeof modes / sizeof *modes : 1;
    const hwnas_cudnn_api *api = device->cudnn;
    hwnas_cudnn_described d;
    bool is_made = false;
    hwnas_cudnn_describe(&d, api, o, way == SHARED);
    const descriptor cache =
        way == SHARED && !d.status ? hwnas_cudnn_cache_of(device, o, d.graph) : NULL;
    for (size_t i = 0; !d.status && (way != SHARED || cache) && !is_made && i < n_modes; i++) {
        configs offered;
        ask(&offered, device, d.graph, modes[i]);
        is_made = choose(plan, device, o, &offered, way, cache);
        configs_done(&offered, api);
    }
    if (way == ANY && !is_made) {
        char *all = hwnas_cudnn_reasons(api);
        *why = d.status ? hwnas_printf("%s: %s", d.where, all) : hwnas_strdup(all);
        free(all);
    }
    hwnas_cudnn_described_done(&d);
    return is_made;
}

void hwnas_cudnn_choose(hwnas_cudnn_plan *plan, hwnas_cuda_device *device,
                        const hwnas_cudnn_operation *o)
{
    bool is_made = device->is_quick && (make_in(READY, plan, device, o, NULL) ||
                                        make_in(SHARED, plan, device, o, NULL));
    forget_reasons(device->cudnn);
    if (!is_made)
        is_made = make_in(ANY, plan, device, o, &plan->why);
    plan->is_refused = !is_made;
}
