/* parse_inputs.c: what goes into a network: its settings, and its inputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "space/expr.h"
#include "space/parse.h"

/* ---- Settings ---- */

/* NAME: NUMBER, which may be an expression of the settings above, or NAME: {values: [..]} with the
 * default first. */
static hwnas_status parse_setting(hwnas_setting *setting, const hwnas_scope *empty,
                                  const hwnas_yaml *key, const hwnas_yaml *node)
{
    static const char *const keys[] = {"values", NULL};
    *setting = (hwnas_setting){.name = key->text, .place = key->place};
    TRY(hwnas_check_name(setting->name, "a setting", &setting->place));
    if (node->kind != HWNAS_YAML_MAPPING) {
        const hwnas_scope_frame frame = {0};
        TRY(hwnas_yaml_expect(node, HWNAS_YAML_SCALAR, "a setting"));
        TRY(hwnas_parse_expr(&setting->expr, empty, node, "a setting"));
        TRY(hwnas_expr_eval(&setting->value, setting->expr, &frame, empty->space->arena));
        if (setting->value.kind == HWNAS_VALUE_SYMBOL)
            return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place,
                                         "a setting that is a word needs the words that it may be"),
                              "write %s: {values: [%s, ...]}", setting->name, setting->value.s);
        return HWNAS_OK;
    }
    TRY(hwnas_yaml_check_keys(node, "a setting", keys));
    const hwnas_yaml *values = hwnas_yaml_get(node, "values");
    if (!values || values->kind != HWNAS_YAML_SEQUENCE || values->n == 0 ||
        values->n > HWNAS_MAX_VALUES)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "'%s' has no list of values",
                                     setting->name),
                          "write %s: {values: [A, B]}, the default first", setting->name);
    hwnas_value *items = hwnas_arena_alloc(empty->space->arena, values->n * sizeof *items);
    for (size_t i = 0; i < values->n; i++)
        TRY(hwnas_parse_constant(&items[i], empty, values->items[i], "a value of a setting"));
    setting->values = items;
    setting->n_values = values->n;
    setting->value = items[0];
    return HWNAS_OK;
}

