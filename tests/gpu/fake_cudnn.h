/* fake_cudnn.h: what the files of the stand-in for cuDNN share. */
#ifndef TEST_GPU_FAKE_CUDNN_H
#define TEST_GPU_FAKE_CUDNN_H

#include <cudnn.h>
#include <stdbool.h>

#include "device/cudnn/cudnn_names.h"
#include "fake_gpu.h"

enum { FAKE_MAX_ATTRS = 12, FAKE_MAX_RANK = 5, FAKE_MAX_PACK = 64 };

/* A descriptor: what was set, as it was set. Descriptors among the values are held by it. */
typedef struct fake_attr {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t n;
    void *values;
} fake_attr;

typedef struct fake_descriptor {
    cudnnBackendDescriptorType_t type;
    int refs, n_attrs;
    bool is_final;
    bool has_kernel; /* of a kernel cache: one was compiled for it */
    fake_attr attrs[FAKE_MAX_ATTRS];
} fake_descriptor;

/* What was set under the name; NULL: nothing. */
const fake_attr *fake_find(const fake_descriptor *d, cudnnBackendAttributeName_t name);
/* The descriptor among what was set; NULL: there is none. */
const fake_descriptor *fake_child(const fake_descriptor *d, cudnnBackendAttributeName_t name);
int64_t fake_int(const fake_descriptor *d, cudnnBackendAttributeName_t name, int64_t otherwise);

/* A plan with its pointers, as they were when it was enqueued; numbers by value were copied then.
 */
typedef struct fake_run {
    fake_call call;
    fake_descriptor *graph;
    int engine; /* of the two */
    int n;
    int64_t ids[FAKE_MAX_PACK];
    void *pointers[FAKE_MAX_PACK];
    float numbers[FAKE_MAX_PACK];
    char *workspace;
} fake_run;

/* What a plan says that it wants. */
enum { FAKE_WORKSPACE = 512 };

/* Computes the graph; fake_cudnn_ops.c. */
CUresult fake_run_graph(const fake_run *run);

/* Types: sizes, and values as floats. */
size_t fake_type_size(cudnnDataType_t type);
float fake_read(const void *at, cudnnDataType_t type, int64_t i);
void fake_write(void *at, cudnnDataType_t type, int64_t i, double value);

#endif
