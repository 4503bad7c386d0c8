/* device.c: the table of devices, and opening one by its spelling. */
#define _GNU_SOURCE 1 /* sched_getaffinity() */
#include "device/devices.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/file.h"
#include "base/log.h"
#include "base/registry.h"
#include "base/sized_options.h"
#include "base/str.h"
#include "graph/op.h"
#include "graph/quantize_graph.h"

const hwnas_device_ops *hwnas_devices[HWNAS_MAX_ROWS] = {
    &hwnas_cpu_device,  &hwnas_ort_device,      &hwnas_torch_device,  &hwnas_torch_cuda_device,
    &hwnas_cuda_device, &hwnas_cuda_dry_device, &hwnas_ref_device,    &hwnas_null_device,
    &hwnas_ssh_device,  &hwnas_runner_device,   &hwnas_replay_device, &hwnas_external_device,
};

hwnas_status hwnas_device_open_elsewhere(hwnas_device **out, const char *argument,
                                         const hwnas_device_options *options)
{
    (void)out, (void)options;
    return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                 "what '%s' measures it measures elsewhere: it runs nothing here",
                                 argument),
                      "profile, compare, calibrate, search and optimize take it");
}

enum { ALL_PRECISIONS = (1 << HWNAS_N_PRECISIONS) - 1 };

const hwnas_device_ops hwnas_ssh_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "ssh",
    .help = "hwnas on another machine: ssh:HOST, ssh:HOST/ort; or several: ssh:A+B",
    .open = hwnas_device_open_elsewhere,
    .precisions = ALL_PRECISIONS,
};

const hwnas_device_ops hwnas_runner_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "runner",
    .help = "a program of yours that measures: runner:COMMAND (docs/runner-protocol.md)",
    .open = hwnas_device_open_elsewhere,
    .precisions = ALL_PRECISIONS,
};

/* Nothing can be asked of it. */
const hwnas_device_ops hwnas_external_device = {
    .abi = HWNAS_DEVICE_ABI,
    .name = "external",
    .help = "anything that another program measures, and tells the study: external, external:NAME",
};

hwnas_status hwnas_register_device(const hwnas_device_ops *device)
{
    if (device && device->abi == HWNAS_DEVICE_ABI && device->name && device->lookup &&
        (!device->recall || !device->lookup_metric))
        return hwnas_fail(HWNAS_E_INPUT, NULL,
                          "the device '%s' looks networks up, and lacks recall or lookup_metric",
                          device->name);
    HWNAS_REGISTER("device", HWNAS_DEVICE_ABI, hwnas_devices, device);
    return HWNAS_OK;
}

static hwnas_status no_such_device(const char *name)
{
    const char *names[HWNAS_MAX_ROWS] = {NULL};
    hwnas_str list = {0};
    for (int i = 0; hwnas_devices[i]; i++) {
        names[i] = hwnas_devices[i]->name;
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = hwnas_nearest(name, names);
    hwnas_status status =
        hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "there is no device '%s' in this version", name);
    status = near ? hwnas_hint(status, "did you mean '%s'? The devices are %s", near, list.s)
                  : hwnas_hint(status, "the devices are %s", list.s);
    hwnas_str_done(&list);
    return status;
}

hwnas_status hwnas_device_find(const hwnas_device_ops **out, const char **argument,
                               const char *spelling)
{
    const size_t n = strcspn(spelling, ":");
    for (int i = 0; hwnas_devices[i]; i++) {
        const hwnas_device_ops *ops = hwnas_devices[i];
        if (strlen(ops->name) != n || strncmp(ops->name, spelling, n))
            continue;
        *argument = spelling[n] ? spelling + n + 1 : "";
        *out = ops;
        return HWNAS_OK;
    }
    char *name = hwnas_printf("%.*s", (int)n, spelling);
    hwnas_status status = no_such_device(name);
    free(name);
    return status;
}

