/* byte_tables.h: what is done to each byte by itself, as a table of 256 bytes.
 *
 * Between two tensors of bytes any functions, sums and products with numbers, and roundings to
 * bytes come to one byte for each byte: a swish of bytes takes a third of the time of a swish of
 * floats. */
#ifndef HWNAS_DEVICE_ONEDNN_BYTE_TABLES_H
#define HWNAS_DEVICE_ONEDNN_BYTE_TABLES_H

#include "device/onednn/groups.h"
#include "device/onednn/onednn_steps.h"

/* A quantisation with all before it, back to a single tensor of bytes: hwnas_fusion_begin. */
bool hwnas_onednn_take_table(hwnas_fusion *f, void *group, int node);
HWNAS_CHECKED hwnas_status hwnas_onednn_table_compile(hwnas_onednn_step *step,
                                                      const hwnas_onednn_source *source,
                                                      const hwnas_onednn_group *group,
                                                      hwnas_arena *arena);
/* table[in[i]] of each of `n` bytes; `out` may be `in`. */
void hwnas_onednn_look_up(uint8_t *out, const uint8_t *in, int64_t n, const uint8_t table[256]);
extern const hwnas_onednn_kind hwnas_onednn_byte_tables;

#endif
