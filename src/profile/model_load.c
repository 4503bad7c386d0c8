#include "profile/model_load.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/str.h"
#include "derive/derive.h"
#include "onnx/onnx.h"

enum { MAX_BATCH = 1 << 20 };

static hwnas_status check_batch(const hwnas_model_request *request, const hwnas_onnx_batch *own)
{
    if (!request->batch || own->length == request->batch)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "%s has a batch of %lld, not %d",
                                 request->name, (long long)own->length, request->batch),
                      own->is_fixed ? "the file fixes it: leave --batch out, or export the model "
                                      "with an open batch"
                                    : "that is what --shape says: leave --batch out");
}

static hwnas_status load_onnx(hwnas_graph **out, int *batch, const hwnas_model_request *request,
                              hwnas_str *skipped)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *graph = NULL;
    hwnas_onnx_batch own;
    const hwnas_onnx_shapes shapes = {.batch = request->batch,
                                      .n = request->set ? request->set->n : 0,
                                      .list = request->set ? request->set->list : NULL,
                                      .n_samples = request->n_samples,
                                      .samples = request->samples};
    TRY_OUT(hwnas_onnx_load_shaped(&graph, &own, request->name, &shapes, skipped));
    if (!graph->n_inputs) {
        status = hwnas_fail(HWNAS_E_INPUT, NULL,
                            graph->n_absent ? "no input of %s has values in this shape"
                                            : "%s has no inputs, only constants",
                            request->name);
        goto out;
    }
    TRY_OUT(check_batch(request, &own));
    *batch = own.length >= 1 && own.length <= MAX_BATCH ? (int)own.length : 1;
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

static bool is_folder(const char *name)
{
    struct stat found;
    return stat(name, &found) == 0 && S_ISDIR(found.st_mode);
}

hwnas_status hwnas_model_load_shaped(hwnas_graph **out, int *batch,
                                     const hwnas_model_request *request, hwnas_str *skipped)
{
    hwnas_space *space = NULL;
    hwnas_arch *arch = NULL;
    if (hwnas_ends_with(request->name, ".onnx")) {
        if (request->code)
            return hwnas_fail(HWNAS_E_USAGE, NULL, "%s is one network: --arch has no meaning",
                              request->name);
        return load_onnx(out, batch, request, skipped);
    }
    if (request->set && request->set->n)
        return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                     "%s is no ONNX file: --shape has no meaning", request->name),
                          "a space has settings: bert_base:length=64");
    hwnas_status status = hwnas_model_pick(&space, &arch, request->name, request->code);
    if (status == HWNAS_E_NOT_FOUND && is_folder(request->name))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "'%s' is a folder, and a model is a file",
                                     request->name),
                          "name its files: '%s'/*.onnx, or a space's YAML; or a space that ships",
                          request->name);
    TRY(status);
    *batch = request->batch ? request->batch : 1;
    status = hwnas_graph_build_trained(out, arch, *batch);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
    return status;
}

hwnas_status hwnas_model_load(hwnas_graph **out, const char *name, const char *code, int batch,
                              hwnas_str *skipped)
{
    const hwnas_model_request request = {.name = name, .code = code, .batch = batch};
    return hwnas_model_load_shaped(out, &batch, &request, skipped);
}
