/* settings.h: how a network is measured, batch, threads and precision, as choices of the search.
 *
 * A setting that a job leaves open, `batch: {values: [1, 8]}`, becomes a choice behind those of the
 * space, so strategies see one space and need to know nothing of it. An architecture of that space
 * is spelled "k=3355,batch=8". */
#ifndef HWNAS_STUDY_SETTINGS_H
#define HWNAS_STUDY_SETTINGS_H

#include "device/device.h"
#include "space/arch.h"
#include "study/job.h"

/* Values of settings are positive, so that 0 can say that none is given. */
typedef struct hwnas_settings {
    int batch, threads;
    int dtype; /* 1 + hwnas_precision, or behind all of these a hwnas_mixing */
} hwnas_settings;

/* HWNAS_UNMIXED: one precision for all layers. */
static inline hwnas_mixing hwnas_dtype_mixing(int dtype)
{
    return dtype > HWNAS_N_PRECISIONS ? (hwnas_mixing)(dtype - HWNAS_N_PRECISIONS) : HWNAS_UNMIXED;
}

/* Of one that is mixed the floats that a network has at first. */
static inline hwnas_precision hwnas_dtype_precision(int dtype)
{
    return hwnas_dtype_mixing(dtype) ? HWNAS_F32 : (hwnas_precision)(dtype - 1);
}

/* Networks of the job may have a precision for each layer; how far their outputs may be off then,
 * as a share; infinite: accuracy alone judges. */
bool hwnas_settings_may_be_mixed(const hwnas_job *job);
double hwnas_settings_max_error(const hwnas_job *job);

/* A kind of setting: a row of hwnas_setting_table. */
typedef struct hwnas_setting_kind {
    const char *name;
    int most;                  /* the largest value */
    const char *(*word)(int);  /* what a value is called; NULL: a number */
    size_t values, own, value; /* offsets: in hwnas_job, hwnas_job_device, hwnas_settings */
} hwnas_setting_kind;

/* In the order in which they follow the choices of a space. */
enum { HWNAS_BATCH, HWNAS_THREADS, HWNAS_DTYPE, HWNAS_N_SETTINGS };
enum { HWNAS_SETTING_TEXT = 16 };
extern const hwnas_setting_kind hwnas_setting_table[HWNAS_N_SETTINGS];
/* The row of a name that is there. */
const hwnas_setting_kind *hwnas_setting_named(const char *name);

/* What the job says, what a device's own row says (0: nothing), and where a value is kept. */
const hwnas_setting_values *hwnas_setting_of_job(const hwnas_setting_kind *setting,
                                                 const hwnas_job *job);
int hwnas_setting_of_device(const hwnas_setting_kind *setting, const hwnas_job_device *device);
int *hwnas_setting_in(const hwnas_setting_kind *setting, hwnas_settings *settings);

/* A value in words: "8", "bf16". */
void hwnas_setting_text(char out[HWNAS_SETTING_TEXT], const hwnas_setting_kind *setting, int value);
/* The value of such words; 0: there is none. */
int hwnas_setting_read(const hwnas_setting_kind *setting, const char *text);

/* The job's first values. */
hwnas_settings hwnas_settings_first(const hwnas_job *job);
/* Goes on to the next combination of the job's values; false: that was the last. */
bool hwnas_settings_next(hwnas_settings *settings, const hwnas_job *job);

/* The space that the search walks: `space` itself, or one that lives in its arena and ends with it.
 * A choice of the space with a setting's name is HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_settings_space(const hwnas_space **out, hwnas_space *space,
                                                const hwnas_job *job);

/* What an architecture of that space says, and the network without it (yours to free). */
hwnas_settings hwnas_settings_of(const hwnas_arch *arch, const hwnas_job *job);
hwnas_arch *hwnas_settings_strip(const hwnas_arch *arch, const hwnas_space *space);

/* The same of a code: cuts the settings off `code`. */
hwnas_settings hwnas_settings_cut(char *code, const hwnas_job *job);

#endif
