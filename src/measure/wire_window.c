/* wire_window.c: what one of several copies has measured, as JSON. */
#include <stdlib.h>

#include "measure/wire.h"

json_t *hwnas_wire_window(const hwnas_window *window)
{
    json_t *samples = json_array();
    for (size_t i = 0; i < window->n; i++)
        json_array_append_new(samples, json_real(window->samples[i]));
    return json_pack("{s:o, s:f, s:f, s:f, s:o}", "measurement", hwnas_wire_measurement(&window->m),
                     "runs_per_second", window->runs_per_second, "begin", window->begin, "end",
                     window->end, "samples", samples);
}

bool hwnas_wire_read_window(hwnas_window *out, const json_t *object)
{
    const json_t *samples = json_object_get(object, "samples");
    const json_t *rate = json_object_get(object, "runs_per_second");
    hwnas_window window = {.n = json_array_size(samples)};
    if (!window.n || window.n > HWNAS_WINDOW_SAMPLES || !json_is_number(rate) ||
        !hwnas_wire_read_measurement(&window.m, json_object_get(object, "measurement")))
        return false;
    window.runs_per_second = json_number_value(rate);
    window.begin = json_number_value(json_object_get(object, "begin"));
    window.end = json_number_value(json_object_get(object, "end"));
    window.samples = hwnas_alloc(window.n * sizeof *window.samples);
    for (size_t i = 0; i < window.n; i++) {
        const json_t *sample = json_array_get(samples, i);
        if (!json_is_number(sample)) {
            free(window.samples);
            return false;
        }
        window.samples[i] = json_number_value(sample);
    }
    *out = window;
    return true;
}
