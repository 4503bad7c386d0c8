/* derive.h: spaces whose networks are made of a trained model. */
#ifndef HWNAS_DERIVE_DERIVE_H
#define HWNAS_DERIVE_DERIVE_H

#include "graph/graph.h"
#include "space/space.h"

/* Loads a space of any kind and checks it: as hwnas_graph_load_space(), and the model of one that
 * was derived. This is how a space is loaded by all that stand above. */
HWNAS_CHECKED hwnas_status hwnas_load_space(hwnas_space **out, const char *name);
/* Loads the model of a space that is parsed already, if it has one. */
HWNAS_CHECKED hwnas_status hwnas_space_attach_model(hwnas_space *space);

/* As hwnas_graph_build(), with the model's weights in the network of a space that was derived. Of
 * other spaces weights are drawn, as ever. */
HWNAS_CHECKED hwnas_status hwnas_graph_build_trained(hwnas_graph **out, const hwnas_arch *arch,
                                                     int batch);

/* What an architecture of such a space makes of its model, for hwnas_derivation_build(). `ranking`:
 * which channels stay; NULL: the original's. End it. */
struct hwnas_derivation;
HWNAS_CHECKED hwnas_status hwnas_derivation_of(struct hwnas_derivation *out, const hwnas_arch *arch,
                                               int batch, int *const *ranking);

/* Writes a space whose first network is the model, and whose choices are all that can change in it;
 * whole or not at all, and only one that can be loaded. HWNAS_E_INPUT: nothing can change.
 * `with_rare`: with changes of the kinds that are rare; else the file has them as comments. */
HWNAS_CHECKED hwnas_status hwnas_derive_space(const char *path, const char *model_path,
                                              bool with_rare);

#endif
