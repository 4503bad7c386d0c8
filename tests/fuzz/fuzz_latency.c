/* Any bytes as the cache of latencies: it is used, or put aside and begun anew; either way it takes
 * one observation more and gives it back. */
#include <math.h>
#include <stdlib.h>

#include "fuzz.h"
#include "latency/latency_file.h"

static void check_estimate(hwnas_latency_table *table)
{
    hwnas_latency_estimate estimate;
    hwnas_latency_state state;
    hwnas_parts parts = {0};
    hwnas_graph_cut(&parts, fuzz_graph());
    hwnas_latency_table_describe(&state, table);
    if (hwnas_latency_table_estimate(&estimate, table, &parts))
        FUZZ_CHECK(estimate.seconds > 0 && estimate.low <= estimate.seconds &&
                   estimate.seconds <= estimate.high);
    FUZZ_CHECK(!isnan(hwnas_latency_table_doubt(table, &parts)));
    hwnas_parts_done(&parts);
}

static hwnas_status use(hwnas_latency_file *file)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_measurement measurement = {
        .n_samples = 20, .p50 = 1e-3, .p50_low = 0.9e-3, .p50_high = 1.1e-3, .min = 0.8e-3};
    hwnas_latency_table *table = hwnas_latency_table_new();
    hwnas_observation *observation = hwnas_observation_new(fuzz_graph(), &measurement, NULL);
    FUZZ_CHECK(observation);
    TRY_OUT(hwnas_latency_load(table, file, "machine", INT64_MAX));
    check_estimate(table);
    TRY_OUT(hwnas_latency_add(file, "machine", observation));
    TRY_OUT(hwnas_latency_replay(table, file, "machine"));
    check_estimate(table);
out:
    hwnas_observation_free(observation);
    hwnas_latency_table_free(table);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_latency_file *file = NULL;
    char *note = NULL;
    hwnas_status status = hwnas_latency_open(&file, &note, fuzz_file(data, size, "latency-3.db"));
    if (status == HWNAS_OK)
        status = use(file);
    if (status != HWNAS_OK)
        fuzz_check_message(status);
    hwnas_latency_close(file);
    free(note);
    return 0;
}
