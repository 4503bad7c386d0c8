/* Any bytes as a file of samples: it is refused with a message, or all of it can be read, twice
 * with the same values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset.h"
#include "fuzz.h"

enum { MAX_SAMPLES = 1 << 12, COUNT = 6 };

static void read_all(hwnas_dataset *data)
{
    const int64_t n = hwnas_dataset_samples(data);
    float first[COUNT] = {0}, again[COUNT] = {0};
    float *to = first;
    for (int64_t i = 0; i < n; i++) {
        const hwnas_status status = hwnas_dataset_take(&to, NULL, data, 1);
        if (status != HWNAS_OK) {
            fuzz_check_refused(status);
            return;
        }
        for (int k = 0; k < COUNT; k++)
            FUZZ_CHECK(isfinite(to[k]));
        to = again;
    }
    FUZZ_CHECK(hwnas_dataset_rewind(data) == HWNAS_OK);
    FUZZ_CHECK(hwnas_dataset_take(&to, NULL, data, 1) == HWNAS_OK);
    FUZZ_CHECK(!memcmp(first, again, sizeof first));
}

static void read_labels(const hwnas_dataset *data)
{
    const hwnas_array_file *labels = hwnas_dataset_labels(data);
    hwnas_array_file *own = NULL;
    double row[64];
    if (!labels || labels->row_count > 64 || labels->dims[0] > MAX_SAMPLES)
        return;
    FUZZ_CHECK(hwnas_array_open(&own, labels->path, labels->name) == HWNAS_OK);
    for (int64_t i = 0; i < own->dims[0]; i++) {
        const hwnas_status status = hwnas_array_read(row, own, 1);
        if (status != HWNAS_OK) {
            fuzz_check_refused(status);
            break;
        }
    }
    hwnas_array_close(own);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t dims[] = {1, 2, 3}, entries[] = {0};
    static const hwnas_array_info input = {"image", "float32", 3, dims, COUNT};
    const hwnas_dataset_target target = {1, &input, entries};
    const hwnas_data_file file = {NULL, fuzz_file(data, size, "fuzz.npz"), NULL};
    const hwnas_dataset_options options = {.limit = MAX_SAMPLES, .scale = 0.5};
    hwnas_dataset *set = NULL;
    const hwnas_status status = hwnas_dataset_open_for(&set, &target, 1, &file, &options);
    if (status == HWNAS_OK) {
        read_all(set);
        read_labels(set);
    } else {
        fuzz_check_refused(status);
    }
    hwnas_dataset_close(set);
    return 0;
}
