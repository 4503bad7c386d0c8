#include "predict/results.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/str.h"

/* More than a hundred thousand rows. */
#define MAX_BYTES ((size_t)64 << 20)

enum { CODE, DIGEST, TARGET, SD, SECONDS, N_COLUMNS };

static void keep(hwnas_results *results, const hwnas_result *row, int line)
{
    HWNAS_GROW(results->rows, results->n, results->capacity);
    hwnas_result *kept = &results->rows[results->n++];
    *kept = *row;
    kept->code = hwnas_strdup(row->code);
    kept->line = line;
}

static hwnas_status read_row(hwnas_results *results, const hwnas_csv *csv, size_t row)
{
    hwnas_place place = {.file = results->path, .line = csv->lines[row]};
    const char *digest = hwnas_csv_cell(csv, row, DIGEST);
    hwnas_result result = {.sd = NAN, .seconds = NAN};
    if (strlen(digest) != sizeof result.digest.hex - 1)
        return hwnas_fail(HWNAS_E_INPUT, &place, "'%.40s' is not the digest of a network", digest);
    memcpy(result.digest.hex, digest, sizeof result.digest.hex);
    result.code = (char *)hwnas_csv_cell(csv, row, CODE);
    TRY(hwnas_csv_number(&result.value, csv, row, TARGET));
    if (*hwnas_csv_cell(csv, row, SD))
        TRY(hwnas_csv_number(&result.sd, csv, row, SD));
    if (*hwnas_csv_cell(csv, row, SECONDS))
        TRY(hwnas_csv_number(&result.seconds, csv, row, SECONDS));
    keep(results, &result, csv->lines[row]);
    return HWNAS_OK;
}

static hwnas_status check_columns(const hwnas_csv *csv, const char *target)
{
    const char *const names[N_COLUMNS] = {"code", "digest", target, "sd", "seconds"};
    hwnas_place place = {.file = csv->path, .line = 1};
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (csv->n_columns != N_COLUMNS || strcmp(csv->names[i], names[i]))
            return hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, &place,
                           "this is not a file of results for '%s': its columns must be "
                           "code, digest, %s, sd, seconds",
                           target, target),
                "name another file, or another column");
    return HWNAS_OK;
}

/* Where the last whole line ends. */
static size_t whole_lines(const char *text, size_t n)
{
    while (n > 0 && text[n - 1] != '\n')
        n--;
    return n;
}

static hwnas_status fail_io(const hwnas_results *results, const char *verb)
{
    hwnas_place place = {.file = results->path};
    return hwnas_fail(HWNAS_E_IO, &place, "cannot %s the file of results: %s", verb,
                      strerror(errno));
}

/* Opens and locks the file, and cuts off what a dead writer left. `lines`: how many there are. */
static hwnas_status open_locked(int *out, size_t *lines, const hwnas_results *results)
{
    hwnas_status status = HWNAS_OK;
    char *text = NULL;
    size_t n, whole;
    int fd = open(results->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail_io(results, "write");
    while (flock(fd, LOCK_EX))
        if (errno != EINTR) {
            status = fail_io(results, "lock");
            goto out;
        }
    TRY_OUT(hwnas_file_read(&text, &n, results->path, MAX_BYTES));
    whole = whole_lines(text, n);
    if (whole < n && ftruncate(fd, (off_t)whole)) {
        status = fail_io(results, "mend");
        goto out;
    }
    *lines = 0;
    for (size_t i = 0; i < whole; i++)
        *lines += text[i] == '\n';
    *out = fd;
    fd = -1;
out:
    free(text);
    if (fd >= 0)
        close(fd);
    return status;
}

hwnas_status hwnas_results_open(hwnas_results **out, const char *path, const char *target)
{
    hwnas_status status = HWNAS_OK;
    hwnas_csv *csv = NULL;
    size_t lines = 0;
    int fd = -1;
    hwnas_results *results = hwnas_alloc(sizeof *results);
    results->path = hwnas_strdup(path);
    results->target = hwnas_strdup(target);
    if (hwnas_file_exists(path))
        TRY_OUT(open_locked(&fd, &lines, results));
    if (lines > 1) { /* a header alone is no table */
        TRY_OUT(hwnas_csv_load(&csv, path));
        TRY_OUT(check_columns(csv, target));
    }
    for (size_t row = 0; csv && row < csv->n_rows; row++)
        TRY_OUT(read_row(results, csv, row));
    *out = results;
    results = NULL;
out:
    if (fd >= 0)
        close(fd);
    hwnas_csv_free(csv);
    hwnas_results_close(results);
    return status;
}

void hwnas_results_close(hwnas_results *results)
{
    if (!results)
        return;
    for (size_t i = 0; i < results->n; i++)
        free(results->rows[i].code);
    free(results->rows);
    free(results->path);
    free(results->target);
    free(results);
}

const hwnas_result *hwnas_results_find(const hwnas_results *results, hwnas_digest digest)
{
    for (size_t i = results->n; i-- > 0;)
        if (!strcmp(results->rows[i].digest.hex, digest.hex))
            return &results->rows[i];
    return NULL;
}

static void add_number(hwnas_str *text, double value, const char *format)
{
    hwnas_str_add(text, ",");
    if (!isnan(value))
        hwnas_str_addf(text, format, value);
}

hwnas_status hwnas_results_add(hwnas_results *results, const hwnas_result *rows, size_t n)
{
    hwnas_status status = HWNAS_OK;
    hwnas_str text = {0};
    size_t lines;
    int fd = -1;
    if (!n)
        return HWNAS_OK;
    TRY_OUT(open_locked(&fd, &lines, results));
    if (!lines)
        hwnas_str_addf(&text, "code,digest,%s,sd,seconds\n", results->target);
    for (size_t i = 0; i < n; i++) {
        hwnas_str_addf(&text, "\"%s\",%s,%.10g", rows[i].code, rows[i].digest.hex, rows[i].value);
        add_number(&text, rows[i].sd, "%.10g");
        add_number(&text, rows[i].seconds, "%.3f");
        hwnas_str_add(&text, "\n");
    }
    off_t before = lseek(fd, 0, SEEK_END);
    if (write(fd, text.s, text.n) != (ssize_t)text.n) {
        status = fail_io(results, "write");
        if (ftruncate(fd, before)) /* the next to open it does so, then */
            hwnas_hint(status, "its last line may be incomplete");
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        keep(results, &rows[i], 0);
out:
    if (fd >= 0)
        close(fd);
    hwnas_str_done(&text);
    return status;
}
