/* Any bytes as a study: it is refused with a message, or it can be told as text and as JSON, and
 * opened for going on. */
#include <stdlib.h>

#include "fuzz.h"
#include "report/front.h"
#include "latency/latency_file.h"
#include "store/store.h"

static hwnas_status tell(hwnas_store *store, const char *path)
{
    hwnas_summary *summary = NULL;
    hwnas_str text = {0};
    TRY(hwnas_summary_load(&summary, store, path));
    hwnas_front_text(&text, summary);
    json_t *json = hwnas_front_json(summary);
    char *dump = json_dumps(json, 0);
    FUZZ_CHECK(dump);
    free(dump);
    json_decref(json);
    hwnas_str_done(&text);
    hwnas_summary_free(summary);
    return HWNAS_OK;
}

static hwnas_status take_event(void *context, const hwnas_event *event)
{
    (void)context;
    FUZZ_CHECK(event->kind == HWNAS_EVENT_PUT_OFF || event->trial.code);
    return HWNAS_OK;
}

static hwnas_status go_on(hwnas_store *store)
{
    hwnas_status status = HWNAS_OK;
    hwnas_latency_file *file = NULL;
    hwnas_latency_table *table = hwnas_latency_table_new();
    hwnas_trial trial = {.number = 1000000, .status = HWNAS_OK, .seconds = 1};
    int64_t position = 0;
    TRY_OUT(hwnas_store_walk(&position, store, take_event, NULL));
    TRY_OUT(hwnas_store_pack(store));
    TRY_OUT(hwnas_latency_of_study(&file, store));
    TRY_OUT(hwnas_latency_replay(table, file, "machine"));
    TRY_OUT(hwnas_store_set(store, "note", "fuzz"));
    TRY_OUT(hwnas_store_start(store, trial.number, "k=3", "0123456789abcdef0123456789abcdef", 0));
    TRY_OUT(hwnas_store_finish(store, &trial));
out:
    hwnas_latency_close(file);
    hwnas_latency_table_free(table);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_store *store = NULL;
    const char *path = fuzz_file(data, size, "fuzz.db");
    hwnas_status status = hwnas_store_open(&store, path, HWNAS_STORE_READ);
    if (status == HWNAS_OK)
        status = tell(store, path);
    if (status != HWNAS_OK)
        fuzz_check_message(status);
    hwnas_store_close(store);
    store = NULL;
    status = hwnas_store_open(&store, path, HWNAS_STORE_RESUME);
    if (status == HWNAS_OK)
        status = go_on(store);
    if (status != HWNAS_OK)
        fuzz_check_message(status);
    hwnas_store_close(store);
    return 0;
}
