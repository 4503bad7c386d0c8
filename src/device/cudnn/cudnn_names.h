/* cudnn_names.h: names of cuDNN's that headers since 9.8 lack. The numbers are part of its
 * interface; a library that does not know an operation refuses it, and the graph is cut in another
 * way, and one that does not know a note never gives it. NVIDIA's cudnn-frontend uses these
 * since 9.13.1; where headers have them already, they are the same. */
#ifndef HWNAS_DEVICE_CUDNN_NAMES_H
#define HWNAS_DEVICE_CUDNN_NAMES_H

#include <cudnn.h>

#if CUDNN_VERSION < 91400
#define CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR ((cudnnBackendDescriptorType_t)41)
#define CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC ((cudnnBackendAttributeName_t)2800)
#define CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC ((cudnnBackendAttributeName_t)2801)
#define CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC ((cudnnBackendAttributeName_t)2802)
#define CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC ((cudnnBackendAttributeName_t)2803)
#define CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC ((cudnnBackendAttributeName_t)2805)
#define CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY ((cudnnBackendBehaviorNote_t)4)
#endif

#endif
