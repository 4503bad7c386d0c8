/* runner_again.c: a link that was cut costs a retry, and no trial. */
#include <math.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "measure/runner_priv.h"

static const double FIRST_NAP = 0.1, LONGEST_NAP = 10;
/* As a runner that is waited for has to say who it is. */
static const double LONGEST_LOOK = 60;
/* Once it has begun to: the other boards wait meanwhile. */
static const double LONGEST_PAUSE = 5;

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

bool hwnas_runner_tries_again(hwnas_status *status, hwnas_losses *losses, hwnas_runner *r,
                              const hwnas_measure_options *o)
{
    const bool in_doubt = r->is_in_doubt, may_return = r->may_return || in_doubt;
    const bool was_starting = r->is_starting;
    r->may_return = r->is_in_doubt = false;
    if (*status == HWNAS_OK || !may_return || (o->stop && *o->stop))
        return false;
    if (r->may_be_left &&
        !in_doubt) { /* after silence another board tells whether it is the network's */
        r->is_lost = true;
        return false;
    }
    /* Whether the link is stuck or the network, the second time tells. A machine that answered
     * before, and is silent as it is started again, has not seen the network. */
    if (*status == HWNAS_E_TIMEOUT && !(was_starting && r->is_known)) {
        if (losses->was_silent)
            return false;
        losses->was_silent = true;
    }
    if (!was_starting) {
        r->lost_since = 0;
        if (++losses->n > HWNAS_MOST_CUTS)
            return give_up(status, HWNAS_E_CRASHED, "again and again while this was measured");
    } else {
        const double now = hwnas_now();
        r->lost_since = r->lost_since > 0 ? r->lost_since : now;
        if (now - r->lost_since > HWNAS_LINK_PATIENCE)
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

/* ---- Several boards ---- */

bool hwnas_runner_is_ready(const hwnas_runner *r)
{
    return r->pid && !r->is_starting;
}

bool hwnas_runner_is_missing(const hwnas_runner *r)
{
    return r->nap > 0;
}

void hwnas_runner_may_be_left(hwnas_runner *r, bool may_be_left)
{
    r->may_be_left = may_be_left;
    r->is_lost = false;
}

bool hwnas_runner_is_lost(const hwnas_runner *r)
{
    return r->is_lost;
}

void hwnas_runner_leave(hwnas_runner *r)
{
    hwnas_orders_drop(r);
    hwnas_runner_end_child(r, true);
    r->is_lost = r->may_return = false;
    r->nap = r->nap > 0 ? fmin(2 * r->nap, LONGEST_NAP) : FIRST_NAP;
    r->next_look = hwnas_now() + r->nap;
}

/* Whether it has said something, or has gone. */
static bool has_spoken(const hwnas_runner *r)
{
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

void hwnas_runner_look(hwnas_runner *r, const hwnas_measure_options *o)
{
    const double now = hwnas_now();
    const double nap = r->nap;
    const bool was_other = r->is_other;
    hwnas_status status = HWNAS_OK;
    if (hwnas_runner_is_ready(r) || (!r->pid && now < r->next_look))
        return;
    if (!r->pid) {
        r->looking_since = now;
        status = hwnas_runner_begin_opening(r, o);
    } else if (has_spoken(r)) {
        status = hwnas_runner_end_opening(r, LONGEST_PAUSE, o);
        if (status == HWNAS_OK && nap > 0)
            hwnas_log(HWNAS_LOG_WARNING, "'%s' is back", r->device);
        if (r->is_other && !was_other)
            hwnas_log(HWNAS_LOG_WARNING, "%s; the other boards go on", hwnas_last_error()->message);
    } else if (now - r->looking_since > LONGEST_LOOK) {
        status = HWNAS_E_TIMEOUT;
    }
    if (status == HWNAS_OK)
        return;
    hwnas_error_clear();
    hwnas_runner_leave(r);
}
