/* status.h: how failures travel.
 *
 * The lowest level that knows the fact writes the message, once, into a fixed record of this
 * thread (no allocation, so it works when memory is short). Every level above only cleans up and
 * forwards. Programming errors are asserts. */
#ifndef HWNAS_BASE_STATUS_H
#define HWNAS_BASE_STATUS_H

#include <hwnas.h>

/* Puts "CONTEXT: " before the recorded message; returns `status` unchanged. */
hwnas_status hwnas_context(hwnas_status status, const char *format, ...) HWNAS_PRINTF(2, 3);

/* Gives the recorded failure a place in the user's file unless it has one; returns `status`. */
hwnas_status hwnas_fail_at(hwnas_status status, const hwnas_place *place);

void hwnas_error_clear(void);

/* The status whose name is `name`, or HWNAS_N_STATUS. */
hwnas_status hwnas_status_from_name(const char *name);

/* Forwards a failure to the caller; for functions that own nothing yet. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        hwnas_status try_status_ = (call);                                                         \
        if (try_status_ != HWNAS_OK)                                                               \
            return try_status_;                                                                    \
    } while (0)

/* Forwards a failure through the function's one exit label; wants a local `status`. */
#define TRY_OUT(call)                                                                              \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status != HWNAS_OK)                                                                    \
            goto out;                                                                              \
    } while (0)

#endif
