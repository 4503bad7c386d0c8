/* onnx_priv.h: what the writer and the reader of ONNX agree on. */
#ifndef HWNAS_ONNX_ONNX_PRIV_H
#define HWNAS_ONNX_ONNX_PRIV_H

#include "graph/op.h"
#include "onnx/onnx.h"
#include "onnx/onnx.pb-c.h"

/* Raw data is little-endian, and goes in and out as it lies in memory. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw_data would need its bytes swapped");

enum {
    HWNAS_ONNX_IR = 8,
    HWNAS_ONNX_OPSET = 17,      /* what we write */
    HWNAS_ONNX_FIRST_OPSET = 7, /* what we read: since then our operators kept their meaning, but
                                   for those whose row says onnx_since */
};

/* External data of this location is drawn from a seed. */
#define HWNAS_ONNX_SEEDS_LOCATION "hwnas:seed"
/* Metadata of the model: the seed of the graph. */
#define HWNAS_ONNX_SEED_KEY "hwnas.seed"

/* The doc_string of a weight that training does not learn: a constant or a running statistic. */
#define HWNAS_ONNX_NOT_LEARNED "not learned"

/* The domain of ONNX Runtime's own operators. */
#define HWNAS_ONNX_CONTRIB "com.microsoft"

/* ONNX's number of a type. */
extern const int32_t hwnas_onnx_types[HWNAS_N_DTYPES];

/* Spelling of hwnas_init. */
extern const char *const hwnas_onnx_inits[HWNAS_N_INITS];

/* Parses untrusted bytes: neither a crash nor memory out of proportion to `length`. Free the model
 * with onnx__model_proto__free_unpacked(model, NULL). */
HWNAS_CHECKED hwnas_status hwnas_onnx_unpack(Onnx__ModelProto **out, const void *bytes,
                                             size_t length);

#endif
