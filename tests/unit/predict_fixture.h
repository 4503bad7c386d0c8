/* predict_fixture.h: a folder for files, and two spaces with their published tables. */
#ifndef HWNAS_TESTS_PREDICT_FIXTURE_H
#define HWNAS_TESTS_PREDICT_FIXTURE_H

#include "base/status.h"

#include "space/space.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MACRO_CSV HWNAS_TEST_DATA "/nas_bench_macro.csv"
#define ACCEL_CSV HWNAS_TEST_DATA "/accel_nasbench.csv"

/* NAS-Bench-Macro and Accel-NASBench, from set_up() to tear_down(), as is the folder. */
extern hwnas_space *macro, *accel;
int set_up(void **state);
int tear_down(void **state);

/* A path in the folder; borrowed until the fourth call after this one. */
const char *in_dir(const char *name);
size_t count_files(void); /* in the folder */
void write_text(const char *name, const char *text);
char *read_text(const char *path); /* yours to free() */
/* The first `limit` rows of a table, every `step`-th: Accel-NASBench's are sorted by how they were
 * drawn. */
void write_rows(const char *name, const char *from, size_t step, size_t limit);

/* The last failure has this status, and words of its message and its hint. */
void assert_failed(hwnas_status got, hwnas_status expected, const char *message, const char *hint);

#endif
