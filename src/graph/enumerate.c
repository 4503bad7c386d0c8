#include "graph/enumerate.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/elaborate.h"

hwnas_status hwnas_graph_check_settings(const hwnas_space *space, const char *name)
{
    const char joint = name[hwnas_space_name_length(name)] ? ',' : ':';
    hwnas_status status = HWNAS_OK;
    for (size_t i = 0; i < space->n_settings; i++)
        for (size_t v = 0; v < space->settings[i].n_values && status == HWNAS_OK; v++) {
            char *value = hwnas_value_text(&space->settings[i].values[v]);
            char *variant = hwnas_printf("%s%c%s=%s", name, joint, space->settings[i].name, value);
            hwnas_space *other = NULL;
            status = hwnas_graph_load_space(&other, variant);
            if (status != HWNAS_OK)
                hwnas_context(status, "with %s=%s", space->settings[i].name, value);
            hwnas_space_free(other);
            free(variant);
            free(value);
        }
    return status;
}

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(hwnas_digest));
}

hwnas_status hwnas_graph_count_distinct(uint64_t *out, const hwnas_space *space, uint64_t n)
{
    hwnas_status status = HWNAS_OK;
    hwnas_arch *arch = hwnas_arch_first(space);
    hwnas_digest *digests = hwnas_alloc(n * sizeof *digests);
    uint64_t i = 0, distinct = 0;
    do {
        hwnas_graph *graph;
        TRY_OUT(hwnas_graph_build(&graph, arch, 1));
        digests[i++] = hwnas_graph_digest(graph);
        hwnas_graph_free(graph);
    } while (hwnas_arch_next(arch) && i < n);
    qsort(digests, i, sizeof *digests, compare_digests);
    for (uint64_t k = 0; k < i; k++)
        distinct += k == 0 || compare_digests(&digests[k], &digests[k - 1]) != 0;
    *out = distinct;
out:
    free(digests);
    hwnas_arch_free(arch);
    return status;
}
