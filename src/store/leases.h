/* leases.h: which worker has which trial of a study that several change at once.
 *
 * A lease is one row beside a running trial. It ends by itself unless it is renewed, by the clock
 * of the server, so clocks that differ do no harm; then another worker takes the trial over. */
#ifndef HWNAS_STORE_LEASES_H
#define HWNAS_STORE_LEASES_H

#include "store/store.h"

enum { HWNAS_LEASE_SECONDS = 60 };

typedef struct hwnas_leases hwnas_leases;

/* `worker` is a name that no other has. To be closed before the store, which is open to be shared.
 */
HWNAS_CHECKED hwnas_status hwnas_leases_open(hwnas_leases **out, hwnas_store *store,
                                             const char *worker);
void hwnas_leases_close(hwnas_leases *leases); /* accepts NULL */

/* A trial that is ours, and what is to be done for it. */
typedef struct hwnas_lease {
    uint64_t number;
    int64_t tasks; /* bits of the caller's: any one of them comes next */
    char *begun;   /* what was handed on with it; NULL: nothing; yours to free() */
} hwnas_lease;

/* In a transaction of the store: has one for each running trial, of others one that is over. */
HWNAS_CHECKED hwnas_status hwnas_leases_settle(hwnas_leases *leases);
/* In the transaction that begins a trial: it is ours, and anybody may go on with it. */
HWNAS_CHECKED hwnas_status hwnas_leases_add(hwnas_leases *leases, uint64_t number);
/* In the transaction that finishes a trial: ends the lease; *was_ours: nobody took it over. */
HWNAS_CHECKED hwnas_status hwnas_leases_end(bool *was_ours, hwnas_leases *leases, uint64_t number);

/* In a transaction: hands a trial on to whoever does one of `tasks`, with what is known of it. */
HWNAS_CHECKED hwnas_status hwnas_leases_hand_on(bool *was_ours, hwnas_leases *leases,
                                                const hwnas_lease *lease);

/* Takes a trial whose worker has let it go, or that is ours, and whose next task is one of `tasks`;
 * false in *is_there: there is none. */
HWNAS_CHECKED hwnas_status hwnas_leases_take(bool *is_there, hwnas_lease *out, hwnas_leases *leases,
                                             int64_t tasks);
/* How many trials were handed on for other tasks than these, and are nobody's yet; *others: the
 * tasks that come next in any of them. */
HWNAS_CHECKED hwnas_status hwnas_leases_waiting(int64_t *n, int64_t *others, hwnas_leases *leases,
                                                int64_t tasks);
/* How many trials hwnas_leases_take() would find; takes none, and waits for nobody. */
HWNAS_CHECKED hwnas_status hwnas_leases_offered(int64_t *n, hwnas_leases *leases, int64_t tasks);
/* How many trials others are at. */
HWNAS_CHECKED hwnas_status hwnas_leases_held(int64_t *n, hwnas_leases *leases);
/* Has all of ours begin anew. */
HWNAS_CHECKED hwnas_status hwnas_leases_renew(hwnas_leases *leases);
/* Lets go of all of ours. */
HWNAS_CHECKED hwnas_status hwnas_leases_release(hwnas_leases *leases);

#endif
