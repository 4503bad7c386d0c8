/* batches.h: samples as a graph takes them: in batches of its own, the last one filled up. */
#ifndef HWNAS_DATA_BATCHES_H
#define HWNAS_DATA_BATCHES_H

#include "data/dataset.h"
#include "graph/graph.h"

/* What tensors of a graph are, such as its inputs. Names and dimensions are the graph's; the list
 * is yours to free(). */
hwnas_array_info *hwnas_graph_arrays(const hwnas_graph *graph, size_t n, const int *tensors);

/* Opens files for the inputs of a graph, which is borrowed. */
HWNAS_CHECKED hwnas_status hwnas_graph_dataset_open(hwnas_dataset **out, const hwnas_graph *graph,
                                                    size_t n_files, const hwnas_data_file *files,
                                                    const hwnas_dataset_options *options);

/* The inputs as a whole, for one run; each is yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_graph_read_inputs(float **out, const hwnas_graph *graph,
                                                   size_t n_files, const hwnas_data_file *files);

/* Whether all inputs and outputs begin with the batch. */
bool hwnas_graph_takes_samples(const hwnas_graph *graph, int batch);
/* HWNAS_E_INPUT: an input or output does not begin with the batch, or the data is not for these
 * inputs. `name` is what messages call the network. */
HWNAS_CHECKED hwnas_status hwnas_batches_check(const hwnas_graph *graph, const char *name,
                                               int batch, const hwnas_dataset *data);
/* Fills what is left of a batch behind its first `n` samples with the last of them. */
void hwnas_batch_fill_up(float *const *inputs, const hwnas_graph *graph, int batch, int64_t n);

/* Samples that give ranges of activations, where nobody says how many. */
enum { HWNAS_DEFAULT_CALIBRATE = 64 };

/* A part of the data on its way through a graph; begins at the first sample. */
typedef struct hwnas_batches {
    const hwnas_graph *graph;
    int batch;
    hwnas_dataset *data; /* at its sample number `next` */
    int64_t next, left;  /* left: of the samples of this part, as many as are wanted still */
    int64_t step;        /* those whose number is a multiple of this ... */
    bool are_others;     /* ... or all the others */
} hwnas_batches;

/* Samples that a part has. */
int64_t hwnas_batches_count(const hwnas_dataset *data, int64_t step, bool are_others);
/* The next batch, filled up: `*n` samples of it count, 0: there are no more. `labels` may be NULL.
 */
HWNAS_CHECKED hwnas_status hwnas_batches_next(int64_t *n, float *const *inputs, double *labels,
                                              hwnas_batches *batches);
/* All that are left, the inputs of a batch one after the other; labels sample by sample (NULL: not
 * wanted). Both yours to free(); the data then is at its first sample. */
HWNAS_CHECKED hwnas_status hwnas_batches_read(float **out, double **labels, size_t *n_batches,
                                              hwnas_batches *batches);

#endif
