#include "report/survey_text.h"

#include <stdlib.h>

#include "measure/priority.h"
#include "report/roofline_text.h"

static void add_precisions(hwnas_str *out, const hwnas_device_info *info)
{
    char *native = hwnas_precision_names(info->native);
    char *emulated = hwnas_precision_names(info->emulated);
    hwnas_str_addf(out, "         computes in %s; emulates %s\n", native, emulated);
    free(native);
    free(emulated);
}

/* The names of a set of precisions. */
static json_t *names_of(unsigned set)
{
    json_t *names = json_array();
    for (int p = 0; p < HWNAS_N_PRECISIONS; p++)
        if (set & 1U << p)
            json_array_append_new(names, json_string(hwnas_precision_name((hwnas_precision)p)));
    return names;
}

static void add_instances(hwnas_str *out, const hwnas_device_survey *f)
{
    for (size_t i = 0; i < f->n_instances; i++) {
        const hwnas_device_instance *one = &f->instances[i];
        if (one->works)
            hwnas_str_addf(out, "         %s  %s, %s, %s\n", one->spelling, one->info.name,
                           one->info.library, one->info.isa);
        else
            hwnas_str_addf(out, "         %s  does not work here: %s\n", one->spelling,
                           one->trouble);
    }
}

static void add_text(hwnas_str *out, const hwnas_device_survey *f)
{
    const hwnas_device_info *info = &f->info;
    hwnas_str_addf(out, "%-8s %s\n", f->spelling, f->ops->help);
    add_instances(out, f);
    if (*info->name && !f->n_instances)
        hwnas_str_addf(out, "         %s%s%s%s%s\n", info->name, *info->library ? ", " : "",
                       info->library, *info->isa ? ", " : "", info->isa);
    if (f->ops->caveat)
        hwnas_str_addf(out, "         %s\n", f->ops->caveat);
    if (info->emulated)
        add_precisions(out, info);
    if (*f->trouble)
        hwnas_str_addf(out, "         %s: %s\n",
                       f->works ? "cannot be measured here" : "does not work here", f->trouble);
    if (f->n)
        hwnas_roofline_text(out, f->rooflines, f->n);
}

static json_t *instances_of(const hwnas_device_survey *f)
{
    json_t *list = json_array();
    for (size_t i = 0; i < f->n_instances; i++) {
        const hwnas_device_instance *one = &f->instances[i];
        json_array_append_new(
            list, json_pack("{s:s, s:b, s:s, s:s, s:s, s:s?}", "spelling", one->spelling, "works",
                            one->works, "description", one->info.name, "library", one->info.library,
                            "isa", one->info.isa, "message", one->works ? NULL : one->trouble));
    }
    return list;
}

static json_t *to_json(const hwnas_device_survey *f)
{
    json_t *rooflines = json_array();
    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(rooflines, hwnas_roofline_json(&f->rooflines[i]));
    return json_pack("{s:s, s:s, s:s?, s:o, s:b, s:s?, s:s, s:s, s:s, s:i, s:o, s:o, s:o}", "name",
                     f->spelling, "help", f->ops->help, "caveat", f->ops->caveat, "instances",
                     instances_of(f), "works", f->works, "lacks",
                     *f->trouble ? f->trouble : NULL, "description", f->info.name, "library",
                     f->info.library, "isa", f->info.isa, "threads", f->info.threads, "native",
                     names_of(f->info.native), "emulated", names_of(f->info.emulated), "rooflines",
                     rooflines);
}

void hwnas_survey_add(hwnas_rendering *out, const hwnas_device_survey *survey)
{
    if (!out->json)
        out->json =
            json_pack("{s:s, s:i, s:[]}", "format", "hwnas.devices", "version", 1, "devices");
    add_text(&out->text, survey);
    json_array_append_new(json_object_get(out->json, "devices"), to_json(survey));
}

static void add_priority(hwnas_rendering *out, bool is_allowed, const char *why, const char *hint)
{
    json_t *priority = json_pack("{s:b, s:s?, s:s?}", "realtime", is_allowed, "message",
                                 is_allowed ? NULL : why, "hint", is_allowed ? NULL : hint);
    if (is_allowed)
        hwnas_str_add(&out->text,
                      "priority real-time: other programs do not disturb a measurement\n");
    else
        hwnas_str_addf(&out->text, "priority normal: %s\n         to allow it: %s\n", why, hint);
    json_object_set_new(out->json, "priority", priority);
}

void hwnas_survey_add_priority(hwnas_rendering *out)
{
    const bool is_allowed = hwnas_priority_check() == HWNAS_OK;
    const hwnas_error *error = hwnas_last_error();
    add_priority(out, is_allowed, error->message, error->hint);
    hwnas_error_clear();
}

void hwnas_survey_add_its_priority(hwnas_rendering *out, const hwnas_device_survey *survey)
{
    if (survey->tells_realtime && survey->is_hwnas)
        add_priority(out, survey->is_realtime, "the kernel there refuses real-time priority",
                     "sudo setcap cap_sys_nice+ep HWNAS, there, for the program that answers");
    else if (survey->tells_realtime)
        add_priority(out, survey->is_realtime, "the runner says that it measures with that",
                     "start the runner with it, as by 'chrt -f 50 COMMAND', and have it say so");
}
