/* Any bytes as a space: it is refused with a message, or its first and last networks are built and
 * their codes read back. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "graph/elaborate.h"

/* Every failure has a place as well. */
static void check_message(hwnas_status status)
{
    const hwnas_error *error = hwnas_last_error();
    fuzz_check_refused(status);
    FUZZ_CHECK(!strcmp(error->file, "fuzz.yaml") && error->line > 0 && error->column > 0);
}

static void check_code(const hwnas_arch *arch)
{
    hwnas_arch *same = NULL;
    char *code = hwnas_arch_code(arch);
    hwnas_status status = hwnas_arch_parse(&same, arch->space, code);
    FUZZ_CHECK(status == HWNAS_OK && hwnas_arch_equal(arch, same));
    hwnas_arch_free(same);
    free(code);
}

static void check_network(const hwnas_arch *arch)
{
    hwnas_graph *graph = NULL;
    hwnas_status status = hwnas_graph_build(&graph, arch, 1);
    FUZZ_CHECK(status == HWNAS_OK); /* hwnas_graph_check() has built it before */
    hwnas_costs costs;
    hwnas_graph_costs(&costs, graph);
    FUZZ_CHECK(costs.params >= 0 && costs.macs >= 0 && costs.peak_bytes > 0);
    hwnas_graph_digest(graph);
    hwnas_graph_free(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_space *space = NULL;
    hwnas_status status = hwnas_space_parse(&space, "fuzz.yaml", (const char *)data, size, NULL);
    if (status == HWNAS_OK)
        status = hwnas_graph_check(space);
    if (status == HWNAS_OK) {
        hwnas_arch *arch = hwnas_arch_new(space);
        if (hwnas_arch_settle(arch)) {
            check_network(arch);
            check_code(arch);
        }
        for (size_t i = 0; i < space->n_genes; i++)
            arch->genes[i] = (uint16_t)(space->genes[i].n_values - 1);
        if (hwnas_arch_settle(arch))
            check_code(arch);
        hwnas_arch_free(arch);
        free(hwnas_space_count(space, NULL));
    } else {
        check_message(status);
    }
    hwnas_space_free(space);
    return 0;
}
