/* runner_main.c: a program that is nothing but a runner, for boards that search nothing themselves
 * (scripts/build-runner). */
#include <stdio.h>
#include <string.h>

#include <hwnas.h>

#include "measure/runner.h"

int main(int argc, char **argv)
{
    int exit_code;
    if (hwnas_runner_is_called(&exit_code, argc, argv))
        return exit_code;
    if (argc == 2 && (!strcmp(argv[1], "version") || !strcmp(argv[1], "--version")))
        return printf("hwnas %s, a runner\n", hwnas_version()) < 0;
    fprintf(stderr, "hwnas: a runner, which measures for a search on another machine; its one "
                    "command is `runner serve` (docs/devices.md)\n");
    return 2;
}