char *hwnas_device_thorough(const char *spelling)
{
    const hwnas_device_ops *ops;
    const char *argument, *last = strrchr(spelling, ':'), *there = strchr(spelling, '/');
    if (!strncmp(spelling, "ssh:", 4)) { /* the same of the other machine's device */
        char *thorough = there ? hwnas_device_thorough(there + 1) : NULL;
        char *whole = thorough
                          ? hwnas_printf("%.*s%s", (int)(there + 1 - spelling), spelling, thorough)
                          : NULL;
        free(thorough);
        return whole;
    }
    if (hwnas_device_find(&ops, &argument, spelling) == HWNAS_OK)
        return last && ops->quick && !strcmp(last + 1, ops->quick)
                   ? hwnas_printf("%.*s", (int)(last - spelling), spelling)
                   : NULL;
    hwnas_error_clear(); /* whoever opens it says so */
    return NULL;
}

bool hwnas_device_is_quick(const char *spelling)
{
    char *thorough = hwnas_device_thorough(spelling);
    const bool is_quick = thorough != NULL;
    free(thorough);
    return is_quick;
}

bool hwnas_device_is_told(const char *spelling)
{
    const hwnas_device_ops *ops;
    const char *argument;
    if (hwnas_device_find(&ops, &argument, spelling) == HWNAS_OK)
        return !ops->open;
    hwnas_error_clear(); /* whoever opens it says so */
    return false;
}

bool hwnas_device_is_elsewhere(const char *spelling)
{
    const hwnas_device_ops *ops;
    const char *argument;
    if (hwnas_device_find(&ops, &argument, spelling) == HWNAS_OK)
        return ops->open == hwnas_device_open_elsewhere;
    hwnas_error_clear(); /* whoever opens it says so */
    return false;
}

hwnas_status hwnas_device_open(hwnas_device **out, const char *spelling,
                               const hwnas_device_options *given)
{
    IN_C_LOCALE;
    hwnas_device *device = NULL;
    hwnas_device_options options;
    const hwnas_device_ops *ops;
    const char *argument;
    TRY(TAKE_OPTIONS(&options, given));
    TRY(hwnas_device_find(&ops, &argument, spelling));
    if (options.threads < 0)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "%d threads", options.threads);
    if (!ops->open)
        return hwnas_hint(hwnas_fail(HWNAS_E_UNSUPPORTED, NULL,
                                     "hwnas runs nothing on the device '%s'", ops->name),
                          "it is for studies that are told what another program measured there "
                          "(hwnas_study_open())");
    TRY(ops->open(&device, argument, &options));
    if (!device->ops) /* a module's devices have a row of their own */
        device->ops = ops;
    *out = device;
    return HWNAS_OK;
}

void hwnas_device_close(hwnas_device *device)
{
    if (device)
        device->ops->close(device);
}

void hwnas_device_describe(hwnas_device_info *out, const hwnas_device *device)
{
    memset(out, 0, sizeof *out);
    if (device->ops->describe)
        device->ops->describe(device, out);
}

const char *hwnas_device_list(size_t i, const char **help)
{
    if (i >= HWNAS_MAX_ROWS || !hwnas_devices[i])
        return NULL;
    if (help)
        *help = hwnas_devices[i]->help;
    return hwnas_devices[i]->name;
}

static const char *const precision_names[HWNAS_N_PRECISIONS + 1] = {
    [HWNAS_F32] = "f32", [HWNAS_TF32] = "tf32", [HWNAS_BF16] = "bf16",
    [HWNAS_F16] = "f16", [HWNAS_S8] = "s8",     [HWNAS_W8] = "w8",     [HWNAS_W4] = "w4",
};

const char *hwnas_precision_name(hwnas_precision precision)
{
    return (unsigned)precision < HWNAS_N_PRECISIONS ? precision_names[precision] : "unknown";
}

char *hwnas_precision_names(unsigned set)
{
    hwnas_str out = {0};
    for (int i = 0; i < HWNAS_N_PRECISIONS; i++)
        if (set & (1U << i))
            hwnas_str_addf(&out, "%s%s", out.n ? ", " : "", precision_names[i]);
    return out.s ? out.s : hwnas_printf("none");
}

