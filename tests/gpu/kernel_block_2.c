#define HWNAS_KERNEL_BLOCK 2
#include "kernel_block.h"
