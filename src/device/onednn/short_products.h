/* short_products.h: products of a few rows with matrices that are computed in the run, as the
 * attention of one more token has them: a step of a loop of ours, of plain tensors. A partition of
 * oneDNN's takes longer to begin than such a product takes. */
#ifndef HWNAS_DEVICE_ONEDNN_SHORT_PRODUCTS_H
#define HWNAS_DEVICE_ONEDNN_SHORT_PRODUCTS_H

#include "device/onednn/onednn_steps.h"
#include "device/onednn/source.h"

bool hwnas_onednn_is_short_product(const hwnas_onednn_source *source, const hwnas_node *node);
extern const hwnas_onednn_kind hwnas_onednn_short_products;
/* One whose matrix is left lying. */
bool hwnas_onednn_is_turned_product(const hwnas_onednn_source *source, const hwnas_node *node);
extern const hwnas_onednn_kind hwnas_onednn_turned_products;
/* Whether a transpose of the last two dimensions is read by such products alone, as their matrix:
 * they read it as it lies before, so nothing is to be done. */
bool hwnas_onednn_is_left_lying(const hwnas_onednn_source *source, const hwnas_node *node);

#endif
