/* torch_print.h: the tree of torch_tree.h as text: what the files of stage 2 share. */
#ifndef HWNAS_EXPORT_TORCH_PRINT_H
#define HWNAS_EXPORT_TORCH_PRINT_H

#include "export/torch_tree.h"

enum { HWNAS_TORCH_INDENT = 4 }; /* spaces */

/* Where a residual connection depends on an argument, what the class calls that: "use_residual". */
const char *hwnas_class_switch(const hwnas_class *class, const hwnas_torch_piece *part);
void hwnas_class_print_init(hwnas_str *out, const hwnas_class *class);
void hwnas_class_print_forward(hwnas_str *out, const hwnas_class *class);

#endif
