/* runner: the child that measures; started by hwnas itself. */
#include "cli/cli.h"
#include "measure/measure.h"

hwnas_status hwnas_cmd_runner(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return hwnas_runner_serve();
}
