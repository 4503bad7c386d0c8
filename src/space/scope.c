/* scope.c: names, and which of them can be seen. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/yaml.h"
#include "space/expr.h"
#include "space/parse.h"

static bool is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && *text != '_')
            return false;
    return true;
}

char *hwnas_trimmed(hwnas_arena *arena, const char *text, size_t n)
{
    while (n && isspace((unsigned char)*text))
        text++, n--;
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    return hwnas_arena_string(arena, text, n);
}

hwnas_status hwnas_check_name(const char *name, const char *what, const hwnas_place *place)
{
    static const char *const taken[] = {"in", "true", "false", "yes", "no",
                                        "or", "and",  "not",   NULL};
    if (!is_name(name))
        return hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, place, "'%.60s' cannot be the name of %s", name, what),
            "a name has letters, digits and _, and does not begin with a digit");
    if (strlen(name) > HWNAS_MAX_NAME)
        return hwnas_fail(HWNAS_E_INPUT, place,
                          "the name of %s is longer than %d letters: '%.40s...'", what,
                          HWNAS_MAX_NAME, name);
    for (const char *const *t = taken; *t; t++)
        if (!strcmp(*t, name))
            return hwnas_hint(
                hwnas_fail(HWNAS_E_INPUT, place,
                           "'%s' has a meaning of its own, %s needs another name", name, what),
                t == taken ? "in is the number of channels of the current tensor" : "");
    return HWNAS_OK;
}

int hwnas_scope_bind(hwnas_scope *scope, const char *name)
{
    if (scope->n == scope->capacity) {
        scope->capacity = scope->capacity ? 2 * scope->capacity : 16;
        scope->names = hwnas_realloc(scope->names, scope->capacity * sizeof *scope->names);
        scope->is_visible =
            hwnas_realloc(scope->is_visible, scope->capacity * sizeof *scope->is_visible);
    }
    scope->names[scope->n] = name;
    scope->is_visible[scope->n] = true;
    return (int)scope->n++;
}

int hwnas_compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool hwnas_space_is_symbol(const hwnas_space *space, const char *name)
{
    return space->n_symbols &&
           bsearch(&name, space->symbols, space->n_symbols, sizeof name, hwnas_compare_texts);
}

hwnas_status hwnas_scope_new_variable(int *out, hwnas_scope *scope, const char *name,
                                      const char *what, const hwnas_place *place)
{
    TRY(hwnas_check_name(name, what, place));
    if (hwnas_space_is_symbol(scope->space, name))
        return hwnas_fail(HWNAS_E_INPUT, place,
                          "'%s' is a value of a choice, %s needs another name", name, what);
    if (scope->n == HWNAS_MAX_SLOTS)
        return hwnas_fail(HWNAS_E_INPUT, place, "more than %d variables in one template",
                          HWNAS_MAX_SLOTS);
    *out = hwnas_scope_bind(scope, name);
    return HWNAS_OK;
}

void hwnas_scope_leave(hwnas_scope *scope, size_t n)
{
    for (size_t i = n; i < scope->n; i++)
        scope->is_visible[i] = false;
}

void hwnas_scope_done(hwnas_scope *scope)
{
    free(scope->names);
    free(scope->is_visible);
    free(scope->tensors);
}

hwnas_status hwnas_scope_find_tensor(int *out, hwnas_scope *scope, const char *name,
                                     const hwnas_place *place)
{
    for (size_t i = 0; i < scope->n_tensors; i++)
        if (!strcmp(scope->tensors[i].name, name)) {
            *out = (int)i;
            return HWNAS_OK;
        }
    if (scope->n_tensors == HWNAS_MAX_TENSORS)
        return hwnas_fail(HWNAS_E_INPUT, place, "more than %d names of tensors in one template",
                          HWNAS_MAX_TENSORS);
    scope->tensors =
        hwnas_realloc(scope->tensors, (scope->n_tensors + 1) * sizeof *scope->tensors);
    scope->tensors[scope->n_tensors] = (hwnas_tensor_name){.name = name, .place = *place};
    *out = (int)scope->n_tensors++;
    return HWNAS_OK;
}

hwnas_status hwnas_scope_check_tensors(const hwnas_scope *scope)
{
    const char *given[HWNAS_MAX_TENSORS + 1] = {0};
    size_t n = 0;
    for (size_t i = 0; i < scope->n_tensors; i++)
        if (scope->tensors[i].is_given)
            given[n++] = scope->tensors[i].name;
    for (size_t i = 0; i < scope->n_tensors; i++) {
        const hwnas_tensor_name *t = &scope->tensors[i];
        if (t->is_given)
            continue;
        const char *near = hwnas_nearest(t->name, given);
        return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &t->place,
                                     "no 'as' gives a tensor the name '%.60s'", t->name),
                          near ? "did you mean '%s'?"
                               : "write - as: %s where the tensor is the current one",
                          near ? near : t->name);
    }
    return HWNAS_OK;
}

const hwnas_setting *hwnas_space_setting(const hwnas_space *space, const char *name, size_t length)
{
    for (size_t i = 0; i < space->n_settings; i++)
        if (strlen(space->settings[i].name) == length &&
            !memcmp(space->settings[i].name, name, length))
            return &space->settings[i];
    return NULL;
}

const hwnas_input *hwnas_space_input(const hwnas_space *space, const char *name)
{
    for (size_t i = 0; i < space->n_inputs; i++)
        if (!strcmp(space->inputs[i].name, name))
            return &space->inputs[i];
    return NULL;
}
