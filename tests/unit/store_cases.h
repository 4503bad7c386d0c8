/* store_cases.h: the cases that all kinds of store pass, with `store_server` (store_fixture.h). To
 * be included after <cmocka.h>. */
#ifndef HWNAS_TESTS_STORE_CASES_H
#define HWNAS_TESTS_STORE_CASES_H

#include <stddef.h>

/* Those of them that are in files of their own. */
extern const struct CMUnitTest store_reading_cases[], store_lease_cases[];
extern const size_t n_store_reading_cases, n_store_lease_cases;

/* These and the cases of one kind; the number of those that failed. */
int run_store_cases(const char *group, const struct CMUnitTest *own, size_t n);

#endif
