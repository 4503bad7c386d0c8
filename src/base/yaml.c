#include "base/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/str.h"

/* Deeper than anybody writes, shallow enough for every recursion over the tree. */
#define MAX_DEPTH 64

typedef struct yaml_loader {
    yaml_parser_t parser;
    hwnas_arena *arena;
    const char *path, *text;
    size_t length;
} yaml_loader;

static hwnas_place place_of(const yaml_loader *loader, yaml_mark_t mark)
{
    return (hwnas_place){loader->path, (int)mark.line + 1, (int)mark.column + 1};
}

/* The place of a byte, for what is not text: libyaml gives only its offset. */
static hwnas_place place_of_int8(const yaml_loader *loader, size_t offset)
{
    hwnas_place place = {loader->path, 1, 1};
    for (size_t i = 0; i < offset && i < loader->length; i++) {
        unsigned char byte = (unsigned char)loader->text[i];
        place.line += byte == '\n';
        place.column = byte == '\n' ? 1 : place.column + ((byte & 0xC0) != 0x80);
    }
    return place;
}

static hwnas_status bad_text(const yaml_loader *loader)
{
    const yaml_parser_t *p = &loader->parser;
    hwnas_place place = place_of_int8(loader, p->problem_offset);
    if (p->problem && strstr(p->problem, "control characters"))
        return hwnas_fail(HWNAS_E_INPUT, &place, "a text file may not hold the byte 0x%02x",
                          (unsigned)p->problem_value);
    return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "this is not text in UTF-8: %s",
                                 p->problem ? p->problem : "unreadable"),
                      "save the file as UTF-8");
}

static hwnas_status next_event(yaml_loader *loader, yaml_event_t *event)
{
    if (yaml_parser_parse(&loader->parser, event))
        return HWNAS_OK;
    const yaml_parser_t *p = &loader->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory to read YAML");
    if (p->error == YAML_READER_ERROR)
        return bad_text(loader);
    hwnas_place place = place_of(loader, p->problem_mark);
    if (p->problem && strstr(p->problem, "cannot start any token") && *p->buffer.pointer == '\t')
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "a tab may not indent"),
                          "indent with blanks");
    return hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, &place, "this is no YAML: %s%s%s",
                   p->problem ? p->problem : "syntax error", p->context ? ", " : "",
                   p->context ? p->context : ""),
        "look at the indentation, and quote a text that begins with [ or {, that holds "
        "': ' or ' #', or inside of { } a comma, [ or ]");
}

static hwnas_status load_node(hwnas_yaml **out, yaml_loader *loader, const yaml_event_t *event,
                              int depth);

static void append(hwnas_yaml ***list, size_t *n, size_t *capacity, hwnas_yaml *node)
{
    HWNAS_GROW(*list, *n, *capacity);
    (*list)[(*n)++] = node;
}

/* By text; equal keys as they stand in the file. */
static int compare_keys(const void *a, const void *b)
{
    const hwnas_yaml *left = *(hwnas_yaml *const *)a, *right = *(hwnas_yaml *const *)b;
    int order = strcmp(left->text, right->text);
    if (order == 0)
        order = left->place.line - right->place.line;
    return order ? order : left->place.column - right->place.column;
}

/* Sorts, so that a large mapping is no slower to check than to read. */
static hwnas_status check_unique(hwnas_yaml *const *keys, size_t n)
{
    hwnas_yaml **sorted = hwnas_alloc(n * sizeof *sorted);
    if (n)
        memcpy(sorted, keys, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_keys);
    hwnas_status status = HWNAS_OK;
    for (size_t i = 1; i < n && status == HWNAS_OK; i++)
        if (!strcmp(sorted[i - 1]->text, sorted[i]->text))
            status = hwnas_fail(HWNAS_E_INPUT, &sorted[i]->place,
                                "the key '%.60s' is already on line %d", sorted[i]->text,
                                sorted[i - 1]->place.line);
    free(sorted);
    return status;
}

