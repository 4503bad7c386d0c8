/* postgresql.h: a connection to PostgreSQL, as what is in it uses it. */
#ifndef HWNAS_STORE_POSTGRESQL_H
#define HWNAS_STORE_POSTGRESQL_H

#include "base/status.h"
#include "store/database.h"

/* Connects. `place`: the name that messages have. */
HWNAS_CHECKED hwnas_status hwnas_postgresql_connect(hwnas_database **out, const char *conninfo,
                                                    const char *place);
/* Who begins a transaction waits until nobody else, with the same lock, is in one. */
void hwnas_postgresql_lock_by(hwnas_database *db, int64_t lock);
/* SQLSTATE of the last failure, five characters; "": the connection's. */
const char *hwnas_postgresql_state(const hwnas_database *db);

#endif
