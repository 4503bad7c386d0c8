/* array_file.h: an array in a file, read from its first row to its last.
 *
 * Files of NumPy (.npy; .npz, an archive of such) and of MNIST (IDX), which may be packed by gzip.
 * What a file is, its first bytes say. A row is all that has one index of the first dimension: a
 * sample, a label. Rows are read as they are asked for, so an array may be larger than memory. */
#ifndef HWNAS_DATA_ARRAY_FILE_H
#define HWNAS_DATA_ARRAY_FILE_H

#include <hwnas/graph.h>

#include "data/byte_stream.h"

typedef struct hwnas_array_file {
    char *path, *name; /* name: in .npz; NULL: the file's one array */
    hwnas_dtype dtype;
    bool is_big_endian;
    int rank;
    int64_t dims[HWNAS_MAX_RANK];
    int64_t row_count; /* elements of a row */
    int64_t next_row;  /* that is read next */
    hwnas_byte_stream *stream;
} hwnas_array_file;

/* Reads the header. The array has rank 1 or more and at least one row, of at most 2^40 elements. */
HWNAS_CHECKED hwnas_status hwnas_array_open(hwnas_array_file **out, const char *path,
                                            const char *name);
void hwnas_array_close(hwnas_array_file *array); /* accepts NULL */

/* Reads the next `n` rows, of which there must be so many. With the last row the file must end. */
HWNAS_CHECKED hwnas_status hwnas_array_read(double *out, hwnas_array_file *array, int64_t n);
/* Goes back to the first row. */
HWNAS_CHECKED hwnas_status hwnas_array_rewind(hwnas_array_file *array);

/* "(60000, 28, 28)", as NumPy writes it; yours to free(). */
char *hwnas_dims_text(int rank, const int64_t *dims);

/* ---- The headers, for array_file.c ---- */

/* Each reads the rest of a header whose first four bytes are `start`; false in *is_mine: it is
 * another kind's. */
HWNAS_CHECKED hwnas_status hwnas_npy_read_header(hwnas_array_file *array, bool *is_mine,
                                                 const unsigned char *start);
HWNAS_CHECKED hwnas_status hwnas_idx_read_header(hwnas_array_file *array, bool *is_mine,
                                                 const unsigned char *start);
/* Reads exactly `n` bytes of a header. */
HWNAS_CHECKED hwnas_status hwnas_array_take(hwnas_array_file *array, void *bytes, size_t n);
/* Bytes of an element in the file. */
size_t hwnas_array_item_bytes(hwnas_dtype dtype);

#endif
