/* narrow.c: a space that is another one with fewer values. It has no network of its own:
 *
 *     hwnas: 1
 *     name: gpt_s
 *     base: gpt
 *     choices:
 *       layers: {values: [10, 11, 12]}
 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "base/yaml.h"
#include "space/hold.h"
#include "space/parse.h"

/* A file beside this one, or a name. */
static hwnas_status load_base(hwnas_space **out, const char *path, const hwnas_yaml *node,
                              const char *settings)
{
    const char *name;
    TRY(hwnas_yaml_text(&name, node, "'base'"));
    char *beside = hwnas_file_beside(path, name);
    hwnas_status status =
        hwnas_space_load_base(out, hwnas_file_exists(beside) ? beside : name, settings);
    if (status == HWNAS_E_NOT_FOUND)
        status = hwnas_fail_at(status, &node->place);
    free(beside);
    return status;
}

static const hwnas_choice *find_choice(const hwnas_space *base, const char *name)
{
    for (size_t c = 0; c < base->n_choices; c++)
        if (!strcmp(base->choices[c].name, name))
            return &base->choices[c];
    return NULL;
}

/* Keeps a value at all positions that have it. */
static hwnas_status keep_value(bool **kept, const hwnas_space *base, const hwnas_choice *choice,
                               const hwnas_yaml *node)
{
    hwnas_scope empty = {.space = (hwnas_space *)base};
    hwnas_value value;
    bool is_known = false, is_repeated = false;
    TRY(hwnas_parse_constant(&value, &empty, node, "a value of a choice"));
    for (size_t g = choice->first_gene; g < choice->first_gene + choice->n_positions; g++)
        for (size_t v = 0; v < base->genes[g].n_values; v++)
            if (hwnas_value_equal(&base->genes[g].values[v], &value)) {
                is_repeated |= kept[g][v];
                is_known = kept[g][v] = true;
            }
    if (is_repeated)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' has the value '%.60s' twice",
                          choice->name, node->text);
    return is_known ? HWNAS_OK
                    : hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place,
                                            "'%s' of '%s' has no value '%.60s'", choice->name,
                                            base->name, node->text),
                                 "'hwnas space show %s' lists its values", base->name);
}

static hwnas_status narrow_choice(bool **kept, const hwnas_space *base, const hwnas_yaml *key,
                                  const hwnas_yaml *node)
{
    static const char *const keys[] = {"values", NULL};
    const hwnas_choice *choice = find_choice(base, key->text);
    if (!choice)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &key->place, "'%s' has no choice '%.60s'",
                                     base->name, key->text),
                          "'hwnas space show %s' lists its choices", base->name);
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "a choice"));
    TRY(hwnas_yaml_check_keys(node, "a choice of a space with a base", keys));
    const hwnas_yaml *values = hwnas_yaml_get(node, "values");
    if (!values)
        return hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' has no values", choice->name);
    TRY(hwnas_yaml_expect(values, HWNAS_YAML_SEQUENCE, "values"));
    for (size_t g = choice->first_gene; g < choice->first_gene + choice->n_positions; g++)
        memset(kept[g], 0, base->genes[g].n_values * sizeof *kept[g]);
    for (size_t i = 0; i < values->n; i++)
        TRY(keep_value(kept, base, choice, values->items[i]));
    for (size_t p = 0; p < choice->n_positions; p++) {
        const size_t g = choice->first_gene + p;
        bool has_any = false;
        for (size_t v = 0; v < base->genes[g].n_values; v++)
            has_any |= kept[g][v];
        if (!has_any)
            return hwnas_fail(HWNAS_E_INPUT, &values->place,
                              "no value is left for position %zu of '%s'", p + 1, choice->name);
    }
    return HWNAS_OK;
}

static hwnas_status narrow(const hwnas_space **out, const hwnas_space *base, const hwnas_yaml *node)
{
    hwnas_status status = hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "choices");
    bool **kept = hwnas_alloc((base->n_genes + 1) * sizeof *kept);
    for (size_t g = 0; g < base->n_genes; g++) {
        kept[g] = hwnas_alloc(base->genes[g].n_values * sizeof *kept[g]);
        memset(kept[g], true, base->genes[g].n_values * sizeof *kept[g]);
    }
    for (size_t i = 0; status == HWNAS_OK && i < node->n; i++)
        status = narrow_choice(kept, base, node->keys[i], node->items[i]);
    if (status == HWNAS_OK) {
        status = hwnas_space_hold(out, base, (const bool *const *)kept);
        if (status != HWNAS_OK)
            hwnas_context(status, "with the values of %s:%d", node->place.file, node->place.line);
    }
    for (size_t g = 0; g < base->n_genes; g++)
        free(kept[g]);
    free(kept);
    return status;
}

hwnas_status hwnas_parse_narrow(hwnas_space **out, const char *path, const hwnas_yaml *root,
                                const char *settings)
{
    static const char *const keys[] = {"hwnas", "name", "about", "base", "choices", NULL};
    const hwnas_yaml *name = hwnas_yaml_get(root, "name"), *about = hwnas_yaml_get(root, "about"),
                     *choices = hwnas_yaml_get(root, "choices");
    const char *own_name, *own_about = NULL;
    hwnas_space *base;
    const hwnas_space *held;
    TRY(hwnas_yaml_check_keys(root, "a space with a base", keys));
    if (!hwnas_yaml_get(root, "hwnas"))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &root->place, "a space with a base needs 'hwnas:'"),
            "write hwnas: 1, the version of the language");
    if (!name || !choices)
        return hwnas_fail(HWNAS_E_INPUT, &root->place, "a space with a base needs '%s:'",
                          name ? "choices" : "name");
    TRY(hwnas_yaml_text(&own_name, name, "name"));
    TRY(hwnas_check_name(own_name, "a space", &name->place));
    if (about)
        TRY(hwnas_yaml_text(&own_about, about, "about"));
    TRY(load_base(&base, path, hwnas_yaml_get(root, "base"), settings));
    held = base;
    const hwnas_status status = narrow(&held, base, choices);
    if (status != HWNAS_OK) {
        hwnas_space_free(base);
        return status;
    }
    hwnas_space *narrowed = hwnas_arena_copy(base->arena, held, sizeof *held);
    narrowed->text_path = base->path;
    narrowed->path = hwnas_arena_string(base->arena, path, strlen(path));
    narrowed->name = hwnas_arena_string(base->arena, own_name, strlen(own_name));
    narrowed->about =
        own_about ? hwnas_arena_string(base->arena, own_about, strlen(own_about)) : base->about;
    *out = narrowed;
    return HWNAS_OK;
}
