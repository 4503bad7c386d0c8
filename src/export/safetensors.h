/* safetensors.h: named tensors as a file of the format safetensors: eight bytes that say how long
 * the header is, the header in JSON, the values. https://huggingface.co/docs/safetensors */
#ifndef HWNAS_EXPORT_SAFETENSORS_H
#define HWNAS_EXPORT_SAFETENSORS_H

#include "base/str.h"
#include "graph/graph.h"

typedef struct hwnas_safetensors {
    hwnas_str header, values;
} hwnas_safetensors;

/* Adds a tensor, of which `values` are the elements. It is kept as the type of PyTorch's that holds
 * `dtype`: floats as float32, large unsigned numbers as int32 or int64. */
void hwnas_safetensors_add(hwnas_safetensors *to, const char *name, hwnas_dtype dtype, int rank,
                           const int64_t *dims, const float *values);
/* Appends the file's bytes, and empties `from`. */
void hwnas_safetensors_write(hwnas_str *out, hwnas_safetensors *from);

#endif
