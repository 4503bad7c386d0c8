/* sample.h: a table of trained networks, encoded. */
#ifndef HWNAS_PREDICT_SAMPLE_H
#define HWNAS_PREDICT_SAMPLE_H

#include "predict/model.h"
#include "space/table.h"

/* The name, in the place of a space's, of predictors that know only facts about graphs. */
#define HWNAS_ANY_SPACE "any"

typedef struct hwnas_sample {
    hwnas_space *space; /* NULL for HWNAS_ANY_SPACE */
    hwnas_feature_encoding *encoding;
    hwnas_rows rows;
    size_t n_networks; /* different encodings may be one network */
    json_t *domain;    /* domain.h; NULL for HWNAS_ANY_SPACE */
    hwnas_table *table; /* the same */
} hwnas_sample;

/* `space` is the name of one or a file, or HWNAS_ANY_SPACE; then the columns of the CSV are facts
 * (graph_facts.h) and one named `network`: rows of one network are never judged by each other. */
HWNAS_CHECKED hwnas_status hwnas_sample_load(hwnas_sample *out, const char *space, const char *data,
                                             const char *target);
void hwnas_sample_done(hwnas_sample *sample);

/* The target of each row; HWNAS_E_INPUT at the line of one without. Yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_table_results(double **out, const hwnas_table *table,
                                               const char *target);

#endif
