/* api_fixture.h: folders of tests, and reports as text and as JSON. Wants _GNU_SOURCE, for
 * mkdtemp(). */
#ifndef HWNAS_TEST_API_FIXTURE_H
#define HWNAS_TEST_API_FIXTURE_H

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hwnas.h>

/* A folder of its own for each test, in *state. */
static inline int make_folder(void **state)
{
    static char folder[32];
    strcpy(folder, "test_api.XXXXXX");
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf '%s'", (const char *)*state);
    return system(command);
}

/* A report in a format, which is to be there; it is freed. */
static inline char *text_of(hwnas_report *report, hwnas_format format)
{
    char *text = NULL;
    assert_int_equal(hwnas_report_write(&text, report, format), HWNAS_OK);
    hwnas_report_free(report);
    return text;
}

static inline char *network_text(const hwnas_network *network, hwnas_format format)
{
    hwnas_report *report;
    assert_int_equal(hwnas_network_report(&report, network), HWNAS_OK);
    return text_of(report, format);
}

/* The JSON of a report, which is freed. */
static inline json_t *json_of(hwnas_report *report)
{
    char *text = text_of(report, HWNAS_JSON);
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    hwnas_free(text);
    return json;
}

static inline bool is_format(const json_t *json, const char *format)
{
    return !strcmp(json_string_value(json_object_get(json, "format")), format);
}

#endif
