#define HWNAS_KERNEL_BLOCK 0
#include "kernel_block.h"
