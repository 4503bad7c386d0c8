/* cuda_exec.h: a compiled graph on a GPU that is here. */
#ifndef HWNAS_DEVICE_CUDNN_CUDA_EXEC_H
#define HWNAS_DEVICE_CUDNN_CUDA_EXEC_H

#include "device/cudnn/cudnn_steps.h"

/* Compiles, takes the GPU's memory, puts the weights there, and records all of a run once. */
hwnas_status hwnas_cuda_compile(hwnas_exec **out, hwnas_device *device, const hwnas_graph *graph,
                                const hwnas_exec_options *options);
void hwnas_cuda_free_exec(hwnas_exec *exec);
hwnas_status hwnas_cuda_run(hwnas_exec *exec, const float *const *inputs, float *const *outputs);
hwnas_status hwnas_cuda_run_steps(hwnas_exec *exec, const float *const *inputs,
                                  float *const *outputs, double *seconds);
hwnas_status hwnas_cuda_time(hwnas_exec *exec, int runs, double *seconds);
hwnas_status hwnas_cuda_start(hwnas_exec *exec, int runs);
hwnas_status hwnas_cuda_finish(hwnas_exec *exec, double *seconds);
hwnas_status hwnas_cuda_evict(hwnas_exec *exec);
void hwnas_cuda_state(hwnas_exec *exec, hwnas_device_state *out);
double hwnas_cuda_joules(hwnas_exec *exec);

#endif