int hwnas_precision_weight_bits(hwnas_precision precision)
{
    return precision == HWNAS_W8 ? 8 : precision == HWNAS_W4 ? 4 : 0;
}

bool hwnas_precision_has_form(hwnas_precision precision)
{
    return precision == HWNAS_S8 || hwnas_precision_weight_bits(precision);
}

static const char *const mixing_names[HWNAS_N_MIXINGS] = {"", "mixed", "mixed-bf16"};

const char *hwnas_mixing_name(hwnas_mixing mixing)
{
    return mixing_names[mixing];
}

hwnas_mixing hwnas_mixing_find(const char *name)
{
    for (int i = HWNAS_UNMIXED + 1; i < HWNAS_N_MIXINGS; i++)
        if (!strcmp(mixing_names[i], name))
            return (hwnas_mixing)i;
    return HWNAS_UNMIXED;
}

hwnas_status hwnas_precision_find(hwnas_precision *out, const char *name)
{
    for (int i = 0; i < HWNAS_N_PRECISIONS; i++)
        if (!strcmp(name, precision_names[i])) {
            *out = (hwnas_precision)i;
            return HWNAS_OK;
        }
    char *list = hwnas_precision_names(~0U);
    const char *near = hwnas_nearest(name, precision_names);
    hwnas_status status = hwnas_fail(HWNAS_E_INPUT, NULL, "there is no precision '%.30s'", name);
    status = near ? hwnas_hint(status, "did you mean '%s'? The precisions are %s", near, list)
                  : hwnas_hint(status, "the precisions are %s", list);
    free(list);
    return status;
}

static const char *const optimizer_names[HWNAS_N_OPTIMIZERS + 1] = {
    [HWNAS_NO_TRAINING] = "none", [HWNAS_SGD] = "sgd", [HWNAS_ADAMW] = "adamw"};

const char *hwnas_optimizer_name(hwnas_optimizer optimizer)
{
    return (unsigned)optimizer < HWNAS_N_OPTIMIZERS ? optimizer_names[optimizer] : "unknown";
}

hwnas_status hwnas_optimizer_find(hwnas_optimizer *out, const char *name)
{
    for (int i = 0; i < HWNAS_N_OPTIMIZERS; i++)
        if (!strcmp(name, optimizer_names[i])) {
            *out = (hwnas_optimizer)i;
            return HWNAS_OK;
        }
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "there is no optimizer '%.30s'", name),
                      "the optimizers are sgd, adamw");
}

static hwnas_status check_training(const hwnas_device_ops *ops, const hwnas_exec_options *options)
{
    if ((unsigned)options->training >= HWNAS_N_OPTIMIZERS)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "there is no optimizer number %d",
                          (int)options->training);
    if (ops->trains & 1U << options->precision)
        return HWNAS_OK;
    if (!ops->trains)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the device '%s' does not train", ops->name),
            "the devices cpu, torch and torch-cuda do");
    char *list = hwnas_precision_names(ops->trains);
    hwnas_status status =
        hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the device '%s' does not train in %s", ops->name,
                   hwnas_precision_name(options->precision));
    status = hwnas_hint(status, "it trains in %s", list);
    free(list);
    return status;
}

hwnas_status hwnas_device_compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                                  const hwnas_exec_options *options)
{
    const hwnas_exec_options plain = {.precision = HWNAS_F32};
    const hwnas_device_ops *ops = device->ops;
    if (!options)
        options = &plain;
    if ((unsigned)options->precision >= HWNAS_N_PRECISIONS)
        return hwnas_fail(HWNAS_E_INPUT, NULL, "there is no precision number %d",
                          (int)options->precision);
    if (!ops->compile)
        return hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the device '%s' runs nothing, it remembers",
                          ops->name);
    if (options->training)
        TRY(check_training(ops, options));
    else if (!(ops->precisions & (1U << options->precision))) {
        char *list = hwnas_precision_names(ops->precisions);
        hwnas_status status =
            hwnas_fail(HWNAS_E_UNSUPPORTED, NULL, "the device '%s' does not compute in %s",
                       ops->name, hwnas_precision_name(options->precision));
        status = hwnas_hint(status, "it computes in %s", list);
        free(list);
        return status;
    }
    return ops->compile(out, device, graph, options);
}