/* Reads the children of a sequence or mapping up to its end. */
static hwnas_status load_children(hwnas_yaml *node, yaml_loader *loader, int depth)
{
    hwnas_status status = HWNAS_OK;
    bool is_map = node->kind == HWNAS_YAML_MAPPING;
    hwnas_yaml **keys = NULL, **items = NULL, *child;
    size_t n_keys = 0, key_room = 0, n_items = 0, item_room = 0;
    for (;;) {
        yaml_event_t event;
        TRY_OUT(next_event(loader, &event));
        bool ends = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        status = ends ? HWNAS_OK : load_node(&child, loader, &event, depth + 1);
        yaml_event_delete(&event);
        if (ends || status != HWNAS_OK)
            break;
        if (is_map && n_keys == n_items) {
            if (child->kind != HWNAS_YAML_SCALAR) {
                status = hwnas_fail(HWNAS_E_INPUT, &child->place, "a key must be a single word");
                break;
            }
            append(&keys, &n_keys, &key_room, child);
        } else {
            append(&items, &n_items, &item_room, child);
        }
    }
    if (status == HWNAS_OK)
        status = check_unique(keys, n_keys);
    node->n = n_items;
    node->keys = hwnas_arena_copy(loader->arena, keys, n_keys * sizeof *keys);
    node->items = hwnas_arena_copy(loader->arena, items, n_items * sizeof *items);
out:
    free(keys);
    free(items);
    return status;
}

static hwnas_status load_node(hwnas_yaml **out, yaml_loader *loader, const yaml_event_t *event,
                              int depth)
{
    hwnas_place place = place_of(loader, event->start_mark);
    if (depth > MAX_DEPTH)
        return hwnas_fail(HWNAS_E_INPUT, &place, "more than %d levels inside each other",
                          MAX_DEPTH);
    hwnas_yaml *node = hwnas_arena_alloc(loader->arena, sizeof *node);
    node->place = place;
    const unsigned char *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        node->kind = HWNAS_YAML_SCALAR;
        node->text = hwnas_arena_string(loader->arena, (const char *)event->data.scalar.value,
                                        event->data.scalar.length);
        node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
        node->is_verbatim = event->start_mark.line == event->end_mark.line &&
                            event->end_mark.column - event->start_mark.column ==
                                event->data.scalar.length + 2u * node->is_quoted;
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        if (strlen(node->text) != event->data.scalar.length)
            return hwnas_fail(HWNAS_E_INPUT, &place, "a text may not hold a zero byte");
        break;
    case YAML_SEQUENCE_START_EVENT:
        node->kind = HWNAS_YAML_SEQUENCE;
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        break;
    case YAML_MAPPING_START_EVENT:
        node->kind = HWNAS_YAML_MAPPING;
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        break;
    default: /* an alias; everything else is handled by the callers */
        anchor = (const unsigned char *)"*";
        break;
    }
    if (anchor)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &place, "anchors (&) and aliases (*) are not used here"),
            "write a template for what repeats, or quote a text that begins so");
    if (tag)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &place, "tags (!) are not used here"),
                          "write 'not' for a negation, and quote a text that begins so");
    if (node->kind != HWNAS_YAML_SCALAR)
        TRY(load_children(node, loader, depth));
    *out = node;
    return HWNAS_OK;
}

/* Reads events up to the first of the document's content. */
static hwnas_status load_document(hwnas_yaml **out, yaml_loader *loader)
{
    hwnas_yaml *root = NULL;
    bool ends = false;
    while (!ends) {
        yaml_event_t event;
        TRY(next_event(loader, &event));
        hwnas_place place = place_of(loader, event.start_mark);
        hwnas_status status = HWNAS_OK;
        switch (event.type) {
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
            break;
        case YAML_DOCUMENT_START_EVENT:
            if (root)
                status = hwnas_fail(HWNAS_E_INPUT, &place,
                                    "a second document begins here, a file holds one");
            break;
        case YAML_STREAM_END_EVENT:
            ends = true;
            break;
        default:
            status = load_node(&root, loader, &event, 0);
        }
        yaml_event_delete(&event);
        TRY(status);
    }
    if (!root) {
        hwnas_place place = {.file = loader->path, .line = 1, .column = 1};
        return hwnas_fail(HWNAS_E_INPUT, &place, "the file is empty");
    }
    *out = root;
    return HWNAS_OK;
}

