#define _GNU_SOURCE 1 /* strsep() */
#include "study/environment.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/host.h"
#include "device/devices.h"
#include "study/study_facts.h"

#define FACT "environment"

/* ---- Writing ---- */

static json_t *describe_here(void)
{
    char processor[256], host[HWNAS_HOST_ID];
    struct utsname system;
    hwnas_device_cpu_name(processor, sizeof processor);
    hwnas_host_id(host);
    if (uname(&system))
        memset(&system, 0, sizeof system);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "hwnas", hwnas_version(), "system",
                     system.sysname, "kernel", system.release, "machine", system.machine,
                     "processor", processor, "host", host);
}

static bool has(const json_t *list, const json_t *one)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), one))
            return true;
    return false;
}

hwnas_status hwnas_environment_note(hwnas_store *store)
{
    json_t *list = NULL, *here;
    TRY(hwnas_facts_json(&list, store, FACT));
    if (!json_is_array(list)) {
        json_decref(list);
        list = json_array();
    }
    here = describe_here();
    hwnas_status status = HWNAS_OK;
    if (here && !has(list, here)) {
        json_array_append(list, here);
        status = hwnas_facts_set_json(store, FACT, list);
    }
    json_decref(here);
    json_decref(list);
    return status;
}

/* ---- Reading ---- */

/* As hwnas_space_fingerprint() writes it. */
static json_t *space_json(const char *text)
{
    char *copy = hwnas_strdup(text ? text : ""), *rest = copy;
    const char *name = strsep(&rest, " "), *count = strsep(&rest, " "), *code = strsep(&rest, " ");
    const char *digest = strsep(&rest, " ");
    json_t *json = json_pack("{s:s, s:s?, s:s?, s:s?, s:s*}", "name", name, "networks", count,
                             "largest", code, "digest", digest, "kept", rest);
    free(copy);
    return json;
}

hwnas_status hwnas_environment_load(json_t **out, hwnas_store *store)
{
    hwnas_status status = HWNAS_OK;
    json_t *machines = NULL, *devices = NULL, *conditions = NULL, *fingerprint = NULL;
    char *space = NULL, *version = NULL;
    TRY_OUT(hwnas_facts_json(&machines, store, FACT));
    TRY_OUT(hwnas_facts_json(&devices, store, "devices"));
    TRY_OUT(hwnas_facts_json(&conditions, store, "conditions"));
    TRY_OUT(hwnas_facts_json(&fingerprint, store, "fingerprint"));
    TRY_OUT(hwnas_store_get(&space, store, "space"));
    TRY_OUT(hwnas_store_get(&version, store, "version"));
    *out = json_pack("{s:s, s:i, s:s, s:s?, s:o, s:O?, s:O?, s:O?, s:O?}", "format",
                     "hwnas.environment", "version", 1, "study", hwnas_store_path(store),
                     "begun_by", version, "space", space_json(space), "contents", fingerprint,
                     "devices", devices, "conditions", conditions, "machines", machines);
out:
    json_decref(machines);
    json_decref(devices);
    json_decref(conditions);
    json_decref(fingerprint);
    free(space);
    free(version);
    return status;
}
