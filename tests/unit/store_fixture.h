/* store_fixture.h: a directory for each case with a study in it, and trials to keep there. */
#ifndef HWNAS_TESTS_STORE_FIXTURE_H
#define HWNAS_TESTS_STORE_FIXTURE_H

#include "store/store.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MIB ((size_t)1 << 20)

/* A scratch directory for each case; `path` is a study in it. */
extern char *scratch, *path;
/* A server's address, that studies are made at; NULL: they are files. */
extern const char *store_server;
int make_scratch(void **state);
int remove_scratch(void **state);
/* How many files are in it. */
size_t scratch_entries(void);
void write_study_file(const void *bytes, size_t n);
hwnas_store *open_ok(hwnas_store_mode mode);
/* `message` and `hint`: a part of it. */
void expect_refused(const char *name, hwnas_store_mode mode, hwnas_status status,
                    const char *message);
void expect_hint(const char *hint);
/* Its values are good until the 64th trial after it. */
hwnas_trial finished(uint64_t number);
void add_trial(hwnas_store *store, uint64_t number);
size_t count_trials(hwnas_store *store);
/* The study's only lease has run out, and was written before leases had tasks: whoever does any of
 * them takes it. */
void expect_lease_for_all_tasks(void);

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

#endif
