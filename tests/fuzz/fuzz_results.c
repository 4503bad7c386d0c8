/* Any bytes as a file of training results: it is refused with a message and left as it is, or a row
 * more is kept behind those that it has. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "fuzz.h"
#include "predict/results.h"

static void check_untouched(const char *path, const uint8_t *data, size_t size)
{
    char *text;
    size_t length;
    FUZZ_CHECK(!hwnas_file_read(&text, &length, path, SIZE_MAX / 2));
    FUZZ_CHECK(length == size && !memcmp(text, data, size));
    free(text);
}

static void add_row(hwnas_results *results, const char *path)
{
    hwnas_results *again = NULL;
    hwnas_result row = {.code = (char *)"e=12,k=35", .value = 91.25, .sd = NAN, .seconds = 1.5};
    memset(row.digest.hex, 'f', sizeof row.digest.hex - 1);
    const size_t n = results->n;
    FUZZ_CHECK(!hwnas_results_add(results, &row, 1));
    FUZZ_CHECK(!hwnas_results_open(&again, path, "acc_pct"));
    FUZZ_CHECK(again->n == n + 1);
    for (size_t i = 0; i < n; i++)
        FUZZ_CHECK(!strcmp(again->rows[i].code, results->rows[i].code) &&
                   again->rows[i].value == results->rows[i].value);
    FUZZ_CHECK(again->rows[n].value == 91.25);
    hwnas_results_close(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_results *results = NULL;
    const char *path = fuzz_file(data, size, "fuzz.csv");
    hwnas_status status = hwnas_results_open(&results, path, "acc_pct");
    if (status == HWNAS_OK) {
        add_row(results, path);
    } else {
        fuzz_check_refused(status);
        check_untouched(path, data, size);
    }
    hwnas_results_close(results);
    return 0;
}
