#include "report/precision_notes.h"

#include <string.h>

#include "report/mix_words.h"

static bool is_used(const hwnas_profile *profile, const hwnas_profile_device *device,
                    hwnas_precision precision)
{
    for (size_t i = 0; i < profile->n_rows; i++)
        if (profile->rows[i].precision == precision &&
            !strcmp(profile->rows[i].device, device->spelling))
            return true;
    return false;
}

static void add_emulated(hwnas_str *out, const hwnas_profile *profile,
                         const hwnas_profile_device *device)
{
    for (int p = 0; p < HWNAS_N_PRECISIONS; p++)
        if (device->info.emulated & (1U << p) && is_used(profile, device, (hwnas_precision)p))
            hwnas_str_addf(out, "! %s: %s is emulated: this processor has no instructions for it\n",
                           device->spelling, hwnas_precision_name((hwnas_precision)p));
}

static bool is_measured(const hwnas_profile *profile, const hwnas_profile_device *device,
                        hwnas_precision precision)
{
    for (size_t i = 0; i < profile->n_rows; i++)
        if (profile->rows[i].precision == precision && profile->rows[i].status == HWNAS_OK &&
            !strcmp(profile->rows[i].device, device->spelling))
            return true;
    return false;
}

static void add_exact(hwnas_str *out, const hwnas_profile *profile,
                      const hwnas_profile_device *device)
{
    if (hwnas_device_exact_is_slow(&device->info) && device->info.computes &&
        is_measured(profile, device, HWNAS_F32) && !is_used(profile, device, HWNAS_TF32))
        hwnas_str_addf(out, "! %s: " HWNAS_EXACT_IS_SLOW "\n", device->spelling, "--dtype");
}

/* The same in f32, or NULL. */
static const hwnas_profile_row *plain_of(const hwnas_profile *profile, const hwnas_profile_row *row)
{
    for (size_t i = 0; i < profile->n_rows; i++) {
        const hwnas_profile_row *other = &profile->rows[i];
        if (other->precision == HWNAS_F32 && !other->mixing && other->status == HWNAS_OK &&
            !strcmp(other->model, row->model) && !strcmp(other->device, row->device) &&
            !strcmp(other->arch ? other->arch : "", row->arch ? row->arch : "") &&
            other->batch == row->batch && other->threads == row->threads &&
            other->streams == row->streams)
            return other;
    }
    return NULL;
}

static void add_slower(hwnas_str *out, const hwnas_profile *profile, const hwnas_profile_row *row)
{
    const hwnas_profile_row *plain = plain_of(profile, row);
    if ((row->precision == HWNAS_F32 && !row->mixing) || row->status != HWNAS_OK || !plain ||
        !(row->m.p50_low > plain->m.p50_high))
        return;
    hwnas_str_addf(out, "! %s, %s, batch %d, %d thread%s: %s takes %.2f times as long as f32\n",
                   row->model, row->device, row->batch, row->threads, row->threads == 1 ? "" : "s",
                   hwnas_profile_row_dtype(row), row->m.p50 / plain->m.p50);
}

void hwnas_mixed_words(hwnas_str *out, const char *margin, const hwnas_profile_row *row)
{
    const hwnas_mix_words words = {.n_s8 = row->layers_in_s8,
                                   .n_bf16 = row->layers_in_bf16,
                                   .floats = row->floats,
                                   .error = row->mixed_error,
                                   .max_error = row->max_error,
                                   .n_samples = row->choice_samples,
                                   .metric = row->accuracy_metric,
                                   .n_held_out = row->held_out_samples,
                                   .accuracy = row->accuracy,
                                   .f32_accuracy = row->f32_accuracy,
                                   .s8_accuracy = &row->s8_accuracy,
                                   .max_loss = row->max_loss};
    hwnas_mix_words_add(out, margin, &words);
}

/* What was chosen, as the table has no column for it. */
static void add_mixed(hwnas_str *out, const hwnas_profile_row *row)
{
    if (!row->mixing || row->status != HWNAS_OK)
        return;
    hwnas_str_addf(out, "%s, batch %d, %d thread%s, %s: ", row->model, row->batch, row->threads,
                   row->threads == 1 ? "" : "s", hwnas_mixing_name(row->mixing));
    hwnas_mixed_words(out, "  ", row);
}

void hwnas_precision_notes(hwnas_str *out, const hwnas_profile *profile)
{
    for (size_t i = 0; i < profile->n_devices; i++)
        add_emulated(out, profile, &profile->devices[i]);
    for (size_t i = 0; i < profile->n_devices; i++)
        add_exact(out, profile, &profile->devices[i]);
    for (size_t i = 0; i < profile->n_rows; i++)
        add_mixed(out, &profile->rows[i]);
    for (size_t i = 0; i < profile->n_rows; i++)
        add_slower(out, profile, &profile->rows[i]);
}