static hwnas_status unknown_setting(const hwnas_space *space, const char *text, size_t n)
{
    const char *names[HWNAS_MAX_SETTINGS + 1] = {NULL};
    char name[HWNAS_MAX_NAME + 1];
    hwnas_str list = {0};
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    for (size_t i = 0; i < space->n_settings; i++) {
        names[i] = space->settings[i].name;
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    hwnas_status status = hwnas_fail(HWNAS_E_INPUT, NULL, "the space '%s' has no setting '%s'",
                                     space->name, name);
    const char *near = hwnas_nearest(name, names);
    if (near)
        hwnas_hint(status, "did you mean '%s'?", near);
    else
        hwnas_hint(status, list.n ? "it has %s" : "it has none%s", list.n ? list.s : "");
    hwnas_str_done(&list);
    return status;
}

static hwnas_status wrong_setting(const hwnas_setting *setting, const char *text, size_t n)
{
    hwnas_str list = {0};
    for (size_t i = 0; i < setting->n_values; i++) {
        char *value = hwnas_value_text(&setting->values[i]);
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", value);
        free(value);
    }
    hwnas_status status = hwnas_hint(
        hwnas_fail(HWNAS_E_INPUT, NULL, "the setting '%s' cannot be '%.*s'", setting->name,
                   (int)(n < 60 ? n : 60), text),
        list.n ? "it is one of %s" : "it is a number%s", list.n ? list.s : "");
    hwnas_str_done(&list);
    return status;
}

/* The user's "VALUE" at text[0..n). */
static hwnas_status set_value(hwnas_setting *setting, const hwnas_scope *empty, const char *text,
                              size_t n)
{
    hwnas_arena *arena = empty->space->arena;
    hwnas_expr *expr;
    hwnas_value value;
    hwnas_scope_frame frame = {0};
    if (!n || hwnas_expr_parse(&expr, empty, hwnas_trimmed(arena, text, n), &setting->place,
                               false) != HWNAS_OK)
        return wrong_setting(setting, text, n);
    TRY(hwnas_expr_eval(&value, expr, &frame, arena));
    bool fits = !setting->n_values && value.kind == setting->value.kind;
    for (size_t i = 0; i < setting->n_values; i++)
        fits |= hwnas_value_equal(&value, &setting->values[i]);
    if (!fits || expr->kind == HWNAS_EXPR_TENSOR)
        return wrong_setting(setting, text, n);
    setting->value = value;
    setting->is_set = true;
    return HWNAS_OK;
}

/* What the user gives, "NAME=VALUE,NAME=VALUE", for one setting; with NULL all names must be
 * settings. */
static hwnas_status read_given(hwnas_setting *setting, const hwnas_scope *empty, const char *given)
{
    for (const char *at = given; at && *at;) {
        const size_t length = strcspn(at, ",");
        const char *equals = memchr(at, '=', length);
        const size_t name = equals ? (size_t)(equals - at) : length;
        if (!setting && !hwnas_space_setting(empty->space, at, name))
            return unknown_setting(empty->space, at, name);
        if (setting && strlen(setting->name) == name && !memcmp(setting->name, at, name))
            TRY(set_value(setting, empty, equals ? equals + 1 : "",
                          equals ? length - name - 1 : 0));
        at += length + (at[length] == ',');
    }
    return HWNAS_OK;
}

hwnas_status hwnas_parse_settings(hwnas_space *space, const hwnas_yaml *node, const char *given)
{
    hwnas_scope empty = {.space = space};
    if (node) {
        TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "settings"));
        if (node->n > HWNAS_MAX_SETTINGS)
            return hwnas_fail(HWNAS_E_INPUT, &node->place, "a space has at most %d settings",
                              HWNAS_MAX_SETTINGS);
        space->settings = hwnas_arena_alloc(space->arena, node->n * sizeof *space->settings);
        for (size_t i = 0; i < node->n; i++) {
            TRY(parse_setting(&space->settings[i], &empty, node->keys[i], node->items[i]));
            TRY(read_given(&space->settings[i], &empty, given));
            space->n_settings++; /* those below see it */
        }
    }
    return read_given(NULL, &empty, given);
}

/* ---- Phases ---- */

/* "decode: {phase: decode, length: 64}" */
static hwnas_status parse_phase(hwnas_phase *phase, const hwnas_space *space, const hwnas_yaml *key,
                                const hwnas_yaml *node)
{
    const hwnas_scope empty = {.space = (hwnas_space *)space};
    hwnas_str settings = {0};
    hwnas_status status = HWNAS_OK;
    *phase = (hwnas_phase){.name = key->text, .place = key->place};
    TRY(hwnas_check_name(phase->name, "a phase", &key->place));
    if (strlen(phase->name) > HWNAS_MAX_PHASE_NAME)
        return hwnas_fail(HWNAS_E_INPUT, &key->place,
                          "the name of a phase has at most %d characters", HWNAS_MAX_PHASE_NAME);
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "a phase"));
    for (size_t i = 0; i < node->n && status == HWNAS_OK; i++) {
        const char *name = node->keys[i]->text, *value;
        const hwnas_setting *setting = hwnas_space_setting(space, name, strlen(name));
        if (!setting) {
            status =
                hwnas_fail_at(unknown_setting(space, name, strlen(name)), &node->keys[i]->place);
            break;
        }
        hwnas_setting tried = *setting;
        status = hwnas_yaml_text(&value, node->items[i], "a setting");
        if (status == HWNAS_OK && set_value(&tried, &empty, value, strlen(value)) != HWNAS_OK)
            status = hwnas_fail_at(HWNAS_E_INPUT, &node->items[i]->place);
        if (status == HWNAS_OK)
            hwnas_str_addf(&settings, "%s%s=%s", i ? "," : "", name, value);
    }
    phase->settings = hwnas_arena_string(space->arena, settings.n ? settings.s : "", settings.n);
    hwnas_str_done(&settings);
    return status;
}

