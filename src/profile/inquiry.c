#include "profile/inquiry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "profile/record.h"

/* ---- Recorded profiles ---- */

static bool is_wanted(const hwnas_inquiry *r, const hwnas_profile_row *row)
{
    const hwnas_sweep *s = &r->sweep;
    if (row->training != s->options.exec.training) /* steps and inferences are not compared */
        return false;
    for (int i = 0; i < s->n_models; i++)
        if (!strcmp(s->models[i], row->model))
            return !s->code || (row->arch && !strcmp(row->arch, s->code));
    return s->n_models == 0;
}

/* Leaves the rows of the models that are asked for. */
static hwnas_status pick_rows(const hwnas_inquiry *r, hwnas_profile *profile, const char *path)
{
    const char *names[HWNAS_SWEEP_MODELS + 1] = {NULL};
    hwnas_str list = {0};
    size_t n = 0;
    for (size_t i = 0; i < profile->n_rows; i++) {
        const char *model = profile->rows[i].model;
        if (i < HWNAS_SWEEP_MODELS)
            names[i] = model;
        if (!i || strcmp(model, profile->rows[i - 1].model))
            hwnas_str_addf(&list, "%s%s", list.n ? ", " : "", model);
        if (is_wanted(r, &profile->rows[i]))
            profile->rows[n++] = profile->rows[i];
    }
    hwnas_status status = HWNAS_OK;
    const hwnas_optimizer training = r->sweep.options.exec.training;
    if (!n && training) {
        status = hwnas_hint(
            hwnas_fail(HWNAS_E_INPUT, &(hwnas_place){.file = path},
                       "this profile has no training step with %s of %s",
                       hwnas_optimizer_name(training),
                       r->sweep.n_models ? "the models that are asked for" : "any model"),
            "it has %s; 'hwnas profile MODEL --training --optimizer %s --save FILE' "
            "records steps",
            list.s, hwnas_optimizer_name(training));
    } else if (!n && !r->sweep.n_models) {
        status = hwnas_fail(HWNAS_E_INPUT, &(hwnas_place){.file = path},
                            "this profile has no inference that could be compared");
    } else if (!n) {
        const char *near = hwnas_nearest(r->sweep.models[0], names);
        status = hwnas_fail(HWNAS_E_INPUT, &(hwnas_place){.file = path},
                            "none of the models that are asked for is in this profile");
        status = near ? hwnas_hint(status, "did you mean '%s'?", near)
                      : hwnas_hint(status, "it has %s", list.s);
    }
    profile->n_rows = n;
    hwnas_str_done(&list);
    return status;
}

/* Each model is in one of the profiles, when nothing is measured. */
static hwnas_status find_models(const hwnas_inquiry *r)
{
    for (int i = 0; i < r->sweep.n_models && !r->measures; i++) {
        bool is_there = false;
        for (size_t k = 0; k < r->n_loaded; k++)
            for (size_t j = 0; j < r->loaded[k]->n_rows; j++)
                is_there |= !strcmp(r->loaded[k]->rows[j].model, r->sweep.models[i]);
        if (!is_there)
            return hwnas_fail(HWNAS_E_INPUT, NULL, "no profile has the model '%s'",
                              r->sweep.models[i]);
    }
    return HWNAS_OK;
}

/* What the machine of a file is called: as the caller says, the name in it, or the file's own. */
static char *name_profile(const char *name, const hwnas_profile *profile, const char *path)
{
    if (name || profile->name)
        return hwnas_strdup(name ? name : profile->name);
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const size_t length = strlen(base) - (hwnas_ends_with(base, ".json") ? strlen(".json") : 0);
    return hwnas_printf("%.*s", (int)length, base);
}

static hwnas_status load_profile(hwnas_inquiry *r, const hwnas_recorded_profile *recorded)
{
    hwnas_profile *profile;
    const size_t n = r->n_loaded;
    TRY(hwnas_profile_load(&profile, recorded->path));
    r->names[n] = name_profile(recorded->name, profile, recorded->path);
    r->loaded[r->n_loaded++] = profile;
    for (size_t i = 0; i < n; i++)
        if (!strcmp(r->names[i], r->names[n]))
            return hwnas_hint(
                hwnas_fail(HWNAS_E_USAGE, NULL, "two profiles are called '%s'", r->names[i]),
                "give %s another name: --profile NAME=%s", recorded->path, recorded->path);
    return pick_rows(r, profile, recorded->path);
}

static hwnas_status load_profiles(hwnas_inquiry *r)
{
    if (r->n_recorded > HWNAS_INQUIRY_PROFILES)
        return hwnas_fail(HWNAS_E_USAGE, NULL, "more than %d profiles", HWNAS_INQUIRY_PROFILES);
    for (size_t i = 0; i < r->n_recorded; i++)
        TRY(load_profile(r, &r->recorded[i]));
    return r->n_recorded ? find_models(r) : HWNAS_OK;
}

/* The base is one of the machines, and so that nobody waits for a mistake, told before any is
 * measured. A profile of several devices has them as NAME/DEVICE. */
