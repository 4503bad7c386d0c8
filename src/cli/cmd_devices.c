/* devices: what there is, whether it works here, and how fast it can be at most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "measure/priority.h"
#include "report/roofline_text.h"

static const hwnas_usage usage = {
    .synopsis = "devices",
    .summary = "Lists the devices that this version knows, whether they work here, and what\n"
               "they can do at most.",
    .notes = "Peak and bandwidth are measured once, which takes seconds, and kept under\n"
             "$XDG_CACHE_HOME/hwnas."};

enum { MAX_ROOFLINES = 2 * HWNAS_N_PRECISIONS };

/* One device and what was found out about it. */
typedef struct finding {
    const hwnas_device_ops *ops;
    hwnas_device_info info;
    bool works;
    char trouble[1024]; /* why it, or its roofline, cannot be had; or "" */
    size_t n;
    hwnas_roofline rooflines[MAX_ROOFLINES];
} finding;

static void note_trouble(finding *f)
{
    snprintf(f->trouble, sizeof f->trouble, "%s", hwnas_last_error()->message);
    hwnas_error_clear();
}

static void open_device(finding *f)
{
    hwnas_device *device = NULL;
    const hwnas_device_options options = {0};
    f->works = hwnas_device_open(&device, f->ops->name, &options) == HWNAS_OK;
    if (f->works)
        device->ops->describe(device, &f->info);
    else
        note_trouble(f);
    hwnas_device_close(device);
}

/* In every precision, at a number of threads. */
static hwnas_status measure_at(finding *f, int threads, bool refresh,
                               const hwnas_measure_options *options)
{
    hwnas_status status = HWNAS_OK;
    hwnas_runner *runner;
    TRY(hwnas_runner_open(&runner, f->ops->name, threads));
    for (int p = 0; p < HWNAS_N_PRECISIONS && status == HWNAS_OK; p++) {
        if (!(f->ops->precisions & (f->info.native | f->info.emulated) & 1U << p))
            continue;
        status = hwnas_roofline_get(&f->rooflines[f->n], runner, f->ops->name, (hwnas_precision)p,
                                    refresh, options);
        f->n += status == HWNAS_OK;
    }
    hwnas_runner_close(runner);
    return status;
}

/* That a roofline cannot be measured is written down, and is no end. */
static hwnas_status examine(finding *f, bool refresh, const hwnas_measure_options *options)
{
    hwnas_status status = HWNAS_OK;
    f->works = true;
    if (f->ops->lookup) /* it remembers, and needs a file; there is nothing to open here */
        return HWNAS_OK;
    open_device(f);
    if (!f->works || !f->ops->is_deployed)
        return HWNAS_OK;
    status = measure_at(f, 1, refresh, options);
    if (status == HWNAS_OK && f->info.threads > 1)
        status = measure_at(f, f->info.threads, refresh, options);
    if (status == HWNAS_E_INTERRUPTED)
        return status;
    if (status != HWNAS_OK)
        note_trouble(f);
    return HWNAS_OK;
}

static void add_precisions(hwnas_str *out, const hwnas_device_info *info)
{
    char *native = hwnas_precision_names(info->native);
    char *emulated = hwnas_precision_names(info->emulated);
    hwnas_str_addf(out, "         computes in %s; emulates %s\n", native, emulated);
    free(native);
    free(emulated);
}

/* The names of a set of precisions. */
static json_t *names_of(unsigned set)
{
    json_t *names = json_array();
    for (int p = 0; p < HWNAS_N_PRECISIONS; p++)
        if (set & 1U << p)
            json_array_append_new(names, json_string(hwnas_precision_name((hwnas_precision)p)));
    return names;
}

static void add_text(hwnas_str *out, const finding *f)
{
    const hwnas_device_info *info = &f->info;
    hwnas_str_addf(out, "%-8s %s\n", f->ops->name, f->ops->help);
    if (*info->name)
        hwnas_str_addf(out, "         %s%s%s%s%s\n", info->name, *info->library ? ", " : "",
                       info->library, *info->isa ? ", " : "", info->isa);
    if (info->emulated)
        add_precisions(out, info);
    if (*f->trouble)
        hwnas_str_addf(out, "         %s: %s\n",
                       f->works ? "cannot be measured here" : "does not work here", f->trouble);
    if (f->n)
        hwnas_roofline_text(out, f->rooflines, f->n);
}

/* Whether measurements may take the cores from other programs, and what would allow it. */
static json_t *find_priority(hwnas_str *text)
{
    const bool is_allowed = hwnas_priority_check() == HWNAS_OK;
    const hwnas_error *error = hwnas_last_error();
    json_t *object = json_pack("{s:b, s:s?, s:s?}", "realtime", is_allowed, "message",
                               is_allowed ? NULL : error->message, "hint",
                               is_allowed ? NULL : error->hint);
    if (is_allowed)
        hwnas_str_add(text, "priority real-time: other programs do not disturb a measurement\n");
    else
        hwnas_str_addf(text, "priority normal: %s\n         to allow it: %s\n", error->message,
                       error->hint);
    hwnas_error_clear();
    return object;
}

static json_t *to_json(const finding *f)
{
    json_t *rooflines = json_array();
    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(rooflines, hwnas_roofline_json(&f->rooflines[i]));
    return json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:i, s:o, s:o, s:o}", "name", f->ops->name,
                     "help", f->ops->help, "works", f->works, "description", f->info.name,
                     "library", f->info.library, "isa", f->info.isa, "threads", f->info.threads,
                     "native", names_of(f->info.native), "emulated", names_of(f->info.emulated),
                     "rooflines", rooflines);
}

hwnas_status hwnas_cmd_devices(int argc, char **argv)
{
    bool as_json = false, refresh = false, done;
    int n;
    const hwnas_option options[] = {
        {"refresh", 0, HWNAS_OPTION_FLAG, &refresh, NULL, "measure again"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, NULL, &n, &done));
    if (done)
        return HWNAS_OK;
    hwnas_status status = HWNAS_OK;
    hwnas_str text = {0};
    json_t *devices = json_array();
    hwnas_measure_options measuring = HWNAS_MEASURE_DEFAULTS;
    measuring.stop = hwnas_stop_on_signals();
    for (const hwnas_device_ops **row = hwnas_devices; *row; row++) {
        finding f = {.ops = *row};
        TRY_OUT(examine(&f, refresh, &measuring));
        add_text(&text, &f);
        json_array_append_new(devices, to_json(&f));
    }
    json_t *priority = find_priority(&text);
    if (as_json)
        status = hwnas_print_json(json_pack("{s:s, s:i, s:O, s:O}", "format", "hwnas.devices",
                                            "version", 1, "devices", devices, "priority",
                                            priority));
    else
        status = hwnas_print_text(&text);
    json_decref(priority);
out:
    json_decref(devices);
    hwnas_str_done(&text);
    return status;
}
