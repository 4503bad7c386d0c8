#define HWNAS_KERNEL_BLOCK 1
#include "kernel_block.h"
