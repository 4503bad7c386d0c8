/* constants.h: oneDNN's cache of constants, one for the process: weights in its own layout, and what
 * partitions make of their attributes. Several threads may call these. docs/engine.md has the facts. */
#ifndef HWNAS_DEVICE_ONEDNN_CONSTANTS_H
#define HWNAS_DEVICE_ONEDNN_CONSTANTS_H

#include <oneapi/dnnl/dnnl_graph.h>

/* Turns the cache on, and empties it. To be called whenever plain weights are freed. */
dnnl_status_t hwnas_onednn_forget_constants(void);

/* Around each run and each compilation: the cache is not turned off meanwhile. */
void hwnas_onednn_hold_constants(void);
void hwnas_onednn_release_constants(void);

/* What is compiled between these two finds its constants anew in each run. Other threads that want to
 * run or compile wait; the cache is empty afterwards. */
void hwnas_onednn_begin_without_constants(void);
void hwnas_onednn_end_without_constants(void);

#endif
