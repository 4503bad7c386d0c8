/* calibrate: fills the table of latencies for a space, on purpose. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "graph/elaborate.h"
#include "latency/calibrate.h"

static const hwnas_usage usage = {
    .synopsis = "calibrate SPACE",
    .summary = "Measures networks of a space for some minutes, those that teach the table of\n"
               "latencies most, so that searches can estimate the others without running them.",
    .notes = "The table is kept in $XDG_CACHE_HOME/hwnas (~/.cache/hwnas); another run goes on "
             "with it.\n"
             "hwnas calibrate ofa_mobilenet_v3 --minutes 5",
    .min_arguments = 1,
    .max_arguments = 1};

static void show_progress(void *context, const hwnas_calibration *c)
{
    (void)context;
    if (!isatty(STDERR_FILENO))
        return;
    fputs("\r\033[K", stderr);
    hwnas_say(stderr, "%4.0f s: %zu networks, %zu parts", c->seconds, c->table.n_networks,
              c->table.n_parts);
    if (c->n_held_out)
        hwnas_say(stderr, "; estimates of random ones: %.1f %% off in the median", 100 * c->error);
}

static json_t *to_json(const hwnas_calibration *c)
{
    json_t *held_out = json_pack("{s:I}", "networks", (json_int_t)c->n_held_out);
    const struct {
        const char *name;
        double value;
    } shares[] = {{"median_error", c->error},
                  {"within_5", c->within_5},
                  {"within_10", c->within_10},
                  {"coverage", c->coverage}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        json_object_set_new(held_out, shares[i].name,
                            c->n_held_out ? json_real(shares[i].value) : json_null());
    return json_pack("{s:s, s:i, s:s, s:I, s:I, s:I, s:f, s:{s:I, s:I}, s:o}", "format",
                     "hwnas.calibration", "version", 1, "key", c->key, "measured",
                     (json_int_t)c->n_measured, "unstable", (json_int_t)c->n_unstable, "failed",
                     (json_int_t)c->n_failed, "seconds", c->seconds, "table", "networks",
                     (json_int_t)c->table.n_networks, "parts", (json_int_t)c->table.n_parts,
                     "held_out", held_out);
}

static hwnas_status print(const hwnas_calibration *c, bool as_json)
{
    if (as_json)
        return hwnas_print_json(to_json(c));
    hwnas_str text = {0};
    hwnas_str_addf(&text, "%zu networks measured in %.0f s", c->n_measured, c->seconds);
    if (c->n_unstable)
        hwnas_str_addf(&text, ", %zu of them while the machine was disturbed", c->n_unstable);
    if (c->n_failed)
        hwnas_str_addf(&text, ", %zu failed", c->n_failed);
    hwnas_str_addf(&text, "\nthe table has %zu networks and %zu parts\n", c->table.n_networks,
                   c->table.n_parts);
    if (c->n_held_out)
        hwnas_str_addf(
            &text,
            "%zu random networks, estimated before they were measured: %.1f %% off in the "
            "median,\n%.0f %% within 5 %%, %.0f %% within 10 %%, %.0f %% in the 95 %% interval\n",
            c->n_held_out, 100 * c->error, 100 * c->within_5, 100 * c->within_10,
            100 * c->coverage);
    return hwnas_print_text(&text);
}

hwnas_status hwnas_cmd_calibrate(int argc, char **argv)
{
    const char *name, *device = "cpu", *dtype = "f32";
    double minutes = 5;
    long threads = 0, batch = 1, seed = 0;
    bool as_json = false, done;
    int n;
    const hwnas_option options[] = {
        {"device", 'd', HWNAS_OPTION_TEXT, &device, "DEVICE", "that measures (cpu)"},
        {"minutes", 'm', HWNAS_OPTION_NUMBER, &minutes, "X", "to spend (5)"},
        {"threads", 't', HWNAS_OPTION_INT, &threads, "N", "of the device (all cores)"},
        {"batch", 'b', HWNAS_OPTION_INT, &batch, "N", "inputs of one inference (1)"},
        {"dtype", 0, HWNAS_OPTION_TEXT, &dtype, "TYPE", "f32, bf16, ... (f32)"},
        {"seed", 's', HWNAS_OPTION_INT, &seed, "N", "of the networks (0)"},
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "print a JSON object"},
        {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, &name, &n, &done));
    if (done)
        return HWNAS_OK;
    if (minutes <= 0 || batch < 1 || batch > 1 << 16 || threads > 1 << 12)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "--minutes, --batch or --threads is out of range");
    hwnas_status status = HWNAS_OK;
    hwnas_space *space = NULL;
    hwnas_latencies *latencies = NULL;
    hwnas_calibration result;
    hwnas_calibrate_options o = {.device = device,
                                 .threads = (int)threads,
                                 .batch = (int)batch,
                                 .seconds = 60 * minutes,
                                 .seed = (uint64_t)seed,
                                 .progress = show_progress};
    TRY_OUT(hwnas_precision_find(&o.precision, dtype));
    TRY_OUT(hwnas_graph_load_space(&space, name));
    hwnas_note_crowd(device, o.threads, HWNAS_PRIORITY_AUTO);
    latencies = hwnas_latencies_open(true);
    o.stop = hwnas_stop_on_signals();
    status = hwnas_calibrate(&result, latencies, space, &o);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (hwnas_latencies_note(latencies))
        hwnas_say(stderr, "hwnas: note: %s\n", hwnas_latencies_note(latencies));
    if (status != HWNAS_OK && status != HWNAS_E_INTERRUPTED)
        goto out;
    const hwnas_status ended = status;
    TRY_OUT(print(&result, as_json));
    status = ended;
    if (ended == HWNAS_E_INTERRUPTED)
        status = hwnas_fail(ended, NULL, "interrupted; what was measured is in the table");
out:
    hwnas_latencies_close(latencies);
    hwnas_space_free(space);
    return status;
}
