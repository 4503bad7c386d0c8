/* arch_yaml.c: the space's own file with its choices made. Nothing is spelled anew but the section
 * `choices:`, and `settings:` where one was set, so what the author wrote stays as it was written.
 * The result is read back and its graph compared before anybody else sees it. */
#include "export/arch_yaml.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/yaml.h"
#include "derive/derive.h"
#include "graph/elaborate.h"

#define MAX_BYTES ((size_t)4 << 20) /* as hwnas_space_load() */

/* A value as it stood in the file; quoted again when it is more than a word or number. */
static void add_value(hwnas_str *out, const char *label)
{
    size_t n = 0;
    while (isalnum((unsigned char)label[n]) || (label[n] && strchr("_.+-", label[n])))
        n++;
    hwnas_str_addf(out, label[n] || !n ? "\"%s\"" : "%s", label);
}

/* Settings as they are, which are the defaults of the new file. */
static void add_settings(hwnas_str *out, const hwnas_arch *arch)
{
    const hwnas_space *space = arch->space;
    hwnas_str_add(out, "settings:\n");
    for (size_t i = 0; i < space->n_settings; i++) {
        const hwnas_setting *setting = &space->settings[i];
        char *value = hwnas_value_text(&setting->value);
        hwnas_str_addf(out, setting->n_values ? "  %s: {values: [" : "  %s: ", setting->name);
        add_value(out, value);
        for (size_t v = 0; v < setting->n_values; v++)
            if (!hwnas_value_equal(&setting->values[v], &setting->value)) {
                char *other = hwnas_value_text(&setting->values[v]);
                hwnas_str_add(out, ", ");
                add_value(out, other);
                free(other);
            }
        hwnas_str_add(out, setting->n_values ? "]}\n" : "\n");
        free(value);
    }
}

static void add_choices(hwnas_str *out, const hwnas_arch *arch)
{
    const hwnas_space *space = arch->space;
    char *code = hwnas_arch_code(arch);
    hwnas_str_addf(out, "# Fixed by hwnas %s: %s\nchoices:\n", hwnas_version(), code);
    for (size_t c = 0; c < space->n_choices; c++) {
        const hwnas_choice *choice = &space->choices[c];
        hwnas_str_addf(out, "  %s: {values: [", choice->name);
        for (size_t p = 0; p < choice->n_positions; p++) {
            hwnas_str_add(out, p ? ", " : "");
            hwnas_str_add(out, choice->is_vector ? "[" : "");
            const hwnas_gene *gene = &space->genes[choice->first_gene + p];
            add_value(out, gene->labels[arch->genes[choice->first_gene + p]]);
            hwnas_str_add(out, choice->is_vector ? "]" : "");
        }
        hwnas_str_add(out, "]}\n");
    }
    free(code);
}

/* The line's first character, or the end of the text. */
static const char *line_at(const char *text, int line)
{
    while (--line > 0 && *text) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return text;
}

/* Comments and empty lines at the end of a section belong to what follows. */
static const char *without_trailer(const char *begin, const char *end)
{
    for (;;) {
        const char *line = end;
        while (line > begin && (line == end || line[-1] != '\n'))
            line--;
        if (line <= begin || (*line != '#' && *line != '\n'))
            return end;
        end = line;
    }
}

/* Where a section begins and ends; an empty place when there is none. */
static hwnas_status find_section(const char **begin, const char **end, const char *name,
                                 const char *path, const hwnas_str *text)
{
    hwnas_arena *arena = hwnas_arena_new();
    hwnas_yaml *root;
    hwnas_status status = hwnas_yaml_parse(&root, arena, path, text->s, text->n);
    *begin = *end = text->s + text->n;
    for (size_t i = 0; status == HWNAS_OK && i < root->n && root->keys; i++) {
        if (strcmp(root->keys[i]->text, name))
            continue;
        *begin = line_at(text->s, root->keys[i]->place.line);
        if (i + 1 < root->n)
            *end = line_at(text->s, root->keys[i + 1]->place.line);
        *end = without_trailer(*begin, *end);
    }
    hwnas_arena_free(arena);
    return status;
}

/* Spells a section anew, where there is one. */
static hwnas_status replace_section(hwnas_str *text, const char *name, const hwnas_arch *arch,
                                    void (*add)(hwnas_str *, const hwnas_arch *))
{
    const char *begin, *end;
    hwnas_str with = {0};
    TRY(find_section(&begin, &end, name, arch->space->text_path, text));
    hwnas_str_addn(&with, text->s, (size_t)(begin - text->s));
    if (begin < end)
        add(&with, arch);
    hwnas_str_add(&with, end);
    hwnas_str_done(text);
    *text = with;
    return HWNAS_OK;
}

/* The file may be written to another folder. */
static void add_model(hwnas_str *to, const hwnas_arch *arch)
{
    char *whole = realpath(arch->space->model_path, NULL);
    hwnas_str_addf(to, "model: \"%s\"\n", whole ? whole : arch->space->model_path);
    free(whole);
}

static bool has_set_settings(const hwnas_space *space)
{
    for (size_t i = 0; i < space->n_settings; i++)
        if (space->settings[i].is_set)
            return true;
    return false;
}

/* Is it the same network? */
static hwnas_status check(const hwnas_str *text, const hwnas_arch *arch)
{
    hwnas_status status = HWNAS_OK;
    const hwnas_place place = {.file = arch->space->text_path};
    hwnas_space *space = NULL;
    hwnas_arch *fixed = NULL;
    hwnas_graph *graph = NULL, *expected = NULL;
    TRY_OUT(hwnas_space_parse(&space, arch->space->text_path, text->s, text->n, NULL));
    TRY_OUT(hwnas_space_attach_model(space));
    TRY_OUT(hwnas_graph_check(space));
    fixed = hwnas_arch_new(space);
    TRY_OUT(hwnas_graph_build(&graph, fixed, 1));
    TRY_OUT(hwnas_graph_build(&expected, arch, 1));
    if (strcmp(hwnas_graph_digest(graph).hex, hwnas_graph_digest(expected).hex))
        status =
            hwnas_fail(HWNAS_E_INPUT, &place, "the file changed since the space was read from it");
out:
    hwnas_graph_free(expected);
    hwnas_graph_free(graph);
    hwnas_arch_free(fixed);
    hwnas_space_free(space);
    return status;
}

hwnas_status hwnas_arch_yaml_write(hwnas_str *out, const hwnas_arch *arch)
{
    hwnas_status status = HWNAS_OK;
    hwnas_str text = {0};
    char *file = NULL;
    size_t length;
    TRY_OUT(hwnas_file_read_text(&file, &length, arch->space->text_path, MAX_BYTES));
    hwnas_str_addn(&text, file, length);
    TRY_OUT(replace_section(&text, "choices", arch, add_choices));
    if (has_set_settings(arch->space))
        TRY_OUT(replace_section(&text, "settings", arch, add_settings));
    if (arch->space->model_path)
        TRY_OUT(replace_section(&text, "model", arch, add_model));
    TRY_OUT(check(&text, arch));
    hwnas_str_addn(out, text.s, text.n);
out:
    free(file);
    hwnas_str_done(&text);
    return status;
}