static hwnas_status check_base(const hwnas_inquiry *r)
{
    const char *base = r->query.base;
    const char *names[HWNAS_INQUIRY_PROFILES + HWNAS_SWEEP_LIST + 1] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < r->n_loaded; i++) {
        const size_t length = strlen(r->names[i]);
        names[n++] = r->names[i];
        for (size_t k = 0; k < r->loaded[i]->n_devices && r->loaded[i]->n_devices > 1; k++)
            if (!strncmp(base, r->names[i], length) && base[length] == '/' &&
                !strcmp(base + length + 1, r->loaded[i]->devices[k].spelling))
                return HWNAS_OK;
        if (!strcmp(base, r->names[i]) && r->loaded[i]->n_devices <= 1)
            return HWNAS_OK;
    }
    for (int i = 0; i < r->sweep.n_devices && r->measures; i++) {
        names[n++] = r->sweep.devices[i];
        if (!strcmp(base, r->sweep.devices[i]))
            return HWNAS_OK;
    }
    const hwnas_status status = hwnas_fail(HWNAS_E_USAGE, NULL, "no machine is called '%s'", base);
    const char *near = hwnas_nearest(base, names);
    return near ? hwnas_hint(status,
                             "did you mean '%s'? One of a profile of several devices is "
                             "NAME/DEVICE",
                             near)
                : hwnas_hint(status, "the first is '%s'", names[0]);
}

/* ---- What is measured here ---- */

/* A recorded device that is called as one of here would take its price, and be taken for it. */
static hwnas_status check_names(const hwnas_inquiry *r)
{
    for (int i = 0; i < r->sweep.n_devices; i++)
        for (size_t k = 0; k < r->n_loaded; k++)
            if (!strcmp(r->sweep.devices[i], r->names[k]))
                return hwnas_hint(hwnas_fail(HWNAS_E_USAGE, NULL,
                                             "a profile and a device of here are both called '%s'",
                                             r->names[k]),
                                  "give the profile another name: --profile NAME=FILE");
    return HWNAS_OK;
}

static hwnas_status measure(hwnas_inquiry *r)
{
    const hwnas_price *price;
    TRY(check_names(r));
    for (int i = 0; r->price_list && i < r->sweep.n_devices; i++)
        TRY(hwnas_prices_find(&price, r->price_list, r->sweep.devices[i]));
    if (r->save)
        TRY(hwnas_file_try(r->save));
    const hwnas_status swept = hwnas_sweep_run(r->here, &r->sweep);
    const bool is_saved = r->save && r->here->n_rows;
    if (is_saved)
        TRY(hwnas_profile_save(r->here, r->save));
    if (swept == HWNAS_E_INTERRUPTED)
        return hwnas_fail(swept, NULL, "interrupted; %zu row%s finished%s", r->here->n_rows,
                          r->here->n_rows == 1 ? " was" : "s were", is_saved ? " and saved" : "");
    return swept;
}

/* ---- The answer ---- */

/* A setting may be without the percentile that was asked for, which says nothing of the device. */
static bool lacks_percentile(const hwnas_comparison *c, const hwnas_answer *answer)
{
    for (size_t i = answer->first; i < answer->first + answer->n; i++) {
        const hwnas_profile_row *row = c->choices[i].row;
        if (row->status == HWNAS_OK && isnan(hwnas_profile_row_latency(row, c->query.percentile)))
            return isfinite(c->query.target);
    }
    return false;
}

/* No device that would do is an answer, and one that scripts want to hear of. */
hwnas_status hwnas_comparison_conclude(const hwnas_comparison *c)
{
    for (size_t i = 0; i < c->n_answers; i++) {
        if (c->answers[i].winner)
            continue;
        hwnas_status status =
            hwnas_fail(HWNAS_E_INFEASIBLE, NULL, "%s: no setting %s", c->answers[i].model,
                       c->query.training ? "trains it" : "keeps the target");
        return lacks_percentile(c, &c->answers[i])
                   ? hwnas_hint(status, "more --seconds bring the percentile that some lack; "
                                        "--percentile p50 does without")
                   : status;
    }
    return HWNAS_OK;
}

hwnas_status hwnas_inquiry_run(hwnas_inquiry *r)
{
    if (r->prices)
        TRY(hwnas_prices_load(&r->price_list, r->prices));
    TRY(load_profiles(r));
    if (r->query.base)
        TRY(check_base(r));
    r->comparison = hwnas_comparison_new(&r->query, r->price_list);
    for (size_t i = 0; i < r->n_loaded; i++)
        TRY(hwnas_comparison_add(r->comparison, r->loaded[i], r->names[i]));
    if (r->measures) {
        TRY(measure(r));
        TRY(hwnas_comparison_add(r->comparison, r->here, NULL));
    }
    hwnas_comparison_judge(r->comparison);
    return HWNAS_OK;
}

void hwnas_inquiry_done(hwnas_inquiry *r)
{
    hwnas_comparison_free(r->comparison);
    hwnas_prices_free(r->price_list);
    hwnas_profile_free(r->here);
    for (size_t i = 0; i < r->n_loaded; i++) {
        hwnas_profile_free(r->loaded[i]);
        free(r->names[i]);
    }
}
