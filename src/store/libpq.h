/* libpq.h: PostgreSQL's client library, opened when a study is in PostgreSQL: who keeps studies in
 * files needs none of it (it brings OpenSSL, Kerberos and LDAP). */
#ifndef HWNAS_STORE_LIBPQ_H
#define HWNAS_STORE_LIBPQ_H

#include <libpq-fe.h>

#include "base/status.h"

#define HWNAS_LIBPQ_FUNCTIONS(F)                                                                   \
    F(PQclear)                                                                                     \
    F(PQcmdStatus)                                                                                 \
    F(PQconnectdbParams)                                                                           \
    F(PQconninfoFree)                                                                              \
    F(PQconninfoParse)                                                                             \
    F(PQerrorMessage)                                                                              \
    F(PQexec)                                                                                      \
    F(PQfinish)                                                                                    \
    F(PQftype)                                                                                     \
    F(PQgetResult)                                                                                 \
    F(PQgetisnull)                                                                                 \
    F(PQgetlength)                                                                                 \
    F(PQgetvalue)                                                                                  \
    F(PQprepare)                                                                                   \
    F(PQresultErrorField)                                                                          \
    F(PQresultErrorMessage)                                                                        \
    F(PQresultStatus)                                                                              \
    F(PQsendQueryPrepared)                                                                         \
    F(PQserverVersion)                                                                             \
    F(PQsetNoticeProcessor)                                                                        \
    F(PQsetSingleRowMode)                                                                          \
    F(PQstatus)

typedef struct hwnas_libpq {
#define FIELD(name) __typeof__(&name) name;
    HWNAS_LIBPQ_FUNCTIONS(FIELD)
#undef FIELD
} hwnas_libpq;

/* Borrowed; it stays open. HWNAS_E_UNSUPPORTED: there is none. */
HWNAS_CHECKED hwnas_status hwnas_libpq_open(const hwnas_libpq **out);

#endif
