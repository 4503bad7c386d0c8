#include "profile/model_load.h"

#include <stdlib.h>

#include "base/str.h"
#include "derive/derive.h"
#include "onnx/onnx.h"

static hwnas_status load_onnx(hwnas_graph **out, const char *path, int batch, hwnas_str *skipped)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = NULL;
    TRY_OUT(hwnas_onnx_load_batch(&graph, path, batch, skipped));
    if (!graph->n_inputs) {
        status = hwnas_fail(HWNAS_E_INPUT, NULL, "%s has no inputs, only constants", path);
        goto out;
    }
    const int64_t own = graph->tensors[graph->inputs[0]].dims[0];
    if (own != batch) {
        status = hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "%s has a batch of %lld, not %d", path,
                                       (long long)own, batch),
                            "export the model with that batch");
        goto out;
    }
    *out = graph;
    graph = NULL;
out:
    hwnas_graph_free(graph);
    return status;
}

hwnas_status hwnas_model_pick(hwnas_space **out_space, hwnas_arch **out, const char *name,
                              const char *code)
{
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_arch *arch = NULL;
    TRY_OUT(hwnas_load_space(&space, name));
    if (code) {
        TRY_OUT(hwnas_arch_parse(&arch, space, code));
    } else if (hwnas_space_count_up_to(space, 1) != 1) {
        status =
            hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "which network of %s?", space->name),
                       "give its code (--arch CODE); 'hwnas space sample %s' gives some", name);
        goto out;
    } else {
        arch = hwnas_arch_first(space);
    }
    *out_space = space;
    *out = arch;
    space = NULL;
out:
    hwnas_space_free(space);
    return status;
}

hwnas_status hwnas_model_load(hwnas_graph **out, const char *name, const char *code, int batch,
                              hwnas_str *skipped)
{
    hwnas_space *space = NULL;
    hwnas_arch *arch = NULL;
    if (hwnas_ends_with(name, ".onnx")) {
        if (code)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "%s is one network: --arch has no meaning",
                              name);
        return load_onnx(out, name, batch, skipped);
    }
    TRY(hwnas_model_pick(&space, &arch, name, code));
    hwnas_status status = hwnas_graph_build_trained(out, arch, batch);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return status;
}
