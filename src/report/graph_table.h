/* graph_table.h: one network as a table of its layers, for people and for programs. */
#ifndef HWNAS_REPORT_GRAPH_TABLE_H
#define HWNAS_REPORT_GRAPH_TABLE_H

#include <jansson.h>

#include "base/str.h"
#include "graph/graph.h"

void hwnas_graph_text(hwnas_str *out, const hwnas_graph *graph);
/* One object, format "hwnas.network" version 1. A new reference. */
json_t *hwnas_graph_json(const hwnas_graph *graph);

#endif
