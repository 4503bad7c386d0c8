/* base_model.h: a trained model as the source of a space's networks: the original, what goes
 * together in it, and how a network is made of it. */
#ifndef HWNAS_DERIVE_BASE_MODEL_H
#define HWNAS_DERIVE_BASE_MODEL_H

#include <pthread.h>

#include "derive/coupling.h"
#include "graph/op.h"
#include "space/space.h"

/* The model with one batch. BatchNorms are folded: this is what is deployed, and one kind of weight
 * less to care for. */
typedef struct hwnas_original {
    int batch;
    hwnas_graph *graph;
    hwnas_coupling *coupling;
    /* By group: places among its sets, those that have to stay first, then by importance. Sets
     * have other numbers in an original with another batch; their places are the same. */
    int **ranking;
    int *n_needed; /* by group: how many have to stay; without them a tensor would lose all places
                    */
} hwnas_original;

typedef struct hwnas_base_model {
    char *path;
    pthread_mutex_t lock; /* of what follows */
    size_t n, capacity;
    hwnas_original **originals; /* one for each batch that was asked for */
} hwnas_base_model;

/* HWNAS_E_INPUT, _NOT_FOUND, _UNSUPPORTED of the file. */
HWNAS_CHECKED hwnas_status hwnas_base_model_open(hwnas_base_model **out, const char *path);
void hwnas_base_model_close(hwnas_base_model *model); /* accepts NULL */
/* Borrowed; any thread may ask. A model whose batch is fixed has no other: HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_base_model_original(const hwnas_original **out,
                                                     hwnas_base_model *model, int batch);

/* The model has the same groups with both batches, so that a ranking of one is one of the other. */
bool hwnas_original_has_same_groups(const hwnas_original *a, const hwnas_original *b);

/* The ranking by another importance of sets; those that have to stay are the same. */
int **hwnas_original_rank(const hwnas_original *original, const double *importance);
void hwnas_ranking_free(int **ranking, const hwnas_original *original); /* accepts NULL */

/* What is to be made of an original. */
typedef struct hwnas_derivation {
    const hwnas_original *original;
    int *const *ranking;     /* borrowed: the original's, or another */
    bool with_weights;       /* else weights of more than a thousand values have none */
    bool *is_kept;           /* by set */
    int *replaced_by;        /* by tensor: the one that takes its place, or itself */
    int *kernel;             /* by node: height and width that are left of its kernel; 0: all */
    hwnas_op_id *op;         /* by node */
    int64_t image[2];        /* height and width that the first input is brought to; 0: as it is */
    hwnas_place image_place; /* who says so */
} hwnas_derivation;

void hwnas_derivation_begin(hwnas_derivation *out, const hwnas_original *original);
void hwnas_derivation_end(hwnas_derivation *derivation);
/* The indices of a dimension of the original that are kept, in their order; yours to free(). */
int64_t *hwnas_derivation_kept(int64_t *n, const hwnas_derivation *derivation, int tensor, int dim);
/* The network: weights are parts of the original's, and have their names. Images that are too small
 * for it are HWNAS_E_INPUT at their place. */
HWNAS_CHECKED hwnas_status hwnas_derivation_build(hwnas_graph **out,
                                                  const hwnas_derivation *derivation);

#endif
