/* train_step.c: `train_step NET.onnx FOLDER PRECISION [smooth]` takes one training step of a
 * network on the device `cpu` and leaves in the folder what tests/peers/torch_gradients.py compares
 * with PyTorch's: the inputs, the weights before the step and their gradients as raw floats, and
 * `about`, a line for each. Nothing is dropped by a dropout, as two generators of random numbers
 * have nothing in common. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "device/devices.h"
#include "device/onednn/training/gradients.h"
#include "device/onednn/training/train_exec.h"
#include "graph/loss.h"
#include "measure/buffers.h"
#include "onnx/onnx.h"

typedef struct dump {
    const char *folder;
    FILE *about;
} dump;

static void check(hwnas_status status)
{
    if (status == HWNAS_OK)
        return;
    fprintf(stderr, "train_step: %s; %s\n", hwnas_last_error()->message, hwnas_last_error()->hint);
    exit(1);
}

static void write_floats(const char *folder, const char *what, size_t i, const float *values,
                         int64_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%zu", folder, what, i);
    check(hwnas_file_write(path, (const char *)values, (size_t)n * sizeof *values));
}

static void tell(const dump *d, const char *what, size_t i, const hwnas_tensor *tensor)
{
    fprintf(d->about, "%s %zu %s", what, i,
            hwnas_dtype_is_whole(tensor->dtype) ? "int64" : "float");
    for (int k = 0; k < tensor->rank; k++)
        fprintf(d->about, " %lld", (long long)tensor->dims[k]);
    fprintf(d->about, "\n");
}

static void drop_nothing(hwnas_graph *graph)
{
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (hwnas_node_is(&graph->nodes[n], HWNAS_OP_DROPOUT))
            graph->nodes[n].attrs[0].number = 0;
}

/* Where a function has a bend, two computations that differ by a rounding may have another slope:
 * those are exchanged for tanh. */
static void make_smooth(hwnas_graph *graph)
{
    for (size_t n = 0; n < graph->n_nodes; n++)
        if (hwnas_node_is(&graph->nodes[n], HWNAS_OP_RELU) ||
            hwnas_node_is(&graph->nodes[n], HWNAS_OP_CLIP))
            graph->nodes[n].op = hwnas_ops[HWNAS_OP_TANH];
}

static void write_gradients(const dump *d, const hwnas_exec *exec, const hwnas_graph *graph)
{
    for (size_t i = 0; i < graph->n_tensors; i++) {
        const hwnas_tensor *tensor = &graph->tensors[i];
        if (tensor->kind != HWNAS_TENSOR_WEIGHT || !tensor->is_parameter)
            continue;
        const int64_t n = hwnas_tensor_count(tensor);
        float *values = hwnas_alloc((size_t)n * sizeof *values);
        hwnas_tensor_fill(tensor, values);
        write_floats(d->folder, "weight", i, values, n);
        check(hwnas_onednn_training_momentum(values, exec, (int)i));
        write_floats(d->folder, "gradient", i, values, n);
        tell(d, "weight", i, tensor);
        free(values);
    }
}

static void write_losses(const dump *d, const hwnas_graph *graph)
{
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const hwnas_tensor *out = &graph->tensors[hwnas_graph_loss_input(graph, i)];
        const bool of_classes = hwnas_graph_loss(graph, i) == HWNAS_LOSS_CROSS_ENTROPY;
        const int64_t width = out->dims[out->rank - 1];
        const int64_t n = hwnas_tensor_count(out) / (of_classes ? width : 1);
        float *values = hwnas_alloc((size_t)n * sizeof *values);
        for (int64_t k = 0; k < n; k++)
            values[k] = hwnas_loss_target(of_classes, k, width);
        write_floats(d->folder, "target", i, values, n);
        tell(d, hwnas_loss_name(hwnas_graph_loss(graph, i)), i, out);
        free(values);
    }
}

/* The file as PyTorch is to train it: without the softmax that the loss has. */
static void write_logits(const dump *d, hwnas_graph *graph)
{
    char path[4096];
    void *onnx;
    size_t length;
    for (size_t i = 0; i < graph->n_outputs; i++)
        graph->outputs[i] = hwnas_graph_loss_input(graph, i);
    check(hwnas_onnx_write(&onnx, &length, graph, HWNAS_ONNX_VALUES));
    snprintf(path, sizeof path, "%s/logits.onnx", d->folder);
    check(hwnas_file_write(path, onnx, length));
    free(onnx);
}

int main(int argc, char **argv)
{
    char path[4096];
    char *bytes;
    size_t length;
    float loss;
    hwnas_graph *file, *graph;
    hwnas_device *device;
    hwnas_exec *exec;
    hwnas_buffers buffers;
    const hwnas_device_options options = {.size = sizeof options, .threads = 2};
    hwnas_exec_options how = {.training = HWNAS_SGD};
    if (argc < 4)
        return 2;
    const dump d = {argv[2], (snprintf(path, sizeof path, "%s/about", argv[2]), fopen(path, "w"))};
    check(hwnas_precision_find(&how.precision, argv[3]));
    check(hwnas_file_read(&bytes, &length, argv[1], SIZE_MAX / 2));
    check(hwnas_onnx_read(&file, argv[1], bytes, length));
    check(hwnas_graph_copy(&graph, file)); /* numbers its tensors as the device's own copy does */
    drop_nothing(graph);
    if (argc > 4 && !strcmp(argv[4], "smooth"))
        make_smooth(graph);
    check(hwnas_device_open(&device, "cpu", &options));
    check(hwnas_device_compile(&exec, device, graph, &how));
    check(hwnas_buffers_open(&buffers, graph));
    check(exec->ops->run(exec, (const float *const *)buffers.inputs, buffers.outputs));
    check(hwnas_onednn_training_loss(&loss, exec));
    fprintf(d.about, "loss %.9g\n", (double)loss);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const hwnas_tensor *in = &graph->tensors[graph->inputs[i]];
        write_floats(d.folder, "input", i, buffers.inputs[i], hwnas_tensor_count(in));
        tell(&d, "input", i, in);
    }
    write_losses(&d, graph);
    write_gradients(&d, exec, graph);
    write_logits(&d, graph);
    fclose(d.about);
    hwnas_buffers_done(&buffers);
    hwnas_exec_free(exec);
    hwnas_device_close(device);
    hwnas_graph_free(graph);
    hwnas_graph_free(file);
    free(bytes);
    return 0;
}
