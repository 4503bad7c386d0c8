#include "study/phases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/str.h"
#include "derive/derive.h"

static hwnas_status no_such_phase(const hwnas_space *space, const char *name,
                                  const hwnas_place *place)
{
    hwnas_str list = {0};
    for (size_t i = 0; i < space->n_phases; i++)
        hwnas_str_addf(&list, "%s%s", i ? ", " : "", space->phases[i].name);
    hwnas_status status =
        hwnas_fail(HWNAS_E_INPUT, place, "the space '%s' has no phase '%s'", space->name, name);
    if (list.n)
        hwnas_hint(status, "it has %s", list.s);
    else
        hwnas_hint(status, "it has none: docs/search-spaces.md says how a space names phases");
    hwnas_str_done(&list);
    return status;
}

/* An architecture is carried over gene by gene. */
static hwnas_status check_choices(const hwnas_space *space, const hwnas_job_phase *phase,
                                  const hwnas_place *place)
{
    const hwnas_space *other = phase->space;
    bool is_same = space->n_genes == other->n_genes;
    for (size_t i = 0; is_same && i < space->n_genes; i++) {
        const hwnas_gene *a = &space->genes[i], *b = &other->genes[i];
        is_same = a->n_values == b->n_values;
        for (size_t k = 0; is_same && k < a->n_values; k++)
            is_same = !strcmp(a->labels[k], b->labels[k]);
    }
    return is_same ? HWNAS_OK
                   : hwnas_hint(hwnas_fail(HWNAS_E_INPUT, place,
                                           "the space '%s' has other choices in the phase '%s'",
                                           space->name, phase->name),
                                "a choice must not depend on a setting that a phase sets");
}

static hwnas_status open_phase(hwnas_job_phases *out, const hwnas_job *job,
                               const hwnas_space *space, const char *name, const hwnas_place *place)
{
    size_t i = 0;
    if (!*name || hwnas_phases_find(out, name))
        return HWNAS_OK;
    while (i < space->n_phases && strcmp(space->phases[i].name, name) != 0)
        i++;
    if (i == space->n_phases)
        return no_such_phase(space, name, place);
    hwnas_job_phase *phase = &out->rows[out->n++];
    const char *settings = space->phases[i].settings;
    const bool has_settings = job->space[hwnas_space_name_length(job->space)] != '\0';
    snprintf(phase->name, sizeof phase->name, "%s", name);
    phase->space_name = hwnas_printf("%s%s%s", job->space,
                                     !*settings     ? ""
                                     : has_settings ? ","
                                                    : ":",
                                     settings);
    const hwnas_status status = hwnas_load_space(&phase->space, phase->space_name);
    if (status != HWNAS_OK)
        return hwnas_context(status, "the phase '%s'", name);
    return check_choices(space, phase, place);
}

static int add_name(const char *names[HWNAS_MOST_PHASES], int n, const char *name)
{
    bool is_new = *name && n < HWNAS_MOST_PHASES;
    for (int i = 0; i < n && is_new; i++)
        is_new = strcmp(names[i], name) != 0;
    if (is_new)
        names[n] = name;
    return n + is_new;
}

int hwnas_phases_named(const char *out[HWNAS_MOST_PHASES], const hwnas_job *job)
{
    const hwnas_goal *goals[HWNAS_MOST_GOALS];
    const int n_goals = hwnas_goals_list(goals, &job->goals);
    int n = 0;
    for (int i = 0; i < job->goals.devices.n; i++)
        n = add_name(out, n, job->goals.devices.rows[i].phase);
    for (int i = 0; i < n_goals; i++)
        n = add_name(out, n, goals[i]->phase);
    return n;
}

hwnas_status hwnas_phases_open(hwnas_job_phases *out, const hwnas_job *job,
                               const hwnas_space *space)
{
    const hwnas_place nowhere = {.file = job->path};
    const hwnas_goal *goals[HWNAS_MOST_GOALS];
    const int n = hwnas_goals_list(goals, &job->goals);
    *out = (hwnas_job_phases){0};
    for (int i = 0; i < job->goals.devices.n; i++)
        TRY(open_phase(out, job, space, job->goals.devices.rows[i].phase,
                       &job->goals.devices.rows[i].place));
    for (int i = 0; i < n; i++)
        TRY(open_phase(out, job, space, goals[i]->phase, &nowhere));
    return HWNAS_OK;
}

void hwnas_phases_close(hwnas_job_phases *phases)
{
    for (int i = 0; i < phases->n; i++) {
        hwnas_space_free(phases->rows[i].space);
        free(phases->rows[i].space_name);
    }
    phases->n = 0;
}

const hwnas_job_phase *hwnas_phases_find(const hwnas_job_phases *phases, const char *name)
{
    for (int i = 0; i < phases->n; i++)
        if (!strcmp(phases->rows[i].name, name))
            return &phases->rows[i];
    return NULL;
}

hwnas_arch *hwnas_phase_arch(const hwnas_job_phase *phase, const hwnas_arch *arch)
{
    hwnas_arch *own = hwnas_arch_new(phase->space);
    memcpy(own->genes, arch->genes, phase->space->n_genes * sizeof *own->genes);
    return own;
}

hwnas_status hwnas_phase_build(hwnas_graph **out, const hwnas_job_phase *phase,
                               const hwnas_arch *arch, int batch)
{
    hwnas_arch *own = hwnas_phase_arch(phase, arch);
    const hwnas_status status = hwnas_graph_build(out, own, batch);
    hwnas_arch_free(own);
    return status == HWNAS_OK ? status : hwnas_context(status, "the phase '%s'", phase->name);
}

hwnas_status hwnas_phase_is_other(bool *out, const hwnas_job_phase *phase, const hwnas_arch *arch)
{
    hwnas_status status = HWNAS_OK;
    hwnas_graph *plain = NULL, *other = NULL;
    TRY_OUT(hwnas_graph_build(&plain, arch, 1));
    TRY_OUT(hwnas_phase_build(&other, phase, arch, 1));
    *out = strcmp(hwnas_graph_digest(plain).hex, hwnas_graph_digest(other).hex) != 0;
out:
    hwnas_graph_free(plain);
    hwnas_graph_free(other);
    return status;
}

hwnas_status hwnas_phases_find_plain(const hwnas_job_phase **out, const hwnas_job_phases *phases,
                                     const hwnas_arch *arch)
{
    const hwnas_job_phase *plain = NULL;
    for (int i = 0; i < phases->n && !plain; i++) {
        bool is_other;
        TRY(hwnas_phase_is_other(&is_other, &phases->rows[i], arch));
        plain = is_other ? NULL : &phases->rows[i];
    }
    *out = plain;
    return HWNAS_OK;
}

hwnas_status hwnas_phases_digest(char out[33], const hwnas_job_phases *phases,
                                 const hwnas_graph *graph, const hwnas_arch *arch, int batch)
{
    const hwnas_digest plain = hwnas_graph_digest(graph);
    hwnas_digest all[1 + HWNAS_MOST_PHASES] = {plain};
    memcpy(out, plain.hex, sizeof plain.hex);
    if (!phases->n)
        return HWNAS_OK;
    for (int i = 0; i < phases->n; i++) {
        hwnas_graph *own = NULL;
        TRY(hwnas_phase_build(&own, &phases->rows[i], arch, batch));
        all[1 + i] = hwnas_graph_digest(own);
        hwnas_graph_free(own);
    }
    const XXH128_hash_t hash = XXH3_128bits(all, (size_t)(1 + phases->n) * sizeof *all);
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
    return HWNAS_OK;
}
