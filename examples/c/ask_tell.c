/* ask_tell.c: a search whose networks are run elsewhere, one at a time.
 *
 *     cc ask_tell.c $(pkg-config --cflags --libs hwnas) -o ask_tell
 *     ./ask_tell job.yaml SPACE ./measure-on-board
 *
 * The job has `device: external`, and SPACE is its space. Each network is written as CODE.onnx, and
 * the command is called with that name; it prints the latency in seconds, or nothing where it
 * failed. After Ctrl-C, or any other end, the same command goes on. */
#include <hwnas.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t cancel;

static void on_interrupt(int number)
{
    (void)number;
    cancel = 1;
}

static int fail(void)
{
    const hwnas_error *error = hwnas_last_error();
    fprintf(stderr, "%s%s%s\n", error->file, *error->file ? ": " : "", error->message);
    if (*error->hint)
        fprintf(stderr, "  hint: %s\n", error->hint);
    return hwnas_status_exit_code(error->status);
}

/* Whether the command gave the latency of a network, in seconds. */
static int measure(double *seconds, const hwnas_space *space, const hwnas_study_trial *trial,
                   const char *command)
{
    char file[256], line[1024];
    hwnas_network *network;
    hwnas_network_options options = HWNAS_NETWORK_OPTIONS_INIT;
    options.batch = trial->batch;
    snprintf(file, sizeof file, "%s.onnx", trial->code);
    snprintf(line, sizeof line, "%s '%s'", command, file);
    if (hwnas_network_open_in(&network, space, trial->code, &options) != HWNAS_OK)
        return 0;
    const hwnas_status written = hwnas_network_export(network, file, "onnx", NULL);
    hwnas_network_close(network);
    FILE *answer = written == HWNAS_OK ? popen(line, "r") : NULL;
    const int is_there = answer && fscanf(answer, "%lf", seconds) == 1;
    if (answer)
        pclose(answer);
    remove(file);
    return is_there;
}

int main(int argc, char **argv)
{
    hwnas_space *space;
    hwnas_study *study;
    const hwnas_study_trial *trial, *front;
    hwnas_status told;
    size_t n;
    if (argc != 4) {
        fprintf(stderr, "usage: %s JOB.yaml SPACE COMMAND\n", argv[0]);
        return 2;
    }
    signal(SIGINT, on_interrupt);
    hwnas_study_options options = HWNAS_STUDY_OPTIONS_INIT;
    options.resume = true;
    options.cancel = &cancel;
    if (hwnas_space_open(&space, argv[2]) != HWNAS_OK ||
        hwnas_study_open(&study, argv[1], &options) != HWNAS_OK)
        return fail();
    while (hwnas_study_ask(&trial, study) == HWNAS_OK) {
        hwnas_metric_value latency = {.metric = "latency.p50"};
        if (measure(&latency.value, space, trial, argv[3]))
            told = hwnas_study_tell(study, trial->number, &latency, 1);
        else
            told = hwnas_study_tell_failure(study, trial->number, HWNAS_E_CRASHED, "no latency");
        if (told != HWNAS_OK)
            return fail();
    }
    if (hwnas_last_error()->status != HWNAS_E_EXHAUSTED ||
        hwnas_study_front(&front, &n, study, 0) != HWNAS_OK)
        return fail();
    for (size_t i = 0; i < n; i++)
        printf("%llu %s\n", (unsigned long long)front[i].number, front[i].code);
    hwnas_study_close(study);
    hwnas_space_close(space);
    return 0;
}
