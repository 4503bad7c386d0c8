/* warm_order.h: which networks of a study of another device are worth measuring on this one.
 *
 * The latencies there are a prior: they are carried over as those of a table are
 * (latency/transfer.h), corrected by what was measured here. They decide what is measured, and are
 * written nowhere. */
#ifndef HWNAS_STUDY_WARM_ORDER_H
#define HWNAS_STUDY_WARM_ORDER_H

#include "study/session.h"

typedef struct hwnas_warm_order hwnas_warm_order;

/* NULL: it cannot help: the study is of the same device, or too small, or there are several
 * devices. */
HWNAS_CHECKED hwnas_status hwnas_warm_order_open(hwnas_warm_order **out, const hwnas_session *s);
void hwnas_warm_order_close(hwnas_warm_order *order); /* accepts NULL */
/* Those that tell most of the others. */
int hwnas_warm_order_first(hwnas_arch *out[HWNAS_WARM_FIRST], const hwnas_warm_order *order,
                           uint64_t seed);
/* Those that should be on the front, by what the session has measured, evenly from one end to the
 * other. *n 0: there are none, or too little was measured. `error`: of the estimates, each measured
 * network left out in turn; the median, relative. A failure is the study's: it cannot be read. */
HWNAS_CHECKED hwnas_status hwnas_warm_order_next(hwnas_arch *out[HWNAS_WARM_ROUND], int *n,
                                                 double *error, hwnas_warm_order *order,
                                                 const hwnas_session *s);

#endif
