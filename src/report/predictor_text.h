/* predictor_text.h: what a fitted predictor has learned from, for people and for programs. */
#ifndef HWNAS_REPORT_PREDICTOR_TEXT_H
#define HWNAS_REPORT_PREDICTOR_TEXT_H

#include "report/rendering.h"
#include "space/space.h"

/* `file`: of a predictor that was loaded, so that it is sound. `space`: that it was fitted on;
 * NULL: it was fitted for any. `sizes`: that it has learned from (hwnas_predictor_sizes()), or
 * NULL. */
struct hwnas_sizes;
void hwnas_predictor_tell(hwnas_rendering *out, const char *name, const json_t *file,
                          const hwnas_space *space, const struct hwnas_sizes *sizes);

#endif
