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
#include "base/str.h"

/* More than a hundred thousand rows. */
#define MAX_BYTES ((size_t)64 << 20)

enum { CODE, DIGEST, TARGET, SD, SECONDS, N_COLUMNS, EPOCHS = N_COLUMNS, CURVE, N_CURVE_COLUMNS };

static size_t n_columns(const hwnas_results *results)
{
    return results->has_curves ? N_CURVE_COLUMNS : N_COLUMNS;
}

static void keep(hwnas_results *results, const hwnas_result *row, int line)
{
    HWNAS_GROW(results->rows, results->n, results->capacity);
    hwnas_result *kept = &results->rows[results->n++];
    *kept = *row;
    kept->code = hwnas_strdup(row->code);
    kept->line = line;
    kept->curve = row->n_curve ? hwnas_alloc(row->n_curve * sizeof *kept->curve) : NULL;
    if (row->n_curve)
        memcpy(kept->curve, row->curve, row->n_curve * sizeof *kept->curve);
}

/* "71.2 80.3"; the curve is to be freed, whatever comes. */
static hwnas_status read_curve(hwnas_result *out, const hwnas_csv *csv, size_t row,
                               const hwnas_place *place)
{
    double epochs;
    char *at = (char *)hwnas_csv_cell(csv, row, CURVE), *end;
    TRY(hwnas_csv_number(&epochs, csv, row, EPOCHS));
    out->n_epochs = epochs >= 1 && epochs < 1e9 ? (size_t)epochs : 0;
    out->curve = hwnas_alloc((strlen(at) / 2 + 1) * sizeof *out->curve);
    for (; *at; at = end) {
        const double value = strtod(at, &end);
        if (end == at || !isfinite(value) || (*end && *end != ' '))
            return hwnas_fail(HWNAS_E_INPUT, place, "'%.40s' is not the curve of a training", at);
        out->curve[out->n_curve++] = value;
        end += *end == ' ';
    }
    return HWNAS_OK;
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
    const hwnas_status status =
        results->has_curves ? read_curve(&result, csv, row, &place) : HWNAS_OK;
    if (status == HWNAS_OK)
        keep(results, &result, csv->lines[row]);
    free(result.curve);
    return status;
}

/* Looks at the first line alone: what the lines of another file are like says nothing. */
static hwnas_status check_header(const hwnas_results *results, const char *text, size_t n)
{
    const char *const names[] = {"code",    "digest", results->target, "sd",
                                 "seconds", "epochs", "curve"};
    const char *end = memchr(text, '\n', n);
    hwnas_place place = {.file = results->path, .line = 1};
    hwnas_csv *csv = NULL;
    bool is_ours =
        hwnas_csv_parse(&csv, results->path, text, end ? (size_t)(end - text) : n) == HWNAS_OK &&
        csv->n_columns == n_columns(results);
    for (size_t i = 0; i < n_columns(results) && is_ours; i++)
        is_ours = !strcmp(csv->names[i], names[i]);
    hwnas_csv_free(csv);
    if (is_ours)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place,
                                 "this is not a file of %s for '%s': its columns must be "
                                 "code, digest, %s, sd, seconds%s",
                                 results->has_curves ? "curves" : "results", results->target,
                                 results->target, results->has_curves ? ", epochs, curve" : ""),
                      "name another file, or another column");
}

/* ---- The end of the file ---- */

/* A file of results as it is there, and how it ends. */
typedef struct content {
    char *text;
    size_t n;
    size_t kept;  /* without what a killed writer left */
    bool is_open; /* the last line that is kept lacks its newline */
} content;

static char *header_for(const hwnas_results *results)
{
    return hwnas_printf("code,digest,%s,sd,seconds%s\n", results->target,
                        results->has_curves ? ",epochs,curve" : "");
}

/* A line without a newline that a writer of ours was killed in: it begins like a row of ours, whose
 * code is quoted, and lacks cells. */
static bool is_torn(const char *line, size_t n, size_t columns)
{
    size_t commas = 0;
    bool is_quoted = false;
    if (!n || *line != '"')
        return false;
    for (size_t i = 0; i < n; i++) {
        is_quoted ^= line[i] == '"';
        commas += line[i] == ',' && !is_quoted;
    }
    return is_quoted || commas < columns - 1;
}

static void find_end(content *c, const hwnas_results *results)
{
    char *header = header_for(results);
    const bool is_begun = c->n < strlen(header) && !memcmp(c->text, header, c->n);
    size_t line = c->n;
    free(header);
    while (line > 0 && c->text[line - 1] != '\n')
        line--;
    c->kept = is_begun ? 0 : is_torn(c->text + line, c->n - line, n_columns(results)) ? line : c->n;
    c->is_open = c->kept > line;
}

static hwnas_status fail_io(const hwnas_results *results, const char *verb)
{
    hwnas_place place = {.file = results->path};
    return hwnas_fail(HWNAS_E_IO, &place, "cannot %s the file of results: %s", verb,
                      strerror(errno));
}

static hwnas_status lock(const hwnas_results *results, int fd, int how)
{
    while (flock(fd, how))
        if (errno != EINTR)
            return fail_io(results, "lock");
    return HWNAS_OK;
}

