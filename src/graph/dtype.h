/* dtype.h: what may be asked of a tensor's type. */
#ifndef HWNAS_GRAPH_DTYPE_H
#define HWNAS_GRAPH_DTYPE_H

#include <hwnas/graph.h>

const char *hwnas_dtype_name(hwnas_dtype dtype); /* "float32" */
bool hwnas_dtype_is_whole(hwnas_dtype dtype);    /* integers and truth values */

#endif