void hwnas_device_prepare(hwnas_device *device, const hwnas_graph *graph,
                          const hwnas_exec_options *options, bool (*goes_on)(void *context),
                          void *context)
{
    const hwnas_device_ops *ops = device->ops;
    if (ops->prepare && ops->precisions >> options->precision & 1 && !options->training)
        ops->prepare(device, graph, options, goes_on, context);
}

hwnas_status hwnas_exec_form(hwnas_graph **out, const hwnas_graph *graph,
                             const hwnas_exec_options *options)
{
    return options->training ? hwnas_graph_copy(out, graph) : hwnas_graph_fold(out, graph);
}

void hwnas_exec_free(hwnas_exec *exec)
{
    if (exec)
        exec->ops->free_exec(exec);
}

hwnas_status hwnas_device_takes_no_argument(const char *name, const char *argument)
{
    if (!*argument)
        return HWNAS_OK;
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, NULL, "device '%s' takes no '%s'", name, argument),
                      "write '%s'", name);
}

bool hwnas_device_exact_is_slow(const hwnas_device_info *info)
{
    return info->native >> HWNAS_TF32 & 1;
}

int hwnas_device_weight_bits(const hwnas_device *device)
{
    hwnas_device_info info;
    device->ops->describe(device, &info);
    return info.emulated & 1U << HWNAS_S8 ? 7 : 8;
}

void hwnas_device_note_overflow(const hwnas_device_info *info, const hwnas_graph *graph,
                                const char *name)
{
    const hwnas_node *node =
        info->emulated & 1U << HWNAS_S8 ? hwnas_graph_exceeds_16_bits(graph) : NULL;
    if (node)
        hwnas_log(HWNAS_LOG_NOTE,
                  "%s: results may be wrong here: this processor adds two products of bytes in 16 "
                  "bits (it has no VNNI), which is too few for the weights of '%s'; quantize with "
                  "reduce_range=True, and 'hwnas profile --verify' says how far it is off",
                  name, node->name);
}

int hwnas_device_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    /* More cores than the set has room for. */
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

/* What follows the colon of the first line that begins with `key`; false: there is none. */
static bool find_line(char *out, size_t size, const char *path, const char *key)
{
    char line[256];
    bool is_found = false;
    FILE *file = hwnas_file_stream(path);
    while (file && !is_found && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');
        is_found = value && hwnas_starts_with(line, key);
        if (!is_found)
            continue;
        value += strspn(value, ": \t");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
    }
    if (file)
        fclose(file);
    return is_found;
}

/* Arm's kernels do not name the processor; the firmware of a board names the board. */
static bool find_board(char *out, size_t size, const char *path)
{
    FILE *file = hwnas_file_stream(path);
    const size_t n = file ? fread(out, 1, size - 1, file) : 0;
    out[n] = '\0';
    if (file)
        fclose(file);
    return *out != '\0';
}

void hwnas_device_cpu_name_at(char *out, size_t size, const char *root)
{
    char implementer[16], part[16];
    char *info = hwnas_printf("%s/proc/cpuinfo", root),
         *model = hwnas_printf("%s/sys/firmware/devicetree/base/model", root);
    if (find_line(out, size, info, "model name") || find_board(out, size, model)) {
        /* that is it */
    } else if (find_line(implementer, sizeof implementer, info, "CPU implementer") &&
               find_line(part, sizeof part, info, "CPU part")) {
        snprintf(out, size, "Arm processor %s of %s", part, implementer);
    } else {
        snprintf(out, size, "unknown processor");
    }
    free(model);
    free(info);
}

void hwnas_device_cpu_name(char *out, size_t size)
{
    hwnas_device_cpu_name_at(out, size, "");
}
