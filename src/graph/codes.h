/* codes.h: weights as whole numbers of a byte (hwnas_codes in <hwnas/graph.h>). */
#ifndef HWNAS_GRAPH_CODES_H
#define HWNAS_GRAPH_CODES_H

#include <hwnas/graph.h>

/* The `n` values as floats; with scales they are rows of `width`. Many threads may call it. */
void hwnas_codes_fill(float *out, const hwnas_codes *codes, int64_t n, int64_t width);

#endif
