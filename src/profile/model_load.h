/* model_load.h: a network by what a user calls it. */
#ifndef HWNAS_PROFILE_MODEL_LOAD_H
#define HWNAS_PROFILE_MODEL_LOAD_H

#include "base/str.h"
#include "graph/graph.h"
#include "profile/shapes.h"
#include "space/arch.h"

/* `name`: an ONNX file (NAME.onnx), a file of the space language, or the name of a space that ships
 * or of a network of the zoo, with settings behind it ("bert:length=64"). `code` says which network
 * of a space with choices; NULL: there is none to choose. A batch that is fixed in an ONNX file is
 * its own: another one than that is HWNAS_E_INPUT. `skipped`: see hwnas_onnx_load. */
HWNAS_CHECKED hwnas_status hwnas_model_load(hwnas_graph **out, const char *name, const char *code,
                                            int batch, hwnas_str *skipped);

/* What network it is to be. */
typedef struct hwnas_model_request {
    const char *name, *code;    /* as above */
    int batch;                  /* 0: the one that an ONNX file fixes, else 1 */
    const hwnas_shape_set *set; /* shapes of an ONNX file's inputs; NULL: as it has them */
    size_t n_samples;           /* what samples say of other open dimensions */
    const hwnas_onnx_sample *samples;
} hwnas_model_request;

/* The same; *batch is the one that it has. */
HWNAS_CHECKED hwnas_status hwnas_model_load_shaped(hwnas_graph **out, int *batch,
                                                   const hwnas_model_request *request,
                                                   hwnas_str *skipped);

/* The space of that name and its network of that code, as above; both are yours to free. */
HWNAS_CHECKED hwnas_status hwnas_model_pick(hwnas_space **out_space, hwnas_arch **out,
                                            const char *name, const char *code);

#endif
