/* write_network.h: a network as a file for others, in the precision in which it was searched. */
#ifndef HWNAS_STUDY_WRITE_NETWORK_H
#define HWNAS_STUDY_WRITE_NETWORK_H

#include "device/device.h"
#include "space/arch.h"
#include "study/settings.h"
#include "trial/trial.h"

typedef struct hwnas_network_file {
    const char *path, *format;
    hwnas_precision precision; /* an ONNX file has s8 as QDQ nodes; others are written as f32 */
    int batch;                 /* of an ONNX file */
    bool is_folded;            /* ONNX: without batch norms and dead branches */
    const char *layers; /* (optional) of a network whose layers have a precision each, the word of
                           it (precision/mix.h): the precision is that of its floats; borrowed */
    /* (optional) Of such a network, whose ranges it has; else those of random inputs; borrowed. */
    const struct hwnas_mix_data *data;
    /* (optional) Whose weights and ranges a network has that was judged by samples; borrowed. */
    struct hwnas_samples *samples;
} hwnas_network_file;

HWNAS_CHECKED hwnas_status hwnas_network_write(const hwnas_network_file *file,
                                               const hwnas_arch *arch);
/* Writes a graph as a device gets it, as ONNX: folded, and of bytes where `how` says s8, with
 * ranges that its samples give, or random ones. */
HWNAS_CHECKED hwnas_status hwnas_graph_write_folded(const char *path, const hwnas_graph *graph,
                                                    const hwnas_exec_options *how);
/* What the file has in the place of the precision that the network was measured in, as a clause
 * that begins with "is"; "": there is nothing to say. Yours to free(). */
char *hwnas_network_file_note(const hwnas_network_file *file);

/* The precision that a trial was measured in, by a device's own setting before the trial's;
 * `device` -1: the first that runs. */
hwnas_precision hwnas_trial_precision(const hwnas_job *job, hwnas_settings settings, int device);
/* Of a trial whose layers have a precision each, the word that says which (precision/mix.h), and
 * the precision of the other layers: on a device (-1: the first) in a phase (NULL: none; of the
 * network as the settings say there may be a phase, hwnas_phases_find_plain()). NULL: there is
 * none. Yours to free(). */
char *hwnas_trial_layers(hwnas_precision *floats, const hwnas_trial *trial, const hwnas_job *job,
                         int device, const char *phase);
/* HWNAS_UNMIXED: that is the precision of all its layers. */
hwnas_mixing hwnas_trial_mixing(const hwnas_job *job, hwnas_settings settings, int device);

#endif
