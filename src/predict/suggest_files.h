/* suggest_files.h: suggested networks as files to train from, and a table to fill in. */
#ifndef HWNAS_PREDICT_SUGGEST_FILES_H
#define HWNAS_PREDICT_SUGGEST_FILES_H

#include "base/str.h"
#include "space/arch.h"

/* The table: what a row is, and an empty cell for its result. `space`: the name that `predictor
 * import` is to find the space by. */
HWNAS_CHECKED hwnas_status hwnas_suggest_table(hwnas_str *out, const char *space,
                                               hwnas_arch *const *archs, size_t n,
                                               const char *target, bool has_files);

/* Makes a directory with each network as ONNX, PyTorch and YAML, and the table: all of it or
 * nothing. `missing` gets a line for each file that a network does not have. */
HWNAS_CHECKED hwnas_status hwnas_suggest_write(hwnas_str *missing, const char *folder,
                                               hwnas_arch *const *archs, size_t n,
                                               const hwnas_str *table);

#endif
