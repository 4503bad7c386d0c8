/* exporter.h: an architecture in the formats that others read: a table of writers. */
#ifndef HWNAS_EXPORT_EXPORTER_H
#define HWNAS_EXPORT_EXPORTER_H

#include "base/str.h"
#include "graph/graph.h"
#include "space/arch.h"

/* Writes a whole file or none. HWNAS_E_USAGE for an unknown format. A module of a space that was
 * derived from a model has its weights beside it, as hwnas_export_graph() says. */
HWNAS_CHECKED hwnas_status hwnas_export(const char *path, const char *format,
                                        const hwnas_arch *arch, int batch);

/* Writes a graph as a PyTorch module, whose name ends in .py, and beside it its weights, with
 * .safetensors in the place of .py; another name is HWNAS_E_USAGE. `weights_path` (optional) gets
 * that name, which is yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_export_graph(const char *path, char **weights_path,
                                              const hwnas_graph *graph);

#endif
