/* clock.h: seconds on the monotonic clock. */
#ifndef HWNAS_BASE_CLOCK_H
#define HWNAS_BASE_CLOCK_H

double hwnas_now(void);

#endif
