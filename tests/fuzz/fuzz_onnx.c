/* Any bytes as an ONNX file: they are refused with a message, or folded, priced, and written again
 * as a file that means the same. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "onnx/onnx.h"

/* Larger weights would make slow cases of no interest. */
static const int64_t MAX_WEIGHTS = 1 << 20;

static void check_message(hwnas_status status)
{
    FUZZ_CHECK(status == HWNAS_E_INPUT || status == HWNAS_E_UNSUPPORTED ||
               status == HWNAS_E_MEMORY);
    fuzz_check_message(status);
}

/* What we write is read again, and is the same network. */
static void check_round_trip(const hwnas_graph *graph)
{
    void *bytes;
    size_t length;
    hwnas_graph *back;
    hwnas_status status = hwnas_onnx_write(&bytes, &length, graph, HWNAS_ONNX_SEEDS);
    if (status != HWNAS_OK) {
        check_message(status);
        return;
    }
    status = hwnas_onnx_read(&back, "again", bytes, length);
    FUZZ_CHECK(status == HWNAS_OK);
    const hwnas_digest before = hwnas_graph_digest(graph), after = hwnas_graph_digest(back);
    FUZZ_CHECK(!strcmp(before.hex, after.hex));
    hwnas_graph_free(back);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_graph *graph = NULL, *folded = NULL;
    hwnas_status status = hwnas_onnx_read(&graph, "fuzz.onnx", data, size);
    if (status != HWNAS_OK) {
        check_message(status);
        return 0;
    }
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    FUZZ_CHECK(costs.params >= 0 && costs.macs >= 0 && costs.peak_bytes >= 0);
    if (costs.weight_bytes <= MAX_WEIGHTS) {
        check_round_trip(graph);
        status = hwnas_graph_fold(&folded, graph);
        if (status == HWNAS_OK)
            hwnas_graph_costs(&costs, folded);
        else
            check_message(status);
    }
    hwnas_graph_free(folded);
    hwnas_graph_free(graph);
    return 0;
}
