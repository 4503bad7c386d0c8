#include "study/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "precision/mix.h"

static const char *dtype_word(int value)
{
    const hwnas_mixing mixing = hwnas_dtype_mixing(value);
    return mixing ? hwnas_mixing_name(mixing) : hwnas_precision_name(hwnas_dtype_precision(value));
}

bool hwnas_settings_may_be_mixed(const hwnas_job *job)
{
    bool is_mixed = false;
    for (int i = 0; i < job->dtype.n; i++)
        is_mixed |= hwnas_dtype_mixing(job->dtype.values[i]) != HWNAS_UNMIXED;
    for (int i = 0; i < job->goals.devices.n; i++)
        is_mixed |= hwnas_dtype_mixing(job->goals.devices.rows[i].dtype) != HWNAS_UNMIXED;
    return is_mixed;
}

double hwnas_settings_max_error(const hwnas_job *job)
{
    if (isnan(job->max_error)) /* accuracy judges alone where it does */
        return isnan(job->max_loss) ? HWNAS_MIX_MAX_ERROR : INFINITY;
    return job->max_error / 100;
}

#define SETTING(name)                                                                              \
    offsetof(hwnas_job, name), offsetof(hwnas_job_device, name), offsetof(hwnas_settings, name)
const hwnas_setting_kind hwnas_setting_table[HWNAS_N_SETTINGS] = {
    [HWNAS_BATCH] = {"batch", 1 << 20, NULL, SETTING(batch)},
    [HWNAS_THREADS] = {"threads", 4096, NULL, SETTING(threads)},
    [HWNAS_DTYPE] = {"dtype", HWNAS_N_PRECISIONS + HWNAS_N_MIXINGS - 1, dtype_word, SETTING(dtype)},
};

const hwnas_setting_kind *hwnas_setting_named(const char *name)
{
    const hwnas_setting_kind *s = hwnas_setting_table;
    while (strcmp(s->name, name))
        s++;
    return s;
}

const hwnas_setting_values *hwnas_setting_of_job(const hwnas_setting_kind *setting,
                                                 const hwnas_job *job)
{
    return (const hwnas_setting_values *)((const char *)job + setting->values);
}

int hwnas_setting_of_device(const hwnas_setting_kind *setting, const hwnas_job_device *device)
{
    return *(const int *)((const char *)device + setting->own);
}

int *hwnas_setting_in(const hwnas_setting_kind *setting, hwnas_settings *settings)
{
    return (int *)((char *)settings + setting->value);
}

void hwnas_setting_text(char out[HWNAS_SETTING_TEXT], const hwnas_setting_kind *setting, int value)
{
    if (setting->word)
        snprintf(out, HWNAS_SETTING_TEXT, "%s", setting->word(value));
    else
        snprintf(out, HWNAS_SETTING_TEXT, "%d", value);
}

int hwnas_setting_read(const hwnas_setting_kind *setting, const char *text)
{
    char *end;
    for (int i = 1; setting->word && i <= setting->most; i++)
        if (!strcmp(text, setting->word(i)))
            return i;
    if (setting->word)
        return 0;
    const long value = strtol(text, &end, 10);
    return end > text && !*end && value >= 1 && value <= setting->most ? (int)value : 0;
}

hwnas_settings hwnas_settings_first(const hwnas_job *job)
{
    hwnas_settings out;
    for (int i = 0; i < HWNAS_N_SETTINGS; i++) {
        const hwnas_setting_kind *s = &hwnas_setting_table[i];
        *hwnas_setting_in(s, &out) = hwnas_setting_of_job(s, job)->values[0];
    }
    return out;
}

bool hwnas_settings_next(hwnas_settings *settings, const hwnas_job *job)
{
    for (int i = HWNAS_N_SETTINGS - 1; i >= 0; i--) {
        const hwnas_setting_kind *s = &hwnas_setting_table[i];
        const hwnas_setting_values *all = hwnas_setting_of_job(s, job);
        int *value = hwnas_setting_in(s, settings), at = 0;
        while (at < all->n && all->values[at] != *value)
            at++;
        *value = all->values[at + 1 < all->n ? at + 1 : 0];
        if (at + 1 < all->n)
            return true;
    }
    return false;
}

