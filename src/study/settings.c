#include "study/settings.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* In the order in which they follow the choices of a space. */
static const struct setting {
    const char *name;
    size_t values; /* offset in a job ... */
    size_t value;  /* ... and in hwnas_settings */
} settings[] = {
    {"batch", offsetof(hwnas_job, batch), offsetof(hwnas_settings, batch)},
    {"threads", offsetof(hwnas_job, threads), offsetof(hwnas_settings, threads)},
};
enum { N_SETTINGS = sizeof settings / sizeof *settings };

static const hwnas_setting_values *values_of(const hwnas_job *job, int i)
{
    return (const hwnas_setting_values *)((const char *)job + settings[i].values);
}

static int *value_of(hwnas_settings *out, int i)
{
    return (int *)((char *)out + settings[i].value);
}

static hwnas_settings defaults(const hwnas_job *job)
{
    hwnas_settings out;
    for (int i = 0; i < N_SETTINGS; i++)
        *value_of(&out, i) = values_of(job, i)->values[0];
    return out;
}

static void add_choice(hwnas_space *to, const char *name, const hwnas_setting_values *setting)
{
    hwnas_arena *arena = to->arena;
    size_t n = (size_t)setting->n;
    hwnas_value *values = hwnas_arena_alloc(arena, n * sizeof *values);
    const char **labels = hwnas_arena_alloc(arena, n * sizeof *labels);
    bool is_short = true;
    for (size_t v = 0; v < n; v++) {
        values[v] = (hwnas_value){.kind = HWNAS_VALUE_INT, .i = setting->values[v]};
        labels[v] = hwnas_arena_printf(arena, "%d", setting->values[v]);
        is_short &= strlen(labels[v]) == 1;
    }
    to->choices[to->n_choices] = (hwnas_choice){.name = name,
                                                .place = setting->place,
                                                .first_gene = to->n_genes,
                                                .n_positions = 1,
                                                .short_labels = is_short,
                                                .separator = '.'};
    to->genes[to->n_genes++] = (hwnas_gene){
        .choice = to->n_choices++, .n_values = n, .values = values, .labels = labels};
}

hwnas_status hwnas_settings_space(const hwnas_space **out, hwnas_space *space, const hwnas_job *job)
{
    int n_open = 0;
    for (int i = 0; i < N_SETTINGS; i++)
        n_open += hwnas_setting_is_open(values_of(job, i));
    *out = space;
    if (!n_open)
        return HWNAS_OK;
    hwnas_arena *arena = space->arena;
    hwnas_space *wide = hwnas_arena_copy(arena, space, sizeof *space);
    wide->choices =
        hwnas_arena_alloc(arena, (space->n_choices + N_SETTINGS) * sizeof *wide->choices);
    wide->genes = hwnas_arena_alloc(arena, (space->n_genes + N_SETTINGS) * sizeof *wide->genes);
    if (space->n_choices)
        memcpy(wide->choices, space->choices, space->n_choices * sizeof *wide->choices);
    if (space->n_genes)
        memcpy(wide->genes, space->genes, space->n_genes * sizeof *wide->genes);
    for (int i = 0; i < N_SETTINGS; i++) {
        const hwnas_setting_values *values = values_of(job, i);
        if (!hwnas_setting_is_open(values))
            continue;
        for (size_t c = 0; c < space->n_choices; c++)
            if (!strcmp(space->choices[c].name, settings[i].name))
                return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &values->place,
                                             "the space has a choice called '%s' itself",
                                             settings[i].name),
                                  "give %s one value, or rename the choice", settings[i].name);
        add_choice(wide, settings[i].name, values);
    }
    *out = wide;
    return HWNAS_OK;
}

hwnas_settings hwnas_settings_of(const hwnas_arch *arch, const hwnas_job *job)
{
    hwnas_settings out = defaults(job);
    size_t gene = arch->space->n_genes;
    for (int i = N_SETTINGS - 1; i >= 0; i--)
        if (hwnas_setting_is_open(values_of(job, i)))
            *value_of(&out, i) = values_of(job, i)->values[arch->genes[--gene]];
    return out;
}

hwnas_arch *hwnas_settings_strip(const hwnas_arch *arch, const hwnas_space *space)
{
    hwnas_arch *bare = hwnas_arch_new(space);
    memcpy(bare->genes, arch->genes, space->n_genes * sizeof *bare->genes);
    return bare;
}

hwnas_settings hwnas_settings_cut(char *code, const hwnas_job *job)
{
    hwnas_settings out = defaults(job);
    bool is_alone = !strchr(code, '='); /* of a fixed network: a single choice has no name */
    for (int i = N_SETTINGS - 1; i >= 0; i--) {
        if (is_alone && hwnas_setting_is_open(values_of(job, i))) {
            *value_of(&out, i) = atoi(code);
            *code = '\0';
            break;
        }
        char *start = strrchr(code, ',');
        start = start ? start + 1 : code;
        size_t length = strlen(settings[i].name);
        if (!hwnas_setting_is_open(values_of(job, i)) ||
            strncmp(start, settings[i].name, length) || start[length] != '=')
            continue;
        *value_of(&out, i) = atoi(start + length + 1);
        start[start > code ? -1 : 0] = '\0';
    }
    return out;
}
