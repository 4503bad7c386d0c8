/* runner_again.c: a link that was cut costs a retry, and no trial. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "measure/runner_priv.h"

/* So often one request may lose its link while it is served: a network that takes the other machine
 * down each time must not be tried for ever. */
enum { MOST_CUTS = 10 };
/* A board that restarts is back by then. */
static const double PATIENCE = 300;
static const double FIRST_NAP = 0.1, LONGEST_NAP = 10;

static bool rest(double seconds, const hwnas_measure_options *o)
{
    const struct timespec nap = {.tv_nsec = 20000000};
    for (const double end = hwnas_now() + seconds; hwnas_now() < end;) {
        if (o->stop && *o->stop)
            return false;
        nanosleep(&nap, NULL);
    }
    return true;
}

static bool give_up(hwnas_status *status, hwnas_status failure, const char *why)
{
    char message[sizeof hwnas_last_error()->message];
    snprintf(message, sizeof message, "%s", hwnas_last_error()->message);
    *status = hwnas_hint(hwnas_fail(failure, NULL, "%.800s (%s)", message, why),
                         "a search goes on where it stopped when it is started again");
    return false;
}

bool hwnas_runner_tries_again(hwnas_status *status, int *n, hwnas_runner *r,
                              const hwnas_measure_options *o)
{
    const bool may_return = r->may_return, was_starting = r->is_starting;
    r->may_return = false;
    if (*status == HWNAS_OK)
        r->is_second = false;
    if (*status == HWNAS_OK || !may_return || (o->stop && *o->stop))
        return false;
    if (*status == HWNAS_E_TIMEOUT) {
        /* Whether the link is stuck or the network, the second time tells. */
        r->is_second = !r->is_second;
        if (!r->is_second)
            return false;
    }
    if (!was_starting) {
        r->lost_since = 0;
        if (++*n > MOST_CUTS)
            return give_up(status, HWNAS_E_CRASHED, "again and again while this was measured");
    } else {
        const double now = hwnas_now();
        r->lost_since = r->lost_since > 0 ? r->lost_since : now;
        if (now - r->lost_since > PATIENCE)
            return give_up(status, HWNAS_E_LIBRARY, "for five minutes");
    }
    hwnas_log(HWNAS_LOG_DEBUG, "%s; trying again", hwnas_last_error()->message);
    r->nap = was_starting ? fmin(2 * r->nap, LONGEST_NAP) : FIRST_NAP;
    if (was_starting && !rest(r->nap, o)) {
        *status = hwnas_fail(HWNAS_E_INTERRUPTED, NULL, "interrupted while the link was down");
        return false;
    }
    hwnas_error_clear();
    return true;
}
