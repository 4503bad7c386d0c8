/* plans.c: a hash table of plans, and the same on disk. */
#include "device/cudnn/plans.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/str.h"
#include "device/cudnn/kept.h"

struct hwnas_cudnn_plans {
    pthread_mutex_t making, lock; /* the second is of what follows */
    size_t n_refused;             /* when they were run */
    size_t n, n_slots; /* n_slots is a power of two, more than twice n */
    hwnas_cudnn_plan **slots;
};

hwnas_cudnn_plans *hwnas_cudnn_plans_new(void)
{
    hwnas_cudnn_plans *plans = hwnas_alloc(sizeof *plans);
    pthread_mutex_init(&plans->making, NULL);
    pthread_mutex_init(&plans->lock, NULL);
    plans->n_slots = 256;
    plans->slots = hwnas_alloc(plans->n_slots * sizeof *plans->slots);
    return plans;
}

void hwnas_cudnn_plans_free(hwnas_cudnn_plans *plans, const hwnas_cudnn_api *api)
{
    if (!plans)
        return;
    for (size_t i = 0; i < plans->n_slots; i++) {
        hwnas_cudnn_plan *plan = plans->slots[i];
        if (!plan)
            continue;
        if (plan->made)
            api->destroy(plan->made);
        free(plan->signature);
        free(plan->why);
        free(plan);
    }
    free(plans->slots);
    pthread_mutex_destroy(&plans->making);
    pthread_mutex_destroy(&plans->lock);
    free(plans);
}

void hwnas_cudnn_plans_begin(hwnas_cudnn_plans *plans)
{
    pthread_mutex_lock(&plans->making);
}

void hwnas_cudnn_plans_end(hwnas_cudnn_plans *plans)
{
    pthread_mutex_unlock(&plans->making);
}

/* Where the signature is, or the empty slot where it would be. */
static size_t slot_of(const hwnas_cudnn_plans *plans, const char *signature)
{
    size_t at = (size_t)XXH64(signature, strlen(signature), 0) & (plans->n_slots - 1);
    while (plans->slots[at] && strcmp(plans->slots[at]->signature, signature))
        at = (at + 1) & (plans->n_slots - 1);
    return at;
}

const hwnas_cudnn_plan *hwnas_cudnn_plans_find(hwnas_cudnn_plans *plans, const char *signature)
{
    pthread_mutex_lock(&plans->lock);
    const hwnas_cudnn_plan *found = plans->slots[slot_of(plans, signature)];
    pthread_mutex_unlock(&plans->lock);
    return found;
}

static void grow(hwnas_cudnn_plans *plans)
{
    hwnas_cudnn_plans larger = {.n_slots = 2 * plans->n_slots};
    larger.slots = hwnas_alloc(larger.n_slots * sizeof *larger.slots);
    for (size_t i = 0; i < plans->n_slots; i++)
        if (plans->slots[i])
            larger.slots[slot_of(&larger, plans->slots[i]->signature)] = plans->slots[i];
    free(plans->slots);
    plans->slots = larger.slots;
    plans->n_slots = larger.n_slots;
}

const hwnas_cudnn_plan *hwnas_cudnn_plans_add(hwnas_cudnn_plans *plans, hwnas_cudnn_plan plan)
{
    hwnas_cudnn_plan *kept = hwnas_alloc(sizeof *kept);
    *kept = plan;
    pthread_mutex_lock(&plans->lock);
    if (2 * ++plans->n >= plans->n_slots)
        grow(plans);
    plans->slots[slot_of(plans, plan.signature)] = kept;
    pthread_mutex_unlock(&plans->lock);
    return kept;
}

size_t hwnas_cudnn_plans_count(const hwnas_cudnn_plans *plans)
{
    return plans->n;
}

void hwnas_cudnn_plans_refuse(hwnas_cudnn_plans *plans, const hwnas_cudnn_plan *plan,
                              const char *why)
{
    pthread_mutex_lock(&plans->lock);
    hwnas_cudnn_plan *kept = plans->slots[slot_of(plans, plan->signature)];
    if (!kept->is_refused) {
        kept->why = hwnas_strdup(why); /* `made` stays: another network may hold it */
        __atomic_store_n(&kept->is_refused, true, __ATOMIC_RELEASE);
        plans->n_refused++;
    }
    pthread_mutex_unlock(&plans->lock);
}

bool hwnas_cudnn_plan_is_refused(const hwnas_cudnn_plan *plan)
{
    return __atomic_load_n(&plan->is_refused, __ATOMIC_ACQUIRE);
}

size_t hwnas_cudnn_plans_refused(const hwnas_cudnn_plans *plans)
{
    return plans->n_refused;
}

/* ---- On disk: a line of JSON that says what it is, then cuDNN's text. ---- */

