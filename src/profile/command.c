#include "profile/command.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

static void add_option(hwnas_str *out, const char *name, const char *value)
{
    hwnas_str_addf(out, " --%s ", name);
    hwnas_str_add_word(out, value);
}

static void add_mode(hwnas_str *out, const hwnas_measure_options *o)
{
    hwnas_str_addf(out, " --mode %s", hwnas_mode_name(o->mode));
    if (o->mode == HWNAS_AFTER_IDLE)
        hwnas_str_addf(out, "=%g", o->idle_seconds);
}

static void add_mixing(hwnas_str *out, const hwnas_recipe *recipe)
{
    if (recipe->data)
        hwnas_mix_data_command(out, recipe->data);
    if (recipe->data && recipe->data->n && recipe->has_labels)
        hwnas_str_addf(out, " --max-loss %g", recipe->data->max_loss);
    if (isfinite(recipe->max_error))
        hwnas_str_addf(out, " --max-error %g", 100 * recipe->max_error);
}

char *hwnas_recipe_command(const hwnas_recipe *recipe, const hwnas_measure_options *o)
{
    hwnas_str out = {0};
    hwnas_str_add(&out, "hwnas profile ");
    hwnas_str_add_word(&out, recipe->model);
    if (recipe->arch)
        add_option(&out, "arch", recipe->arch);
    add_option(&out, "device", recipe->device);
    hwnas_str_addf(&out, " --batch %d --threads %d --dtype %s", recipe->batch, recipe->threads,
                   recipe->mixing ? hwnas_mixing_name(recipe->mixing)
                                  : hwnas_precision_name(o->exec.precision));
    if (recipe->mixing)
        add_mixing(&out, recipe);
    if (o->exec.training)
        hwnas_str_addf(&out, " --training --optimizer %s", hwnas_optimizer_name(o->exec.training));
    if (recipe->shape)
        add_option(&out, "shape", recipe->shape);
    if (recipe->streams)
        hwnas_str_addf(&out, " --streams %d", recipe->streams);
    hwnas_str_addf(&out, " --interval %g --seconds %g --runs %d", o->interval, o->max_seconds,
                   o->min_samples);
    if (o->mode != HWNAS_HOT)
        add_mode(&out, o);
    if (o->priority != HWNAS_PRIORITY_AUTO)
        hwnas_str_addf(&out, " --priority %s", hwnas_priority_name(o->priority));
    if (recipe->skips)
        hwnas_str_add(&out, " --skip-unsupported");
    return out.s;
}
