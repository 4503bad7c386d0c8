/* page_html.c: puts a page together. */
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "report/page.h"

bool hwnas_page_has_charts(void)
{
    for (const hwnas_page_part *part = hwnas_page_parts; part->name; part++)
        if (hwnas_starts_with(part->name, "uPlot"))
            return true;
    return false;
}

typedef struct contents {
    const char *json, *source;
} contents;

static void add_parts(hwnas_str *out, const char *ending)
{
    for (const hwnas_page_part *part = hwnas_page_parts; part->name; part++)
        if (hwnas_ends_with(part->name, ending))
            hwnas_str_add(out, part->text);
}

static void add_style(hwnas_str *out, const contents *c)
{
    (void)c;
    add_parts(out, ".css");
}

static void add_scripts(hwnas_str *out, const contents *c)
{
    (void)c;
    add_parts(out, ".js");
}

/* What the licence of uPlot asks for. */
static void add_notices(hwnas_str *out, const contents *c)
{
    (void)c;
    if (!hwnas_page_has_charts())
        return;
    hwnas_str_add(out, "uPlot, which is a part of this file:\n\n");
    add_parts(out, "LICENSE");
}

/* Names may hold "</script>" or "<!--", which would end the element: JSON needs no '<' but in
 * strings. */
static void add_data(hwnas_str *out, const contents *c)
{
    for (const char *at = c->json; *at;) {
        const size_t n = strcspn(at, "<");
        hwnas_str_addn(out, at, n);
        at += n;
        if (*at == '<') {
            hwnas_str_add(out, "\\u003c");
            at++;
        }
    }
}

/* The page runs scripts with this number alone, and names of others cannot know it: it follows from
 * all of the data, or from the path that they come from, which is as secret. */
static void add_nonce(hwnas_str *out, const contents *c)
{
    const char *secret = c->source ? c->source : c->json;
    const XXH128_hash_t hash = XXH3_128bits(secret, strlen(secret));
    hwnas_str_addf(out, "%016llx%016llx", (unsigned long long)hash.high64,
                   (unsigned long long)hash.low64);
}

/* A page that has its data loads nothing; another one asks its own server alone. */
static void add_connections(hwnas_str *out, const contents *c)
{
    if (c->source)
        hwnas_str_add(out, "; connect-src 'self'");
}

static void add_source(hwnas_str *out, const contents *c)
{
    if (c->source)
        hwnas_str_addf(out, " data-source=\"%s\"", c->source);
}

static const struct {
    const char *mark;
    void (*add)(hwnas_str *out, const contents *c);
} places[] = {
    {"@notices@", add_notices}, {"@style@", add_style}, {"@scripts@", add_scripts},
    {"@data@", add_data},       {"@nonce@", add_nonce}, {"@connections@", add_connections},
    {"@source@", add_source},
};

static const char *template(void)
{
    const hwnas_page_part *part = hwnas_page_parts;
    while (strcmp(part->name, "page.html") != 0)
        part++;
    return part->text;
}

/* Fills the place at the start of `at`; its length, 0: there is none. */
static size_t fill(hwnas_str *out, const char *at, const contents *c)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (hwnas_starts_with(at, places[i].mark)) {
            places[i].add(out, c);
            return strlen(places[i].mark);
        }
    return 0;
}

void hwnas_page_draw(hwnas_str *out, const char *json, const char *source)
{
    const contents c = {json, source};
    for (const char *at = template(); *at;) {
        size_t n = fill(out, at, &c);
        if (!n) {
            n = 1 + strcspn(at + 1, "@");
            hwnas_str_addn(out, at, n);
        }
        at += n;
    }
}
