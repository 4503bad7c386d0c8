/* space_fixture.h: spaces of tests, from a text or by their name. */
#ifndef HWNAS_TESTS_SPACE_FIXTURE_H
#define HWNAS_TESTS_SPACE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/elaborate.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* The last failure, as a user reads it; good until the next call. */
static inline const char *describe(void)
{
    static char text[2048];
    const hwnas_error *e = hwnas_last_error();
    snprintf(text, sizeof text, "%s:%d:%d: %s\n#   hint: %s", e->file, e->line, e->column,
             e->message, e->hint);
    return text;
}

/* Both are checked, and fail the test with what is wrong. */
static inline hwnas_space *parse_text(const char *text)
{
    hwnas_space *space = NULL;
    hwnas_status status = hwnas_space_parse(&space, "test.yaml", text, strlen(text), NULL);
    if (status == HWNAS_OK)
        status = hwnas_graph_check(space);
    if (status != HWNAS_OK)
        fail_msg("%s", describe());
    return space;
}

static inline hwnas_space *load(const char *name)
{
    hwnas_space *space = NULL;
    if (hwnas_graph_load_space(&space, name) != HWNAS_OK)
        fail_msg("%s", describe());
    return space;
}

/* The space has so many networks, which is known exactly. */
static inline void expect_count(const hwnas_space *space, const char *expected)
{
    bool is_exact = false;
    char *count = hwnas_space_count(space, &is_exact);
    assert_true(is_exact);
    assert_string_equal(count, expected);
    free(count);
}

#endif
