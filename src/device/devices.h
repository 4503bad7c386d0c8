/* devices.h: the rows of the table of devices, and what they share. */
#ifndef HWNAS_DEVICE_DEVICES_H
#define HWNAS_DEVICE_DEVICES_H

#include "device/device.h"

extern const hwnas_device_ops hwnas_cpu_device;      /* onednn/onednn.c */
extern const hwnas_device_ops hwnas_ref_device;      /* ref/ref.c */
extern const hwnas_device_ops hwnas_ort_device;      /* ort/ort.c, or ort/no_ort.c */
extern const hwnas_device_ops hwnas_null_device;     /* null/null.c */
extern const hwnas_device_ops hwnas_ssh_device;      /* device.c */
extern const hwnas_device_ops hwnas_runner_device;   /* device.c */
/* torch/torch.c */
extern const hwnas_device_ops hwnas_torch_device, hwnas_torch_cuda_device;
extern const hwnas_device_ops hwnas_replay_device;   /* replay/replay.c */
extern const hwnas_device_ops hwnas_external_device; /* device.c */
/* module.c: what is in hwnas-cuda.so */
extern const hwnas_device_ops hwnas_cuda_device, hwnas_cuda_dry_device;

/* What opens those that another process runs (measure/runner_link.h): they are not opened in this
 * one. */
HWNAS_CHECKED hwnas_status hwnas_device_open_elsewhere(hwnas_device **out, const char *argument,
                                                       const hwnas_device_options *options);

/* For devices that have nothing behind the colon. */
HWNAS_CHECKED hwnas_status hwnas_device_takes_no_argument(const char *name, const char *argument);

/* The processor's name as the system knows it; where it knows none, as on Arm, that of the board.
 */
void hwnas_device_cpu_name(char *out, size_t size);
/* In a system that begins at `root`; "": ours. */
void hwnas_device_cpu_name_at(char *out, size_t size, const char *root);

#endif
