/* layouts.h: how tensors lie in memory: images with their channels last, all else as oneDNN likes it
 * between its partitions, or row-major. */
#ifndef HWNAS_DEVICE_ONEDNN_LAYOUTS_H
#define HWNAS_DEVICE_ONEDNN_LAYOUTS_H

#include "device/onednn/group.h"

/* Whether it concatenates images along their channels. */
bool hwnas_onednn_joins_channels(const hwnas_graph *graph, const hwnas_node *node);
/* Whether it makes an image of images by moving their values. */
bool hwnas_onednn_moves_image(const hwnas_graph *graph, const hwnas_node *node);

/* Says in `f->layouts` which tensors are images, before groups are formed. */
void hwnas_onednn_choose_images(const hwnas_onednn_finder *f);
/* Whether the node makes an image, by what is known of its inputs. */
bool hwnas_onednn_begins_image(const hwnas_onednn_finder *f, const hwnas_node *node);
/* Says which tensors are row-major, when groups are known (`group_of`, by node). */
void hwnas_onednn_choose_plain(const hwnas_onednn_finder *f, const int *group_of);

#endif
