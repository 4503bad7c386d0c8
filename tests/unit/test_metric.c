/* test_metric.c: how the values of metrics are written: which unit, and how many decimals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/str.h"
#include "trial/metric.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A tiny network's figures are not all 0.0. */
static void units_fit_the_values(void **state)
{
    (void)state;
    static const struct {
        const char *metric;
        double most;
        const char *expected;
    } rows[] = {
        {"latency.p50", 12.3456e-3, "12.346 ms"},
        {"latency.p50", 1e-3, "1.000 ms"},
        {"latency.p50", 34.1e-6, "34.10 us"},
        {"latency.p99", 94e-9, "0.0940 us"},
        {"latency.p50", 0, "0.000 ms"},
        {"energy", 5e-6, "5.000 uJ"},
        {"memory", 3.5 * 1048576, "3.5 MiB"},
        {"memory", 200 * 1024, "200.0 KiB"},
        {"memory.device", 512, "0.500 KiB"},
        {"macs", 648, "0.648 k"},
        {"macs", 2e5, "0.200 M"},
        {"params", 20, "0.0200 k"},
        {"params", 2e4, "0.0200 M"},
        {"accuracy", 0.5, "0.500 %"},
        {"throughput", 0.5, "0.500 /s"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const hwnas_metric *metric = NULL;
        char phase[HWNAS_PHASE_NAME];
        assert_int_equal(hwnas_metric_find(&metric, phase, rows[i].metric, NULL), HWNAS_OK);
        const hwnas_metric m = hwnas_metric_shown(metric, rows[i].most);
        char *text = hwnas_printf("%.*f %s", m.decimals, rows[i].most / m.scale, m.unit);
        assert_string_equal(text, rows[i].expected);
        free(text);
    }
}

/* Values that are compared differ in what is shown of them, and others keep their usual digits. */
static void decimals_tell_values_apart(void **state)
{
    (void)state;
    static const struct {
        const char *metric;
        double least, most;
        const char *expected;
    } rows[] = {
        {"accuracy", 70.25, 93.13, "70.25 93.13 %"},
        {"accuracy", 93.12, 93.14, "93.12 93.14 %"},
        {"accuracy", 93.121, 93.124, "93.1210 93.1240 %"},
        {"accuracy", 93.12, 93.12, "93.12 93.12 %"},
        {"accuracy", 0.0512, 0.0538, "0.0512 0.0538 %"},
        {"accuracy", 0.05121, 0.05128, "0.051210 0.051280 %"},
        {"latency.p50", 12.3451e-3, 12.3452e-3, "12.34510 12.34520 ms"},
        {"latency.p50", 1e-30, 12e-3, "0.000 12.000 ms"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const hwnas_metric *metric = NULL;
        char phase[HWNAS_PHASE_NAME];
        assert_int_equal(hwnas_metric_find(&metric, phase, rows[i].metric, NULL), HWNAS_OK);
        const hwnas_metric m = hwnas_metric_shown_among(metric, rows[i].least, rows[i].most);
        char *text = hwnas_printf("%.*f %.*f %s", m.decimals, rows[i].least / m.scale, m.decimals,
                                  rows[i].most / m.scale, m.unit);
        assert_string_equal(text, rows[i].expected);
        free(text);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_fit_the_values),
        cmocka_unit_test(decimals_tell_values_apart),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
