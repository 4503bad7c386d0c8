/* quantity.h: what people write on a command line with a unit: "8ms", "1000/s", "p99". */
#ifndef HWNAS_CLI_QUANTITY_H
#define HWNAS_CLI_QUANTITY_H

#include <hwnas.h>

/* Each is more than 0; anything else is HWNAS_E_USAGE that names the option. */

/* "8ms", "0.5 s", "800us" */
HWNAS_CHECKED hwnas_status hwnas_quantity_seconds(double *out, const char *option,
                                                  const char *text);
/* A second: "1000", "1000/s", "60/min", "5/h", "1e6/day" */
HWNAS_CHECKED hwnas_status hwnas_quantity_rate(double *out, const char *option, const char *text);
/* "p50", "p90", "p99" as 0.5, 0.9, 0.99 */
HWNAS_CHECKED hwnas_status hwnas_quantity_percentile(double *out, const char *option,
                                                     const char *text);

#endif
