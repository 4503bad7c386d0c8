/* torch_helpers.h: what PyTorch lacks, as text. */
#ifndef HWNAS_EXPORT_TORCH_TREE_HELPERS_H
#define HWNAS_EXPORT_TORCH_TREE_HELPERS_H

typedef struct hwnas_torch_helper {
    const char *name, *text;
} hwnas_torch_helper;
extern const hwnas_torch_helper hwnas_torch_helpers[]; /* ends with a NULL name */

#endif
