/* finetune.h: a program that trains a network which was made of another. */
#ifndef HWNAS_EXPORT_FINETUNE_H
#define HWNAS_EXPORT_FINETUNE_H

#include "base/str.h"
#include "graph/graph.h"

/* The files that go with PREFIX.py, without PREFIX; ends with NULL. */
extern const char *const hwnas_finetune_suffixes[];

/* Writes PREFIX-finetune.py (training/finetune.py, with its settings), and the original that it
 * learns from as PREFIX-teacher.py with PREFIX-teacher.safetensors. The network itself is PREFIX.py.
 * `samples`: "FILE#KEY=VALUE,...", docs/predictors.md. Each file is whole or not there. */
HWNAS_CHECKED hwnas_status hwnas_export_finetune(const char *prefix, const char *samples,
                                                 const hwnas_graph *original);

#endif
