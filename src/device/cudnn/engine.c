/* engine.c: the kind of step that is one plan of cuDNN's.
 *
 * cuDNN's heuristic ranks configurations of engines. Being ranked proves nothing: some cannot be
 * compiled, so they are finalised in turn until one is. For exact fp32 those that use tensor cores
 * are passed over, as these round the factors to 10 bits. */
#include "device/cudnn/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "device/cudnn/describe.h"
#include "device/cudnn/live.h"
#include "device/cudnn/quick.h"

enum {
    MAX_CONFIGS = 64,
    MAX_TUNED = 4, /* plans that --tune times */
    LONGEST_REASONS = 1 << 16,
};

typedef cudnnBackendDescriptor_t descriptor;

/* The reasons that cuDNN gave since it was last asked; each of them once, without its chain of
 * calls. Yours to free(). */
static char *reasons(const hwnas_cudnn_api *api)
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
    char *why = reasons(api);
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

static bool rounds_factors(const hwnas_cudnn_plan *plan)
{
    return plan->numerical & (1U << CUDNN_NUMERICAL_NOTE_TENSOR_CORE |
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
        if (o->is_exact && rounds_factors(&plan))
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
        char *all = reasons(api);
        *why = d.status ? hwnas_printf("%s: %s", d.where, all) : hwnas_strdup(all);
        free(all);
    }
    hwnas_cudnn_described_done(&d);
    return is_made;
}

/* A quick device takes what is ready, so that these plans are what they are without it, then what
 * it can share. */
static void make(hwnas_cudnn_plan *plan, hwnas_cuda_device *device, const hwnas_cudnn_operation *o)
{
    bool is_made = device->is_quick && (make_in(READY, plan, device, o, NULL) ||
                                        make_in(SHARED, plan, device, o, NULL));
    forget_reasons(device->cudnn);
    if (!is_made)
        is_made = make_in(ANY, plan, device, o, &plan->why);
    plan->is_refused = !is_made;
}

/* ---- Plans as text ---- */

static char *to_json(const hwnas_cudnn_api *api, descriptor plan)
{
    int64_t n = 0, got = 0;
    if (api->get(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &n, NULL))
        return NULL;
    char *text = hwnas_alloc((size_t)n + 1);
    if (!api->get(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, n, &got,
                  text))
        return text;
    free(text);
    return NULL;
}

/* The property goes first: cuDNN 9.19 crashes without. */
static descriptor from_json(const hwnas_cuda_device *device, const char *json)
{
    const hwnas_cudnn_api *api = device->cudnn;
    descriptor plan = NULL;
    if (api->create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan))
        return NULL;
    if (!api->set(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                  &device->properties) &&
        !api->set(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                  (int64_t)strlen(json), json) &&
        !api->finalize(plan))
        return plan;
    api->destroy(plan);
    return NULL;
}

/* From disk; false where there is nothing, or cuDNN does not take it any more. */
static bool load(hwnas_cudnn_plan *plan, const hwnas_cuda_device *device, const char *signature)
{
    char *json = NULL;
    if (!hwnas_cudnn_plan_load(plan, &json, device, signature))
        return false;
    bool is_good = true;
    if (!plan->is_refused && !device->is_dry) {
        plan->made = from_json(device, json);
        is_good = plan->made != NULL;
    }
    if (!is_good)
        hwnas_cudnn_plan_drop(device, signature);
    free(json);
    return is_good;
}

/* Kept are plans, and refusals by a described GPU; those of a real one may be for want of memory.
 */
static void save(const hwnas_cudnn_plan *plan, const hwnas_cuda_device *device)
{
    char *json = plan->is_refused ? NULL : to_json(device->cudnn, plan->made);
    if (plan->is_refused ? device->is_dry : json != NULL)
        hwnas_cudnn_plan_save(plan, json, device);
    free(json);
}

/* Takes the signature over. NULL: it was refused, and may not be in its turn. */
static const hwnas_cudnn_plan *load_or_make(hwnas_cuda_device *device,
                                            const hwnas_cudnn_operation *o, char *signature,
                                            bool is_ahead)
{
    hwnas_cudnn_plan plan = {0};
    if (!load(&plan, device, signature)) {
        plan = (hwnas_cudnn_plan){0};
        make(&plan, device, o);
        if (is_ahead && plan.is_refused) {
            free(plan.why);
            free(signature);
            return NULL;
        }
        plan.signature = signature;
        save(&plan, device);
        if (plan.made && device->is_dry) { /* it has been seen to exist; nothing will run it */
            device->cudnn->destroy(plan.made);
            plan.made = NULL;
        }
    }
    plan.signature = signature;
    return hwnas_cudnn_plans_add(device->plans, plan);
}

hwnas_status hwnas_cudnn_plan_get(const hwnas_cudnn_plan **out, hwnas_cuda_device *device,
                                  const hwnas_cudnn_operation *o, bool is_ahead)
{
    char *signature = hwnas_cudnn_signature(o);
    const hwnas_cudnn_plan *plan = hwnas_cudnn_plans_find(device->plans, signature);
    if (!plan) {
        hwnas_cudnn_plans_begin(device->plans);
        plan = hwnas_cudnn_plans_find(device->plans, signature);
        if (!plan) {
            plan = load_or_make(device, o, signature, is_ahead);
            signature = NULL;
        }
        hwnas_cudnn_plans_end(device->plans);
    }
    free(signature);
    *out = plan;
    return plan ? HWNAS_OK
                : hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "a plan is refused while a network runs");
}

/* ---- The kind ---- */

