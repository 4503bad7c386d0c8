/* command.h: the one command that makes a measurement again. */
#ifndef HWNAS_PROFILE_COMMAND_H
#define HWNAS_PROFILE_COMMAND_H

#include "profile/mix_data.h"

typedef struct hwnas_recipe {
    const char *model; /* as `hwnas profile` takes it */
    const char *arch;  /* NULL: the model leaves nothing to choose */
    const char *device;
    int batch, threads;
    hwnas_mixing mixing; /* in the place of the options' precision, with ... */
    double max_error;    /* ... this limit, a share; infinite: none */
    const hwnas_mix_data *data; /* by these samples, NULL for made-up inputs, ... */
    bool has_labels;            /* ... and their labels */
    const char *shape;   /* NULL: as the file has it */
    int streams;       /* 0: one copy, by the protocol for one */
    bool skips;        /* --skip-unsupported */
} hwnas_recipe;

/* "hwnas profile ...", with every option that matters spelled out and quoted for a shell. Yours to
 * free(). */
char *hwnas_recipe_command(const hwnas_recipe *recipe, const hwnas_measure_options *options);

#endif
