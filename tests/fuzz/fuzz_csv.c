/* Any bytes as a CSV file: it is refused with a line, or every cell can be read. */
#include <math.h>
#include <string.h>

#include "base/csv.h"
#include "fuzz.h"

static void read_cells(const hwnas_csv *csv)
{
    FUZZ_CHECK(csv->n_columns && csv->n_rows);
    for (size_t row = 0; row < csv->n_rows; row++) {
        FUZZ_CHECK(csv->lines[row] > 0 && (!row || csv->lines[row] > csv->lines[row - 1]));
        for (size_t column = 0; column < csv->n_columns; column++) {
            double number = 0;
            FUZZ_CHECK(strlen(hwnas_csv_cell(csv, row, column)) < SIZE_MAX);
            hwnas_status status = hwnas_csv_number(&number, csv, row, column);
            if (status != HWNAS_OK)
                fuzz_check_refused(status);
            FUZZ_CHECK(isfinite(number));
        }
    }
}

static void look_up(const hwnas_csv *csv)
{
    size_t column;
    for (size_t i = 0; i < csv->n_columns; i++) {
        FUZZ_CHECK(hwnas_csv_column(csv, csv->names[i]) == (long)i);
        FUZZ_CHECK(!hwnas_csv_require(&column, csv, csv->names[i]) && column == i);
    }
    hwnas_status status = hwnas_csv_require(&column, csv, "val_top1_pct");
    if (status != HWNAS_OK)
        fuzz_check_refused(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_csv *csv = NULL;
    hwnas_status status = hwnas_csv_load(&csv, fuzz_file(data, size, "fuzz.csv"));
    if (status == HWNAS_OK) {
        read_cells(csv);
        look_up(csv);
    } else {
        fuzz_check_refused(status);
    }
    hwnas_csv_free(csv);
    return 0;
}
