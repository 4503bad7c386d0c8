/* source.h: a graph as it goes to oneDNN: what each tensor's values are in memory.
 *
 * Our graphs keep everything as floats. Here an activation may be bf16 or f16, with casts where a
 * node wants another type, and 8-bit integers between a quantisation and its dequantisations. */
#ifndef HWNAS_DEVICE_ONEDNN_SOURCE_H
#define HWNAS_DEVICE_ONEDNN_SOURCE_H

#include <oneapi/dnnl/dnnl_graph.h>

#include "device/device.h"

typedef struct hwnas_onednn_source {
    const hwnas_graph *graph;
    hwnas_graph *made;       /* the same, where it is ours */
    dnnl_data_type_t *kept;  /* by tensor */
    int *origin;             /* by node: which of the caller's graph, or -1; NULL: the same */
    /* (optional) Where weights are whole numbers in fewer bits (graph/pack_weights.h): `graph` has
     * them as floats, and this says, by tensor, of which node of `packed_graph` those are; -1: of
     * none. */
    int *packed_node;
    const hwnas_graph *packed_graph;
    hwnas_graph *made_packed_graph; /* the same, where it is ours */
} hwnas_onednn_source;

/* A graph that has packed weights, or of which all are to be packed in `bits` (0: as it is). It
 * must outlive the source. */
HWNAS_CHECKED hwnas_status hwnas_onednn_source_packed(hwnas_onednn_source *out,
                                                      const hwnas_graph *graph, int bits);
/* The graph as floats and bytes; for others see casts.h. It must outlive the source. Of quantised
 * graphs see device/ranges.h. */
void hwnas_onednn_source_init(hwnas_onednn_source *out, const hwnas_graph *graph);
void hwnas_onednn_source_done(hwnas_onednn_source *source);

/* Whether some of it is kept as bf16 or f16. */
bool hwnas_onednn_has_low(const hwnas_onednn_source *source);
/* Whether the node brings values from one type in memory into another. */
bool hwnas_onednn_changes_type(const hwnas_onednn_source *source, const hwnas_node *node);

/* What a tensor takes in plain layout. */
size_t hwnas_onednn_bytes(const hwnas_onednn_source *source, int tensor);
/* Writes the weight's values as they are kept. */
HWNAS_CHECKED hwnas_status hwnas_onednn_fill(void *out, const hwnas_onednn_source *source,
                                             int tensor);

#endif
