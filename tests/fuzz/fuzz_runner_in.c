/* Any bytes as what a runner reads from the search: it serves them, answers what is wrong with a
 * message, and ends at the first frame that is none. */
#define _GNU_SOURCE 1 /* memfd_create(), cpu_set_t */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "frames.h"
#include "fuzz.h"
#include "measure/runner.h"

/* What a request may ask of its process would be felt by the fuzzer, not by the runner alone. These
 * stand before the C library's. */
int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    (void)resource, (void)limit;
    return 0;
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
    (void)pid, (void)size, (void)set;
    return 0;
}

/* A search may ask for hours; here nothing lasts longer than this. */
static const struct {
    const char *key;
    double most;
} bounds[] = {
    {"idle_seconds", 1e-4}, {"max_seconds", 1e-3}, {"steps_seconds", 1e-3}, {"min_samples", 20},
    {"max_attempts", 2},    {"lead", 1e-4},        {"seconds", 1e-3},       {"interval", 1},
};

/* A fuzzer that finds the name of a real device would test that one. */
static void bound_device(json_t *request)
{
    static const char *const real[] = {"cpu", "cuda"};
    const char *device = json_string_value(json_object_get(request, "device"));
    for (size_t i = 0; device && i < sizeof real / sizeof *real; i++)
        if (hwnas_starts_with(device, real[i])) {
            json_object_set_new(request, "device", json_string("null"));
            return;
        }
}

static bool bound(hwnas_str *out, hwnas_frame_type type, const char *payload, size_t length)
{
    json_t *request = type == HWNAS_FRAME_GRAPH ? NULL : json_loadb(payload, length, 0, NULL);
    if (!json_is_object(request)) {
        json_decref(request);
        return false;
    }
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        const json_t *value = json_object_get(request, bounds[i].key);
        if (json_number_value(value) <= bounds[i].most)
            continue;
        json_object_set_new(request, bounds[i].key,
                            json_is_integer(value) ? json_integer((json_int_t)bounds[i].most)
                                                   : json_real(bounds[i].most));
    }
    bound_device(request);
    char *text = json_dumps(request, JSON_COMPACT);
    hwnas_str_add(out, text);
    free(text);
    json_decref(request);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_str frames = {0};
    frames_write(&frames, data, size, bound);
    const int in = memfd_create("frames", MFD_CLOEXEC);
    const int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    FUZZ_CHECK(in >= 0 && out >= 0);
    FUZZ_CHECK(write(in, frames.s, frames.n) == (ssize_t)frames.n);
    lseek(in, 0, SEEK_SET);
    hwnas_status status = hwnas_runner_serve_streams(in, out);
    if (status != HWNAS_OK) {
        FUZZ_CHECK(status == HWNAS_E_INPUT || status == HWNAS_E_MEMORY);
        fuzz_check_message(status);
    }
    close(in);
    close(out);
    hwnas_str_done(&frames);
    return 0;
}
