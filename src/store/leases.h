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

/* In a transaction of the store: has one for each running trial, of others one that is over. */
HWNAS_CHECKED hwnas_status hwnas_leases_settle(hwnas_leases *leases);
/* In the transaction that begins a trial: it is ours. */
HWNAS_CHECKED hwnas_status hwnas_leases_add(hwnas_leases *leases, uint64_t number);
/* In the transaction that finishes a trial: ends the lease; *was_ours: nobody took it over. */
HWNAS_CHECKED hwnas_status hwnas_leases_end(bool *was_ours, hwnas_leases *leases, uint64_t number);

/* Takes a trial whose worker has let it go, or that is ours; false in *is_there: there is none. */
HWNAS_CHECKED hwnas_status hwnas_leases_take(bool *is_there, uint64_t *number,
                                             hwnas_leases *leases);
/* Has all of ours begin anew. */
HWNAS_CHECKED hwnas_status hwnas_leases_renew(hwnas_leases *leases);
/* Lets go of all of ours. */
HWNAS_CHECKED hwnas_status hwnas_leases_release(hwnas_leases *leases);

#endif
