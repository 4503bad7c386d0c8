/* recurrent_cell.h: how oneDNN has the gates and the biases of LSTM and GRU, against ONNX.
 *
 * ONNX has an LSTM's gates as input, output, forget, cell and oneDNN as input, forget, cell,
 * output; a GRU's are update, reset, hidden for both, and the reset comes after the product
 * ("linear before reset"), where oneDNN has a fourth bias for what the reset is multiplied with. */
#ifndef HWNAS_DEVICE_ONEDNN_RECURRENT_CELL_H
#define HWNAS_DEVICE_ONEDNN_RECURRENT_CELL_H

enum { HWNAS_CELL_GATES = 4, HWNAS_CELL_BIASES = 4 };

typedef struct hwnas_onednn_cell {
    int n_gates, n_biases;
    int gate[HWNAS_CELL_GATES]; /* for each of oneDNN's, which of ONNX's */
    /* For each of oneDNN's biases, which gates of ONNX's W's and R's are summed; -1: none. */
    int bias_of_w[HWNAS_CELL_BIASES], bias_of_r[HWNAS_CELL_BIASES];
} hwnas_onednn_cell;

/* Constant; in onednn_recurrent.c. */
extern const hwnas_onednn_cell hwnas_onednn_lstm_cell, hwnas_onednn_gru_cell;

#endif
