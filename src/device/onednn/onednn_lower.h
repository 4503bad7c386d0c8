/* onednn_lower.h: a graph of ours as a graph of oneDNN.
 *
 * One operator of ours becomes one of oneDNN's, or a wildcard, around which oneDNN forms its
 * partitions and which a step of ours runs. Ids stay: an operator's is the index of its node, a
 * logical tensor's the index of its tensor. */
#ifndef HWNAS_DEVICE_ONEDNN_LOWER_H
#define HWNAS_DEVICE_ONEDNN_LOWER_H

#include <oneapi/dnnl/dnnl_graph.h>

#include "device/onednn/source.h"
#include "device/onednn/onednn_steps.h"
#include "graph/fusion.h"

/* A failure of oneDNN as HWNAS_E_LIBRARY or HWNAS_E_MEMORY: it could not VERB 'NAME'. */
HWNAS_CHECKED hwnas_status hwnas_onednn_status(dnnl_status_t status, const char *verb,
                                               const char *name);
#define TRY_DNNL(verb, name, call) TRY(hwnas_onednn_status((call), (verb), (name)))
#define TRY_DNNL_OUT(verb, name, call) TRY_OUT(hwnas_onednn_status((call), (verb), (name)))

/* Adds every node; those that are in a group of `plan` as wildcards. Tensors of
 * which `is_end` says so are kept from disappearing inside of a partition. An
 * operator without a rule: HWNAS_E_UNSUPPORTED. */
HWNAS_CHECKED hwnas_status hwnas_onednn_lower(dnnl_graph_graph_t target,
                                              const hwnas_onednn_source *source,
                                              const hwnas_fusion *plan, const bool *is_end);
/* Of a node that was lowered: the kind of step that runs it, or NULL where oneDNN does. */
const hwnas_onednn_kind *hwnas_onednn_own(const hwnas_onednn_source *source,
                                          const hwnas_node *node);

#endif
