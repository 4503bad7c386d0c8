/* streamed.h: samples of a runner that only times runs: the search decides when there are enough,
 * and makes a measurement of them. */
#ifndef HWNAS_MEASURE_STREAMED_H
#define HWNAS_MEASURE_STREAMED_H

#include <jansson.h>

#include "measure/measure.h"

enum { HWNAS_STREAMED_MOST = 1000000 };

typedef struct hwnas_streamed {
    double *seconds, *sorted;
    size_t n, room, n_judged;
    double sum;
    bool is_told; /* that there are enough */
} hwnas_streamed;

void hwnas_streamed_done(hwnas_streamed *s); /* may be used again after */
/* false: the frame is none of samples, a sample is not above 0, or there are too many. */
bool hwnas_streamed_add(hwnas_streamed *s, const json_t *frame);
/* Whether the interval, the limit or the time says that it is enough; true once. */
bool hwnas_streamed_is_enough(hwnas_streamed *s, const hwnas_measure_options *options);
/* false: there are no samples. `answer` may say what a runner alone knows. */
bool hwnas_streamed_conclude(hwnas_measurement *out, hwnas_streamed *s, const json_t *answer,
                             const hwnas_measure_options *options);

#endif
