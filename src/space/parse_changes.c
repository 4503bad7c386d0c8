/* parse_changes.c: a space that was derived from a model: its file, and what may change in it. */
#include <string.h>

#include "space/expr.h"
#include "space/parse.h"

/* Beside the space's file, unless it is absolute. */
static const char *path_of(const hwnas_space *space, const char *name)
{
    const char *slash = strrchr(space->path, '/');
    if (*name == '/' || !slash)
        return name;
    return hwnas_arena_printf(space->arena, "%.*s/%s", (int)(slash - space->path), space->path,
                              name);
}

/* "width: {of: NAME, to: EXPRESSION}" */
static hwnas_status parse_change(hwnas_model_change *out, const hwnas_space *space,
                                 const hwnas_yaml *node)
{
    static const char *const keys[] = {"of", "to", NULL};
    const hwnas_scope scope = {.space = space};
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "a change"));
    if (node->n != 1)
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &node->place, "a change has one kind, not %zu", node->n),
            "- width: {of: conv1, to: channels}");
    const hwnas_yaml *what = node->items[0];
    out->kind = node->keys[0]->text;
    out->place = node->keys[0]->place;
    TRY(hwnas_yaml_expect(what, HWNAS_YAML_MAPPING, "what is changed"));
    TRY(hwnas_yaml_check_keys(what, "a change", keys));
    for (const char *const *key = keys; *key; key++)
        if (!hwnas_yaml_get(what, *key))
            return hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, &what->place, "'%.40s' needs '%s:'", out->kind, *key),
                "- %.40s: {of: NAME, to: VALUE}", out->kind);
    const hwnas_yaml *of = hwnas_yaml_get(what, "of");
    TRY(hwnas_yaml_text(&out->of, of, "'of'"));
    out->of_place = of->place;
    return hwnas_parse_expr(&out->to, &scope, hwnas_yaml_get(what, "to"), "'to'");
}

hwnas_status hwnas_parse_changes(hwnas_space *space, const hwnas_yaml *model,
                                 const hwnas_yaml *changes)
{
    const char *name;
    TRY(hwnas_yaml_text(&name, model, "'model'"));
    space->model_path = path_of(space, name);
    space->model_place = model->place;
    TRY(hwnas_yaml_expect(changes, HWNAS_YAML_SEQUENCE, "'changes'"));
    if (changes->n > HWNAS_MAX_CHANGES)
        return hwnas_fail(HWNAS_E_INPUT, &changes->place, "a space has at most %d changes",
                          HWNAS_MAX_CHANGES);
    space->changes = hwnas_arena_alloc(space->arena, (changes->n + 1) * sizeof *space->changes);
    for (size_t i = 0; i < changes->n; i++)
        TRY(parse_change(&space->changes[i], space, changes->items[i]));
    space->n_changes = changes->n;
    return HWNAS_OK;
}