static void add_choice(hwnas_space *to, const hwnas_setting_kind *setting,
                       const hwnas_setting_values *given)
{
    hwnas_arena *arena = to->arena;
    size_t n = (size_t)given->n;
    hwnas_value *values = hwnas_arena_alloc(arena, n * sizeof *values);
    const char **labels = hwnas_arena_alloc(arena, n * sizeof *labels);
    bool is_short = true;
    for (size_t v = 0; v < n; v++) {
        char text[HWNAS_SETTING_TEXT];
        hwnas_setting_text(text, setting, given->values[v]);
        values[v] = (hwnas_value){.kind = HWNAS_VALUE_INT, .i = given->values[v]};
        labels[v] = hwnas_arena_printf(arena, "%s", text);
        is_short &= strlen(labels[v]) == 1;
    }
    to->choices[to->n_choices] = (hwnas_choice){.name = setting->name,
                                                .place = given->place,
                                                .first_gene = to->n_genes,
                                                .n_positions = 1,
                                                .short_labels = is_short,
                                                .separator = '.'};
    to->genes[to->n_genes++] =
        (hwnas_gene){.choice = to->n_choices++, .n_values = n, .values = values, .labels = labels};
}

static bool is_open(int i, const hwnas_job *job)
{
    return hwnas_setting_is_open(hwnas_setting_of_job(&hwnas_setting_table[i], job));
}

hwnas_status hwnas_settings_space(const hwnas_space **out, hwnas_space *space, const hwnas_job *job)
{
    int n_open = 0;
    for (int i = 0; i < HWNAS_N_SETTINGS; i++)
        n_open += is_open(i, job);
    *out = space;
    if (!n_open)
        return HWNAS_OK;
    hwnas_arena *arena = space->arena;
    hwnas_space *wide = hwnas_arena_copy(arena, space, sizeof *space);
    wide->choices =
        hwnas_arena_alloc(arena, (space->n_choices + HWNAS_N_SETTINGS) * sizeof *wide->choices);
    wide->genes =
        hwnas_arena_alloc(arena, (space->n_genes + HWNAS_N_SETTINGS) * sizeof *wide->genes);
    if (space->n_choices)
        memcpy(wide->choices, space->choices, space->n_choices * sizeof *wide->choices);
    if (space->n_genes)
        memcpy(wide->genes, space->genes, space->n_genes * sizeof *wide->genes);
    for (int i = 0; i < HWNAS_N_SETTINGS; i++) {
        const hwnas_setting_kind *setting = &hwnas_setting_table[i];
        const hwnas_setting_values *values = hwnas_setting_of_job(setting, job);
        if (!is_open(i, job))
            continue;
        for (size_t c = 0; c < space->n_choices; c++)
            if (!strcmp(space->choices[c].name, setting->name))
                return hwnas_hint(hwnas_fail(HWNAS_E_INPUT, &values->place,
                                             "the space has a choice called '%s' itself",
                                             setting->name),
                                  "give %s one value, or rename the choice", setting->name);
        add_choice(wide, setting, values);
    }
    hwnas_space_prepare(wide);
    *out = wide;
    return HWNAS_OK;
}

hwnas_settings hwnas_settings_of(const hwnas_arch *arch, const hwnas_job *job)
{
    hwnas_settings out = hwnas_settings_first(job);
    size_t gene = arch->space->n_genes;
    for (int i = HWNAS_N_SETTINGS - 1; i >= 0; i--) {
        const hwnas_setting_kind *s = &hwnas_setting_table[i];
        if (is_open(i, job))
            *hwnas_setting_in(s, &out) = hwnas_setting_of_job(s, job)->values[arch->genes[--gene]];
    }
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
    hwnas_settings out = hwnas_settings_first(job);
    bool is_alone = !strchr(code, '='); /* of a fixed network: a single choice has no name */
    for (int i = HWNAS_N_SETTINGS - 1; i >= 0; i--) {
        const hwnas_setting_kind *s = &hwnas_setting_table[i];
        int *value = hwnas_setting_in(s, &out);
        if (is_alone && is_open(i, job)) {
            *value = hwnas_setting_read(s, code);
            *code = '\0';
            break;
        }
        char *start = strrchr(code, ',');
        start = start ? start + 1 : code;
        size_t length = strlen(s->name);
        if (!is_open(i, job) || strncmp(start, s->name, length) || start[length] != '=')
            continue;
        *value = hwnas_setting_read(s, start + length + 1);
        start[start > code ? -1 : 0] = '\0';
    }
    return out;
}
