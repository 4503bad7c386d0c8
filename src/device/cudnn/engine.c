/* engine.c: the kind of step that is one plan of cuDNN's: the plan from memory, from disk or made
 * (choose_plan.h), and its runs. */
#include "device/cudnn/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "device/cudnn/choose_plan.h"
#include "device/cudnn/live.h"

typedef cudnnBackendDescriptor_t descriptor;

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

/* From disk; false where there is nothing, it would not be chosen any more, or cuDNN does not take
 * it. */
static bool load(hwnas_cudnn_plan *plan, const hwnas_cuda_device *device,
                 const hwnas_cudnn_operation *o, const char *signature)
{
    char *json = NULL;
    if (!hwnas_cudnn_plan_load(plan, &json, device, signature))
        return false;
    bool is_good = plan->is_refused || !o->is_exact || !hwnas_cudnn_rounds_factors(plan);
    if (is_good && !plan->is_refused && !device->is_dry) {
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
    if (!load(&plan, device, o, signature)) {
        plan = (hwnas_cudnn_plan){0};
        hwnas_cudnn_choose(&plan, device, o);
        plan.made_for = is_ahead ? 0 : device->compiling;
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

void hwnas_cudnn_plan_make(hwnas_cuda_device *device, const hwnas_cudnn_operation *o,
                           char *signature)
{
    (void)load_or_make(device, o, signature, false);
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

/* By one operator, or as products with a softmax between them. */
static bool is_attention(const hwnas_cudnn_operation *o)
{
    return o->ops[0].kind == HWNAS_CUDNN_ATTENTION ||
           (o->n_ops > 1 && o->ops[o->n_ops - 1].kind == HWNAS_CUDNN_MATMUL);
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
    /* Not told; numbers mean others where nothing is multiplied, and where two products are. */
    if (plan->engine < 0 || !product || hwnas_cudnn_is_by_cublaslt(plan) || is_attention(o))
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
    char *why = hwnas_cudnn_reasons(device->cudnn);
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
