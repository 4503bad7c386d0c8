/* far.c: a runner's environment must stand before its libraries are loaded, and what stands in it
 * (cores, threads) is known when the first frame has been read: so this process reads that frame,
 * and then starts the program once more in its own place. */
#include "measure/far.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "measure/cores.h"
#include "measure/runner_link.h"
#include "measure/runner_priv.h"
#include "measure/wire.h"

static const char KEPT[] = "HWNAS_RUNNER_OPEN";
enum { LONGEST_REQUEST = 64 << 10 }; /* an environment variable has room for twice that */

static hwnas_status read_exactly(void *out, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = read(STDIN_FILENO, (char *)out + done, n - done);
        if (got == 0 || (got < 0 && errno != EINTR))
            return hwnas_fail(HWNAS_E_IO, NULL, "the search has gone before it said anything");
        done += got > 0 ? (size_t)got : 0;
    }
    return HWNAS_OK;
}

static hwnas_status read_request(json_t **out)
{
    unsigned char head[HWNAS_FRAME_HEAD];
    hwnas_wire_frame frame;
    char text[LONGEST_REQUEST];
    TRY(read_exactly(head, sizeof head));
    if (!hwnas_frame_decode(&frame, head) || frame.type != HWNAS_FRAME_OPEN ||
        frame.length > sizeof text)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, NULL, "standard input does not begin as a search does"),
            "`runner serve` is started by the device ssh:HOST (docs/devices.md)");
    TRY(read_exactly(text, (size_t)frame.length));
    *out = json_loadb(text, (size_t)frame.length, 0, NULL);
    return *out ? HWNAS_OK : hwnas_fail(HWNAS_E_INPUT, NULL, "the first request is not JSON");
}

static json_t *list_numbers(const int *numbers, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer(numbers[i]));
    return list;
}

/* Other searches see that the cores are taken as long as this process lives, whatever it runs. */
static void keep_locks(const hwnas_cores *cores)
{
    for (int i = 0; i < cores->n_locks; i++)
        fcntl(cores->locks[i], F_SETFD, 0);
}

/* Chooses cores, and sets environment and request to them. */
static hwnas_status prepare(char ***environment, json_t *request, const char *otherwise)
{
    int threads = 0, all[HWNAS_MAX_CORES];
    hwnas_cores cores;
    const char *device = json_string_value(json_object_get(request, "device"));
    if (!device || !*device) {
        device = otherwise;
        json_object_set_new(request, "device", json_string(device));
    }
    if (!hwnas_wire_read_int(&threads, json_object_get(request, "threads")) || threads < 0)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "the request lacks a number of threads");
    if (!threads)
        threads = hwnas_device_cores();
    hwnas_cores_take(&cores, threads);
    keep_locks(&cores);
    const int n_all = hwnas_cores_choose(all, HWNAS_MAX_CORES);
    json_object_set_new(request, "threads", json_integer(threads));
    json_object_set_new(request, "cores", list_numbers(cores.numbers, cores.n));
    json_object_set_new(request, "allowed", list_numbers(all, n_all));
    char *text = json_dumps(request, JSON_COMPACT);
    const bool is_set = text && !setenv(KEPT, text, 1);
    free(text);
    if (!is_set)
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for the first request");
    *environment = hwnas_runner_environment(device, threads, cores.numbers, cores.n);
    return HWNAS_OK;
}

hwnas_status hwnas_far_serve(const char *device)
{
    char *const words[] = {(char *)"hwnas", (char *)"runner", NULL};
    char **environment = NULL;
    json_t *request = NULL;
    hwnas_status status = HWNAS_OK;
    TRY_OUT(read_request(&request));
    TRY_OUT(prepare(&environment, request, device));
    const char *program = getenv("HWNAS_RUNNER");
    if (!program || !*program)
        program = "/proc/self/exe";
    execve(program, words, environment);
    status =
        hwnas_fail(HWNAS_E_IO, NULL, "cannot start the runner '%s': %s", program, strerror(errno));
out:
    hwnas_link_free_words(environment);
    json_decref(request);
    return status;
}

json_t *hwnas_far_take_kept(void)
{
    const char *text = getenv(KEPT);
    json_t *request = text ? json_loads(text, 0, NULL) : NULL;
    unsetenv(KEPT);
    return request;
}
