/* compare_outputs.h: compare --outputs: what two networks give for the same inputs. */
#ifndef HWNAS_CLI_COMPARE_OUTPUTS_H
#define HWNAS_CLI_COMPARE_OUTPUTS_H

#include "cli/data_options.h"
#include "cli/sweep_lists.h"

/* Compares one or two models, `lists.models`, on the devices and in the precisions of the lists,
 * one for both or one for each; `models` has what else is said of them. `tolerance` below 0: the
 * library's. */
HWNAS_CHECKED hwnas_status hwnas_compare_outputs_run(hwnas_profile_options *models,
                                                     hwnas_sweep_lists *lists,
                                                     const hwnas_data_arguments *data,
                                                     double tolerance, hwnas_format format);

#endif
