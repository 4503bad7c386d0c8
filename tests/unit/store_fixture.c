#include "tests/unit/store_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "store/leases.h"

char *scratch, *path;
const char *store_server;

int make_scratch(void **state)
{
    static int n_cases;
    (void)state;
    scratch = hwnas_strdup("/tmp/hwnas-test-store.XXXXXX");
    if (!mkdtemp(scratch))
        return -1;
    path = store_server ? hwnas_printf("%s&study=case-%d", store_server, n_cases++)
                        : hwnas_printf("%s/study.db", scratch);
    return 0;
}

int remove_scratch(void **state)
{
    (void)state;
    char *command = hwnas_printf("rm -rf '%s'", scratch);
    int failed = system(command);
    free(command);
    free(scratch);
    free(path);
    return failed;
}

size_t scratch_entries(void)
{
    size_t n = 0;
    DIR *dir = opendir(scratch);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(dir);
    return n;
}

void write_study_file(const void *bytes, size_t n)
{
    assert_int_equal(hwnas_file_write(path, bytes, n), HWNAS_OK);
}

hwnas_store *open_ok(hwnas_store_mode mode)
{
    hwnas_store *store = NULL;
    hwnas_status status = hwnas_store_open(&store, path, mode);
    if (status != HWNAS_OK)
        fail_msg("%s: %s", hwnas_status_name(status), hwnas_last_error()->message);
    return store;
}

void expect_refused(const char *name, hwnas_store_mode mode, hwnas_status status,
                    const char *message)
{
    hwnas_store *store = NULL;
    assert_int_equal(hwnas_store_open(&store, name, mode), status);
    assert_null(store);
    const hwnas_error *e = hwnas_last_error();
    if (!strstr(e->message, message))
        fail_msg("'%s' does not contain '%s'", e->message, message);
    assert_string_equal(e->file, name);
}

void expect_hint(const char *hint)
{
    if (!strstr(hwnas_last_error()->hint, hint))
        fail_msg("'%s' does not contain '%s'", hwnas_last_error()->hint, hint);
}

hwnas_trial finished(uint64_t number)
{
    static hwnas_value_row rows[64][2];
    hwnas_value_row *values = rows[number % 64];
    values[0] = (hwnas_value_row){.metric = "latency.p50",
                                  .value = 0.001 * (double)(number + 1),
                                  .low = 0.0009,
                                  .high = 0.0011,
                                  .unit = "s",
                                  .source = HWNAS_MEASURED};
    values[1] = (hwnas_value_row){.metric = "macs",
                                  .value = 1e6 + (double)number,
                                  .low = NAN,
                                  .high = NAN,
                                  .unit = "MACs",
                                  .source = HWNAS_COMPUTED};
    return (hwnas_trial){
        .number = number,
        .detail = (char *)"{\"samples\": 12}",
        .seconds = 0.25,
        .n_values = 2,
        .values = values,
    };
}

void add_trial(hwnas_store *store, uint64_t number)
{
    char code[32], digest[33];
    snprintf(code, sizeof code, "code-%u", (unsigned)number);
    snprintf(digest, sizeof digest, "%032x", (unsigned)number);
    hwnas_trial trial = finished(number);
    assert_int_equal(hwnas_store_start(store, number, code, digest, 0), HWNAS_OK);
    assert_int_equal(hwnas_store_finish(store, &trial), HWNAS_OK);
}

size_t count_trials(hwnas_store *store)
{
    hwnas_trial *trials = NULL;
    size_t n = 0;
    assert_int_equal(hwnas_store_trials(&trials, &n, store), HWNAS_OK);
    hwnas_trials_free(trials, n);
    return n;
}

void expect_lease_for_all_tasks(void)
{
    hwnas_store *store = open_ok(HWNAS_STORE_SHARE);
    hwnas_leases *leases;
    hwnas_lease lease = {.begun = (char *)""};
    bool is_there;
    assert_int_equal(hwnas_leases_open(&leases, store, "b"), HWNAS_OK);
    assert_int_equal(hwnas_leases_take(&is_there, &lease, leases, 2), HWNAS_OK);
    assert_true(is_there);
    assert_int_equal(lease.tasks, -1);
    assert_null(lease.begun);
    hwnas_leases_close(leases);
    hwnas_store_close(store);
}
