/* runner_priv.h: a runner from inside: what runner.c and runner_child.c share. */
#ifndef HWNAS_MEASURE_RUNNER_PRIV_H
#define HWNAS_MEASURE_RUNNER_PRIV_H

#include "measure/cores.h"
#include "measure/runner_link.h"
#include "measure/runner.h"
#include "measure/streamed.h"
#include "measure/wire.h"

typedef struct hwnas_order hwnas_order;

struct hwnas_runner {
    char *device;
    hwnas_link *link;
    int threads;            /* of a link that is not our own: 0, the other side's choice */
    pid_t pid;              /* 0: no child */
    int fd;                 /* socket to it */
    int log;                /* a pipe from its standard error */
    char tail[4096];        /* what came last from there, */
    size_t n_tail;          /* so many bytes */
    char phase[64];         /* what it said that it is doing */
    size_t n_graphs;        /* of the request that it is serving */
    size_t n_requests;      /* that the child has had */
    hwnas_hello hello;      /* the latest; but for its threads it must stay the same */
    int asked_threads;      /* for which that was said */
    bool is_known;          /* it has been said */
    bool is_other;          /* another machine answered since, which has been told */
    hwnas_order *orders;    /* measurements that it has been asked for; runner_orders.c */
    hwnas_streamed samples; /* of that request */
    bool is_starting;       /* it has not been opened yet */
    bool prepares;          /* a quick device: it does something for what is sent ahead */
    bool is_alone;          /* nothing is sent ahead, until the first order is answered */
    bool is_in_doubt;       /* what failed is measured again so: it may have been what was ahead */
    bool may_return;        /* what failed was the link, and it is worth trying again */
    double lost_since;      /* hwnas_now() when it could not be reached first; 0: it can */
    double nap;             /* before the next attempt */
    bool may_be_left;       /* when the link is lost, another board takes its networks, ... */
    bool is_lost;           /* ... which it is: hwnas_runner_leave() */
    double next_look;       /* hwnas_now() when to try to reach it again */
    double looking_since;   /* or since when it is being tried */
    hwnas_cores cores;      /* of the child */
    bool is_idle;           /* others may have them: hwnas_runner_make_way() */
    const int *pinned;      /* these instead, when they are given; borrowed */
};

/* Begins with a request: what was said before does not belong to it. */
void hwnas_runner_begin_request(hwnas_runner *r);
/* The same of one that was sent ahead, and may have begun to speak. */
void hwnas_runner_take_up(hwnas_runner *r);

/* ---- runner_turn.c ---- */

/* It is to measure now: on its cores again, or by another child on others. */
void hwnas_runner_take_turn(hwnas_runner *r);

/* ---- runner_measure.c ---- */

/* The runner has said that it takes batches as large as that of the network; it is ready. */
bool hwnas_runner_takes_batch(const hwnas_runner *r, const hwnas_graph *graph);
/* Makes it ready for a request of `n` networks. HWNAS_E_UNSUPPORTED: one has a larger batch than
 * the runner takes; nothing was sent. */
HWNAS_CHECKED hwnas_status hwnas_runner_make_ready_for(hwnas_runner *r,
                                                       const hwnas_graph *const *graphs, int n,
                                                       const hwnas_measure_options *options);

/* ---- runner_orders.c ---- */

/* NULL: it has not been asked for. */
hwnas_order *hwnas_orders_find(const hwnas_runner *r, const hwnas_graph *graph,
                               hwnas_precision precision);
/* Puts one at the end; the runner has said what it can. Borrowed. */
HWNAS_CHECKED hwnas_status hwnas_orders_add(hwnas_order **out, hwnas_runner *r,
                                            const hwnas_graph *graph, bool with_steps,
                                            const hwnas_measure_options *options);
void hwnas_orders_remove(hwnas_runner *r, const hwnas_order *order); /* accepts NULL */
/* All that are not answered; ends a child that has heard of any. */
void hwnas_orders_drop(hwnas_runner *r);
/* All, at the end. */
void hwnas_orders_done(hwnas_runner *r);
/* The one that the runner answers next; NULL: none. Borrowed. */
hwnas_order *hwnas_orders_next(const hwnas_runner *r);
/* One that is not on the way yet goes before others that are not. */
void hwnas_orders_hurry(hwnas_runner *r, hwnas_order *order);
/* A new child has heard of none. */
void hwnas_orders_rewind(hwnas_runner *r);
/* Sends what can be sent without waiting; whether something is left that the runner would take. */
bool hwnas_orders_push(hwnas_runner *r);
/* Whether the runner has heard of more than the one that it answers next. */
bool hwnas_orders_are_ahead(const hwnas_runner *r);
bool hwnas_order_is_sent(const hwnas_order *order);
/* Whether it was sent while another was measured. */
bool hwnas_order_was_ahead(const hwnas_order *order);
bool hwnas_order_is_wanted(const hwnas_order *order);
bool hwnas_order_has_steps(const hwnas_order *order);
/* As it was asked for; who listens and stops is of `o`. */
hwnas_measure_options hwnas_order_options(const hwnas_order *order, const hwnas_measure_options *o);
/* Whether the runner was silent over it before. */
bool hwnas_order_note_silence(hwnas_order *order);
/* How it ended, before anybody asked: takes `answer`, the failure that is recorded, and the samples
 * of `r`. */
void hwnas_order_keep(hwnas_order *order, hwnas_runner *r, hwnas_status status, json_t *answer);
bool hwnas_order_is_answered(const hwnas_order *order);
/* What was kept, once; *out is yours. */
HWNAS_CHECKED hwnas_status hwnas_order_recall(json_t **out, hwnas_runner *r, hwnas_order *order);

/* Our environment with OpenMP's settings for a runner in it; yours to free with
 * hwnas_link_free_words(). */
char **hwnas_runner_environment(const char *device, int threads, const int *cores, int n_cores);
/* Starts a process bound to the cores, one for each of its threads when there are as many. */
HWNAS_CHECKED hwnas_status hwnas_runner_start_child(hwnas_runner *r, const int *cores, int n_cores);
/* Ends it, if there is one: politely when it is idle, at once when it is not. */
void hwnas_runner_end_child(hwnas_runner *r, bool at_once);
/* Takes what it has written to standard error. */
void hwnas_runner_drain_log(hwnas_runner *r);
/* It has ended without an answer, or is about to: why? Never HWNAS_OK. */
HWNAS_CHECKED hwnas_status hwnas_runner_classify_exit(hwnas_runner *r);

#endif
