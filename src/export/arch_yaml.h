/* arch_yaml.h: an architecture as a YAML file that hwnas reads again. */
#ifndef HWNAS_EXPORT_ARCH_YAML_H
#define HWNAS_EXPORT_ARCH_YAML_H

#include "base/str.h"
#include "space/arch.h"

/* Writes the file of the architecture's space, comments and all, with one value for each choice.
 * A space that was loaded from a file which has since changed its meaning is HWNAS_E_INPUT. */
HWNAS_CHECKED hwnas_status hwnas_arch_yaml_write(hwnas_str *out, const hwnas_arch *arch);

#endif