static bool is_product(const hwnas_cudnn_op *op)
{
    return op->kind == HWNAS_CUDNN_CONV || op->kind == HWNAS_CUDNN_CONV_BACK ||
           op->kind == HWNAS_CUDNN_MATMUL || op->kind == HWNAS_CUDNN_ATTENTION;
}

static const hwnas_cudnn_op *product_of(const hwnas_cudnn_operation *o)
{
    for (int i = 0; i < o->n_ops; i++)
        if (is_product(&o->ops[i]))
            return &o->ops[i];
    return NULL;
}

/* A depthwise convolution has nothing to multiply there. */
static bool wants_tensor_cores(const hwnas_cudnn_operation *o, const hwnas_cudnn_op *product)
{
    return !o->is_exact &&
           (product->kind != HWNAS_CUDNN_CONV || o->ports[product->inputs[1]].dims[1] > 1);
}

const char *hwnas_cudnn_engine_words(const hwnas_cudnn_operation *o)
{
    const hwnas_cudnn_plan *plan = o->plan;
    const hwnas_cudnn_op *product = product_of(o);
    if (plan->engine < 0 ||
        !product) /* not told; numbers mean others where nothing is multiplied */
        return hwnas_cudnn_engine.name;
    if (wants_tensor_cores(o, product) &&
        !(plan->numerical & 1U << CUDNN_NUMERICAL_NOTE_TENSOR_CORE))
        return HWNAS_CUDNN_NO_TENSOR_CORES;
    return plan->engine == 0 ? HWNAS_CUDNN_GENERIC : hwnas_cudnn_engine.name;
}

static hwnas_status engine_compile(hwnas_cudnn_step *step, hwnas_cudnn_net *net)
{
    hwnas_cudnn_operation *o = step->state;
    if (!net->device->cudnn)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s': cuDNN is not to be used", step->name);
    if (o->is_full)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "'%s' is too much for one plan", step->name);
    TRY(hwnas_cudnn_plan_get(&o->plan, net->device, o, net->is_ahead));
    if (hwnas_cudnn_plan_is_refused(o->plan))
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "cuDNN has no engine for '%s': %.400s",
                          step->name, o->plan->why);
    step->workspace = o->plan->workspace;
    step->about.how = hwnas_cudnn_engine_words(o);
    return HWNAS_OK;
}

cudnnStatus_t hwnas_cudnn_pack(cudnnBackendDescriptor_t *out, const hwnas_cudnn_api *api,
                               const hwnas_cudnn_operation *o, char *const *places, char *workspace)
{
    int64_t ids[HWNAS_CUDNN_MAX_PORTS], n = 0;
    const void *pointers[HWNAS_CUDNN_MAX_PORTS];
    descriptor pack = NULL;
    for (int i = 0; i < o->n_ports; i++) {
        const hwnas_cudnn_port *port = &o->ports[i];
        if (port->kind == HWNAS_CUDNN_PORT_VIRTUAL)
            continue;
        pointers[n] =
            port->kind == HWNAS_CUDNN_PORT_SCALAR ? (const void *)&port->value : places[i];
        ids[n++] = i + 1;
    }
    cudnnStatus_t status = api->create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (!status)
        status = api->set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
    if (!status)
        status =
            api->set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers);
    if (!status)
        status =
            api->set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (!status)
        status = api->finalize(pack);
    if (!status)
        *out = pack;
    else if (pack)
        api->destroy(pack);
    return status;
}

/* The plan was made, but does not run: the graph is to be cut without it, now and in later
 * processes. */
static hwnas_status refuse_plan(const hwnas_cudnn_step *step, hwnas_cuda_device *device)
{
    const hwnas_cudnn_operation *o = step->state;
    const hwnas_error *error = hwnas_last_error();
    char *why = reasons(device->cudnn);
    char *all = hwnas_printf("%.300s (%.300s)", error->message, why);
    hwnas_log(HWNAS_LOG_WARNING, "cuDNN's engine %lld for '%s' does not run and is left out: %s",
              (long long)o->plan->engine, step->name, all);
    hwnas_cudnn_plans_refuse(device->plans, o->plan, all);
    hwnas_cudnn_plan_save(o->plan, NULL, device);
    free(all);
    free(why);
    return HWNAS_E_LIBRARY;
}

static hwnas_status engine_run(const hwnas_cudnn_step *step, const hwnas_cudnn_net *net,
                               const hwnas_cudnn_launch *launch)
{
    const hwnas_cudnn_operation *o = step->state;
    const hwnas_cudnn_api *api = net->device->cudnn;
    char *places[HWNAS_CUDNN_MAX_PORTS] = {NULL};
    descriptor pack = NULL;
    for (int i = 0; i < o->n_ports; i++)
        if (o->ports[i].kind == HWNAS_CUDNN_PORT_MEMORY)
            places[i] = hwnas_cudnn_address(net, launch, o->ports[i].tensor);
    cudnnStatus_t status = hwnas_cudnn_pack(&pack, api, o, places, launch->workspace);
    if (!status)
        status = api->execute((cudnnHandle_t)launch->handle, o->plan->made, pack);
    if (pack)
        api->destroy(pack);
    const hwnas_status result =
        hwnas_cudnn_run_status(net->device->live, status, "run", step->name);
    return result == HWNAS_E_LIBRARY ? refuse_plan(step, net->device) : result;
}

static void engine_free(hwnas_cudnn_step *step)
{
    free(step->state);
}

const hwnas_cudnn_kind hwnas_cudnn_engine = {
    .name = "cuDNN", .compile = engine_compile, .run = engine_run, .free = engine_free};