hwnas_status hwnas_yaml_parse(hwnas_yaml **out, hwnas_arena *arena, const char *path,
                              const char *text, size_t length)
{
    yaml_loader loader = {.arena = arena,
                          .path = hwnas_arena_string(arena, path, strlen(path)),
                          .text = text,
                          .length = length};
    if (!yaml_parser_initialize(&loader.parser))
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory to read YAML");
    yaml_parser_set_input_string(&loader.parser, (const unsigned char *)text, length);
    yaml_parser_set_encoding(&loader.parser, YAML_UTF8_ENCODING);
    hwnas_status status = load_document(out, &loader);
    yaml_parser_delete(&loader.parser);
    return status;
}

const hwnas_yaml *hwnas_yaml_get(const hwnas_yaml *map, const char *key)
{
    if (map->kind == HWNAS_YAML_MAPPING)
        for (size_t i = 0; i < map->n; i++)
            if (!strcmp(map->keys[i]->text, key))
                return map->items[i];
    return NULL;
}

hwnas_status hwnas_yaml_expect(const hwnas_yaml *node, hwnas_yaml_kind kind, const char *what)
{
    static const char *const names[] = {"a single value", "a list", "a mapping (key: value)"};
    if (node->kind == kind)
        return HWNAS_OK;
    if (node->kind == HWNAS_YAML_SCALAR && !*node->text)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "%s is empty, %s was expected", what,
                          names[kind]);
    return hwnas_fail(HWNAS_E_INPUT, &node->place, "%s must be %s, this is %s", what, names[kind],
                      names[node->kind]);
}

hwnas_status hwnas_yaml_text(const char **out, const hwnas_yaml *node, const char *what)
{
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_SCALAR, what));
    if (!*node->text)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "%s is empty", what);
    *out = node->text;
    return HWNAS_OK;
}

hwnas_status hwnas_yaml_int(int64_t *out, const hwnas_yaml *node, const char *what, int64_t low,
                            int64_t high)
{
    const char *text = "";
    char *end;
    TRY(hwnas_yaml_text(&text, node, what));
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (*end)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "%s must be a whole number, not '%.60s'",
                          what, text);
    if (errno || value < low || value > high)
        return hwnas_fail(HWNAS_E_INPUT, &node->place,
                          "%s must be between %lld and %lld, not %.60s", what, (long long)low,
                          (long long)high, text);
    *out = value;
    return HWNAS_OK;
}

hwnas_status hwnas_yaml_number(double *out, const hwnas_yaml *node, const char *what, double low,
                               double high)
{
    const char *text = "";
    char *end;
    TRY(hwnas_yaml_text(&text, node, what));
    double value = strtod(text, &end);
    if (*end || !isfinite(value))
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "%s must be a number, not '%.60s'", what,
                          text);
    if (value < low || value > high)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "%s must be between %g and %g, not %.60s",
                          what, low, high, text);
    *out = value;
    return HWNAS_OK;
}

hwnas_status hwnas_yaml_check_keys(const hwnas_yaml *map, const char *what,
                                   const char *const *names)
{
    TRY(hwnas_yaml_expect(map, HWNAS_YAML_MAPPING, what));
    for (size_t i = 0; i < map->n; i++) {
        const char *const *name = names;
        while (*name && strcmp(*name, map->keys[i]->text))
            name++;
        if (*name)
            continue;
        hwnas_status status = hwnas_fail(HWNAS_E_INPUT, &map->keys[i]->place,
                                         "%s has no key '%.60s'", what, map->keys[i]->text);
        const char *near = hwnas_nearest(map->keys[i]->text, names);
        if (near)
            return hwnas_hint(status, "did you mean '%s'?", near);
        hwnas_str list = {0};
        for (name = names; *name; name++)
            hwnas_str_addf(&list, "%s%s", list.n ? ", " : "", *name);
        hwnas_hint(status, "its keys are %s", list.s ? list.s : "none");
        hwnas_str_done(&list);
        return status;
    }
    return HWNAS_OK;
}