/* All that an open file has; a file that is none is refused before it is waited for. */
static hwnas_status read_content(content *out, const hwnas_results *results, int fd)
{
    hwnas_place place = {.file = results->path};
    struct stat st;
    if (fstat(fd, &st))
        return fail_io(results, "read");
    if (!S_ISREG(st.st_mode))
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "this is not a regular file"),
                          "results are kept in a CSV file");
    if ((size_t)st.st_size > MAX_BYTES)
        return hwnas_fail(HWNAS_E_INPUT, &place, "the file is larger than %zu MiB",
                          MAX_BYTES >> 20);
    content c = {.text = hwnas_alloc((size_t)st.st_size + 1)};
    while (c.n < (size_t)st.st_size) {
        ssize_t got = pread(fd, c.text + c.n, (size_t)st.st_size - c.n, (off_t)c.n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            free(c.text);
            return fail_io(results, "read");
        }
        if (got == 0)
            break;
        c.n += (size_t)got;
    }
    find_end(&c, results);
    *out = c;
    return HWNAS_OK;
}

/* Takes the rows behind those that are known. Of a file that was put anew nothing is forgotten. */
static hwnas_status take_rows(hwnas_results *results, const content *c)
{
    hwnas_status status = HWNAS_OK;
    hwnas_csv *csv = NULL;
    static const char mark[] = "\xef\xbb\xbf"; /* a spreadsheet's */
    const size_t skipped = c->kept >= 3 && !memcmp(c->text, mark, 3) ? 3 : 0;
    const char *text = c->text + skipped;
    if (!c->kept)
        return HWNAS_OK;
    TRY_OUT(check_header(results, text, c->kept - skipped));
    TRY_OUT(hwnas_csv_parse(&csv, results->path, text, c->kept - skipped));
    for (size_t row = results->n; row < csv->n_rows; row++)
        TRY_OUT(read_row(results, csv, row));
    /* The last number may be cut in its middle: how long a training took, or of its curve. */
    if (c->is_open && results->n && results->n == csv->n_rows) {
        hwnas_result *last = &results->rows[results->n - 1];
        if (results->has_curves)
            last->n_curve -= last->n_curve > 0;
        else
            last->seconds = NAN;
    }
out:
    hwnas_csv_free(csv);
    return status;
}

hwnas_status hwnas_results_refresh(hwnas_results *results)
{
    hwnas_status status = HWNAS_OK;
    content c = {.text = NULL};
    int fd = open(results->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? HWNAS_OK : fail_io(results, "read");
    TRY_OUT(lock(results, fd, LOCK_SH));
    TRY_OUT(read_content(&c, results, fd));
    status = take_rows(results, &c);
out:
    free(c.text);
    close(fd);
    return status;
}

static hwnas_status open_file(hwnas_results **out, const char *path, const char *target,
                              bool has_curves)
{
    hwnas_results *results = hwnas_alloc(sizeof *results);
    results->has_curves = has_curves;
    results->path = hwnas_strdup(path);
    results->target = hwnas_strdup(target);
    hwnas_status status = hwnas_results_refresh(results);
    if (status == HWNAS_OK)
        *out = results;
    else
        hwnas_results_close(results);
    return status;
}

hwnas_status hwnas_results_open(hwnas_results **out, const char *path, const char *target)
{
    return open_file(out, path, target, false);
}

hwnas_status hwnas_results_open_curves(hwnas_results **out, const char *path, const char *target)
{
    return open_file(out, path, target, true);
}

void hwnas_results_close(hwnas_results *results)
{
    if (!results)
        return;
    for (size_t i = 0; i < results->n; i++) {
        free(results->rows[i].code);
        free(results->rows[i].curve);
    }
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

static void add_rows(hwnas_str *text, const hwnas_results *results, const hwnas_result *rows,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hwnas_str_addf(text, "\"%s\",%s,%.10g", rows[i].code, rows[i].digest.hex, rows[i].value);
        add_number(text, rows[i].sd, "%.10g");
        add_number(text, rows[i].seconds, "%.3f");
        if (results->has_curves)
            hwnas_str_addf(text, ",%zu,", rows[i].n_epochs);
        for (size_t k = 0; results->has_curves && k < rows[i].n_curve; k++)
            hwnas_str_addf(text, "%s%.10g", k ? " " : "", rows[i].curve[k]);
        hwnas_str_add(text, "\n");
    }
}

/* Puts a text behind what is kept of the file. It is on the disk when this returns: a row may stand
 * for hours. */
static hwnas_status append(const hwnas_results *results, int fd, const content *c,
                           const hwnas_str *text)
{
    if (c->kept < c->n && ftruncate(fd, (off_t)c->kept))
        return fail_io(results, "mend");
    if (pwrite(fd, text->s, text->n, (off_t)c->kept) == (ssize_t)text->n && !fdatasync(fd))
        return HWNAS_OK;
    hwnas_status status = fail_io(results, "write");
    if (ftruncate(fd, (off_t)c->kept))
        hwnas_hint(status, "its last line may be incomplete");
    return status;
}

hwnas_status hwnas_results_add(hwnas_results *results, const hwnas_result *rows, size_t n)
{
    hwnas_status status = HWNAS_OK;
    hwnas_str text = {0};
    content c = {.text = NULL};
    char *header = header_for(results);
    int fd = -1;
    if (!n)
        goto out;
    fd = open(results->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0) {
        status = fail_io(results, "write");
        goto out;
    }
    TRY_OUT(lock(results, fd, LOCK_EX));
    TRY_OUT(read_content(&c, results, fd));
    TRY_OUT(take_rows(results, &c));
    hwnas_str_add(&text, c.is_open ? "\n" : c.kept ? "" : header);
    add_rows(&text, results, rows, n);
    TRY_OUT(append(results, fd, &c, &text));
    for (size_t i = 0; i < n; i++)
        keep(results, &rows[i], 0);
out:
    if (fd >= 0)
        close(fd);
    free(c.text);
    free(header);
    hwnas_str_done(&text);
    return status;
}
