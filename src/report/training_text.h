/* training_text.h: predictors and results of trainings, for people, programs and spreadsheets. */
#ifndef HWNAS_REPORT_TRAINING_TEXT_H
#define HWNAS_REPORT_TRAINING_TEXT_H

#include "predict/import.h"
#include "predict/predict.h"
#include "predict/vector.h"
#include "report/rendering.h"
#include "space/table.h"

/* How good a predictor is. `how` it was found out; `chosen` (optional): what was fitted, in words.
 */
void hwnas_scores_tell(hwnas_rendering *out, const hwnas_predictor_scores *scores, const char *how,
                       const char *chosen);
/* What came of an import into a file, and what is to be done next. */
void hwnas_import_tell(hwnas_rendering *out, const hwnas_import_result *result, const char *into,
                       const char *space, const char *target);
/* Of each row of a table code, mean and standard deviation, and the choices in which it lies
 * outside what the predictor has learned from, if that is known. */
void hwnas_estimates_csv(hwnas_str *out, const hwnas_table *table, const hwnas_estimate *estimates,
                         const hwnas_predictor *predictor);
/* Of each row of a table its code and its vector. */
void hwnas_vectors_csv(hwnas_str *out, const hwnas_table *table, const hwnas_space *space,
                       const hwnas_vector_layout *layout);

#endif