hwnas_status hwnas_parse_phases(hwnas_space *space, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "phases"));
    if (node->n < 1 || node->n > HWNAS_MOST_PHASES)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "a space has 1 to %d phases",
                                     HWNAS_MOST_PHASES),
                          "write phases: {prefill: {phase: prefill}, decode: {phase: decode}}");
    space->phases = hwnas_arena_alloc(space->arena, node->n * sizeof *space->phases);
    for (size_t i = 0; i < node->n; i++) {
        TRY(parse_phase(&space->phases[i], space, node->keys[i], node->items[i]));
        space->n_phases++;
    }
    return HWNAS_OK;
}

/* ---- Inputs ---- */

/* NAME: [DIMS], or NAME: {shape: [DIMS], type: int64, each: N} */
static hwnas_status parse_input(hwnas_input *input, hwnas_scope *scope, const hwnas_yaml *key,
                                const hwnas_yaml *node)
{
    static const char *const keys[] = {"shape", "type", "each", NULL};
    const hwnas_yaml *dims = node;
    *input = (hwnas_input){.name = key->text, .place = key->place};
    TRY(hwnas_check_name(input->name, "an input", &key->place));
    if (node->kind == HWNAS_YAML_MAPPING) {
        TRY(hwnas_yaml_check_keys(node, "an input", keys));
        const hwnas_yaml *type = hwnas_yaml_get(node, "type"), *each = hwnas_yaml_get(node, "each");
        dims = hwnas_yaml_get(node, "shape");
        if (!dims)
            return hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, &node->place, "the input '%s' has no shape", input->name),
                "write %s: {shape: [3, 224, 224]}", input->name);
        const char *word = "float32";
        if (type)
            TRY(hwnas_yaml_text(&word, type, "the type of an input"));
        input->is_integer = !strcmp(word, "int64");
        if (!input->is_integer && strcmp(word, "float32"))
            return hwnas_fail(HWNAS_E_INPUT, &type->place,
                              "the type of an input is float32 or int64, not '%.60s'", word);
        if (each)
            TRY(hwnas_parse_expr(&input->each, scope, each, "each"));
    }
    TRY(hwnas_yaml_expect(dims, HWNAS_YAML_SEQUENCE, "the shape of the input"));
    if (dims->n < 1 || dims->n > 7)
        return hwnas_fail(HWNAS_E_INPUT, &dims->place,
                          "an input has 1 to 7 dimensions beside the batch");
    input->place = dims->place;
    input->n_dims = (int)dims->n;
    if (input->each)
        hwnas_scope_bind(scope, "i");
    for (size_t i = 0; i < dims->n; i++)
        TRY(hwnas_parse_expr(&input->dims[i], scope, dims->items[i], "a dimension of the input"));
    return HWNAS_OK;
}

hwnas_status hwnas_parse_inputs(hwnas_space *space, const hwnas_yaml *node)
{
    TRY(hwnas_yaml_expect(node, HWNAS_YAML_MAPPING, "input"));
    if (node->n < 1 || node->n > HWNAS_MAX_INPUTS)
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &node->place, "a network has 1 to %d inputs",
                                     HWNAS_MAX_INPUTS),
                          "write input: {image: [3, 224, 224]}");
    space->inputs = hwnas_arena_alloc(space->arena, node->n * sizeof *space->inputs);
    for (size_t i = 0; i < node->n; i++) {
        hwnas_scope scope = {.space = space}; /* choices only */
        hwnas_status status =
            parse_input(&space->inputs[i], &scope, node->keys[i], node->items[i]);
        hwnas_scope_done(&scope);
        TRY(status);
        space->n_inputs++;
    }
    return HWNAS_OK;
}