/* What makes a plan another one, beside its signature. A GPU that is here has no description. */
static uint64_t origin(const hwnas_cuda_device *device)
{
    const hwnas_gpu *gpu = &device->gpu;
    char *what = gpu->cudnn ? hwnas_strdup(gpu->cudnn)
                            : hwnas_printf("%s sm_%d %d", gpu->name, gpu->sm, gpu->multiprocessors);
    char *text =
        hwnas_printf("%zu %zu %s %d", device->cudnn->version(), device->cudnn->cudart_version(),
                     what, device->tunes | device->is_quick << 1);
    const uint64_t hash = XXH64(text, strlen(text), 0);
    free(text);
    free(what);
    return hash;
}

static char *path_of(const hwnas_cuda_device *device, const char *signature)
{
    char *name = hwnas_printf("%016llx%016llx.plan", (unsigned long long)origin(device),
                              (unsigned long long)XXH64(signature, strlen(signature), 0));
    char *path = hwnas_kept_path(name);
    free(name);
    return path;
}

/* The text's own checksum, so that nothing cut short or changed gets into cuDNN, which trusts it.
 */
static uint64_t checksum(const char *signature, const char *json)
{
    return XXH64(json, strlen(json), XXH64(signature, strlen(signature), 0));
}

/* Whether the head is that of this very plan. */
static bool fits(const json_t *head, const char *rest, const hwnas_cuda_device *device,
                 const char *signature)
{
    const char *format, *about;
    json_int_t version, cudnn, from, sum;
    return !json_unpack((json_t *)head, "{s:s, s:I, s:I, s:I, s:I, s:s}", "format", &format,
                        "version", &version, "cudnn", &cudnn, "origin", &from, "checksum", &sum,
                        "signature", &about) &&
           !strcmp(format, "hwnas.cudnn_plan") && version == 1 &&
           (size_t)cudnn == device->cudnn->version() && (uint64_t)from == origin(device) &&
           !strcmp(about, signature) && (uint64_t)sum == checksum(signature, rest);
}

static bool read_head(hwnas_cudnn_plan *plan, const json_t *head)
{
    json_int_t engine, workspace, numerical, behavior;
    const char *why = NULL;
    if (json_unpack((json_t *)head, "{s:I, s:I, s:I, s:I, s?s}", "engine", &engine, "workspace",
                    &workspace, "numerical", &numerical, "behavior", &behavior, "refused", &why) ||
        workspace < 0)
        return false;
    plan->engine = engine;
    plan->workspace = (size_t)workspace;
    plan->numerical = (unsigned)numerical;
    plan->behavior = (unsigned)behavior;
    plan->is_refused = why != NULL;
    plan->why = why ? hwnas_strdup(why) : NULL;
    return true;
}

bool hwnas_cudnn_plan_load(hwnas_cudnn_plan *plan, char **json, const hwnas_cuda_device *device,
                           const char *signature)
{
    char *path = path_of(device, signature), *text = NULL;
    bool is_good = false;
    size_t length;
    if (hwnas_kept_read(&text, &length, path)) {
        char *rest = strchr(text, '\n');
        json_t *head = rest ? json_loadb(text, (size_t)(rest - text), 0, NULL) : NULL;
        is_good = head && fits(head, rest + 1, device, signature) && read_head(plan, head);
        json_decref(head);
        if (is_good)
            *json = plan->is_refused ? NULL : hwnas_strdup(rest + 1);
        else
            unlink(path);
    }
    free(text);
    free(path);
    return is_good;
}

void hwnas_cudnn_plan_save(const hwnas_cudnn_plan *plan, const char *json,
                           const hwnas_cuda_device *device)
{
    char *path = path_of(device, plan->signature);
    const char *rest = json ? json : "";
    if (path) {
        json_t *head = json_pack(
            "{s:s, s:i, s:I, s:I, s:I, s:s, s:I, s:I, s:I, s:I}", "format", "hwnas.cudnn_plan",
            "version", 1, "cudnn", (json_int_t)device->cudnn->version(), "origin",
            (json_int_t)origin(device), "checksum", (json_int_t)checksum(plan->signature, rest),
            "signature", plan->signature, "engine", (json_int_t)plan->engine, "workspace",
            (json_int_t)plan->workspace, "numerical", (json_int_t)plan->numerical, "behavior",
            (json_int_t)plan->behavior);
        if (plan->is_refused)
            json_object_set_new(head, "refused", json_string(plan->why));
        char *line = json_dumps(head, JSON_COMPACT);
        char *text = hwnas_printf("%s\n%s", line, rest);
        hwnas_kept_write(path, text, strlen(text));
        free(text);
        free(line);
        json_decref(head);
    }
    free(path);
}

void hwnas_cudnn_plan_drop(const hwnas_cuda_device *device, const char *signature)
{
    char *path = path_of(device, signature);
    if (path)
        unlink(path);
    free(path);
}
