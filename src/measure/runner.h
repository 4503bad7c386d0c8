/* runner.h: what several runners at the same time need of each, and what tests want to know. */
#ifndef HWNAS_MEASURE_RUNNER_H
#define HWNAS_MEASURE_RUNNER_H

#include <jansson.h>
#include <sys/types.h>

#include "measure/measure.h"

/* The child's process, or 0 when there is none now. */
pid_t hwnas_runner_pid(const hwnas_runner *runner);

/* The child's cores, one for each of its threads, are these, held by somebody else. */
void hwnas_runner_pin(hwnas_runner *runner, const int *cores);

/* The parts of hwnas_runner_measure(): sends MEASURE and the first of `n` graphs, `onnx`; sends one
 * graph more; sends GO; waits for an ANSWER, whose failure becomes ours. Nothing is sent, and it is
 * HWNAS_E_UNSUPPORTED, where one of the graphs has a larger batch than the runner takes. */
HWNAS_CHECKED hwnas_status hwnas_runner_request(hwnas_runner *runner,
                                                const hwnas_graph *const *graphs, int n,
                                                const json_t *request, const void *onnx,
                                                size_t length,
                                                const hwnas_measure_options *options);
HWNAS_CHECKED hwnas_status hwnas_runner_send_graph(hwnas_runner *runner, const void *onnx,
                                                   size_t length,
                                                   const hwnas_measure_options *options);
HWNAS_CHECKED hwnas_status hwnas_runner_go(hwnas_runner *runner, const json_t *go,
                                           const hwnas_measure_options *options);
HWNAS_CHECKED hwnas_status hwnas_runner_receive(json_t **answer, hwnas_runner *runner,
                                                const hwnas_measure_options *options);
/* How a request ends: a failure in which the child may still be running, or is not to be trusted,
 * costs the child. A plain "I cannot do this" does not. Returns `status`. */
HWNAS_CHECKED hwnas_status hwnas_runner_end_request(hwnas_runner *runner, hwnas_status status);
/* What one request has cost, however often it was made; zero in the beginning. */
typedef struct hwnas_losses {
    int n; /* links */
    bool was_silent;
} hwnas_losses;
/* After a request has ended with `status`, which becomes another one when there is no hope: whether
 * to make it once more, as only the way to the runner was cut. Waits a while where nobody can be
 * reached. */
bool hwnas_runner_tries_again(hwnas_status *status, hwnas_losses *losses, hwnas_runner *runner,
                              const hwnas_measure_options *options);
/* A hint that hwnas_runner_measure() of this network will come: where the runner takes requests
 * before it has answered earlier ones (and is another program, or on another machine), it is sent
 * now. What is answered before it is asked for is kept until then, or until it is forgotten. */
HWNAS_CHECKED hwnas_status hwnas_runner_send_ahead(hwnas_runner *runner, const hwnas_graph *graph,
                                                   bool with_steps,
                                                   const hwnas_measure_options *options);
/* Of a runner that has been started. */
bool hwnas_runner_takes_ahead(const hwnas_runner *runner);
bool hwnas_runner_has_ahead(const hwnas_runner *runner, const hwnas_graph *graph,
                            hwnas_precision precision);
/* It is not only on the way. */
bool hwnas_runner_has_answer(const hwnas_runner *runner, const hwnas_graph *graph,
                             hwnas_precision precision);
/* No network that was sent ahead is wanted any more, unless it is sent again. */
void hwnas_runner_forget_ahead(hwnas_runner *runner);
/* How many are wanted and not answered. */
int hwnas_runner_n_ahead(const hwnas_runner *runner);
/* Starts the child if there is none; then its hello is known. The halves: the first does not wait
 * for an answer, which comes when the runner's socket is readable. */
HWNAS_CHECKED hwnas_status hwnas_runner_make_ready(hwnas_runner *runner,
                                                   const hwnas_measure_options *options);
HWNAS_CHECKED hwnas_status hwnas_runner_begin_opening(hwnas_runner *runner,
                                                      const hwnas_measure_options *options);
HWNAS_CHECKED hwnas_status hwnas_runner_end_opening(hwnas_runner *runner, double patience,
                                                    const hwnas_measure_options *options);
/* Ends the child, and forgets what it was asked for; the next one must be of the same machine. */
void hwnas_runner_rest(hwnas_runner *runner);
/* The same, for a child of so many threads. */
void hwnas_runner_set_threads(hwnas_runner *runner, int threads);
/* So often one request may lose its link while it is served: a network that takes the other machine
 * down each time must not be tried for ever. */
enum { HWNAS_MOST_CUTS = 10 };
/* Seconds. A board that restarts is back by then. */
#define HWNAS_LINK_PATIENCE 300.0

/* ---- Several boards: one that cannot be reached is left, and looked for beside the work ---- */

/* Whether it has been started, and nothing says that it has gone. */
bool hwnas_runner_is_ready(const hwnas_runner *runner);
/* It could not be reached when that was tried last. */
bool hwnas_runner_is_missing(const hwnas_runner *runner);
/* While this is so, a measurement whose link is lost fails at once, and hwnas_runner_is_lost(). */
void hwnas_runner_may_be_left(hwnas_runner *runner, bool may_be_left);
bool hwnas_runner_is_lost(const hwnas_runner *runner);
/* Forgets what it was asked for; it is looked for from now on. */
void hwnas_runner_leave(hwnas_runner *runner);
/* A step of reaching a runner that is not ready, without waiting; to be called again and again. */
void hwnas_runner_look(hwnas_runner *runner, const hwnas_measure_options *options);

/* A network as the runner takes it; `onnx` is yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_runner_write(void **onnx, size_t *length,
                                              const hwnas_runner *runner, const hwnas_graph *graph,
                                              const hwnas_exec_options *options);
/* Something else on this machine has its turn. A child that leaves the cores alone meanwhile stays
 * open, with what it holds of memory as long as there is plenty; another one is ended as by
 * hwnas_runner_rest(). One on another machine stays as it is. */
void hwnas_runner_make_way(hwnas_runner *runner);
/* Whether it is on another machine. */
bool hwnas_runner_is_far(const hwnas_runner *runner);
/* Whether networks can take turns there; a runner that has not been started yet cannot. */
bool hwnas_runner_can_race(const hwnas_runner *runner);
/* Whether it measures with real-time priority, as it said when it was opened; false: it does not
 * tell, as it is not hwnas, or an older one. */
bool hwnas_runner_tells_realtime(bool *out, const hwnas_runner *runner);
/* Whether it is hwnas, of any version, as it said when it was opened. */
bool hwnas_runner_is_hwnas(const hwnas_runner *runner);
/* The status of an answer that is none; `what` the runner wrote, for who wrote the runner. */
HWNAS_CHECKED hwnas_status hwnas_runner_protocol_error(const hwnas_runner *runner,
                                                       const char *what);
/* Ends the child at once; keeps the failure that is recorded. */
void hwnas_runner_stop(hwnas_runner *runner);

/* What hwnas_runner_main() does, for programs that are nothing but a runner. */
bool hwnas_runner_is_called(int *exit_code, int argc, char *const *argv);
/* The child's side on two descriptors, and nothing of what makes a process of its own of it.
 * Requests bind threads and limit memory, though. */
HWNAS_CHECKED hwnas_status hwnas_runner_serve_streams(int in, int out);

#endif
