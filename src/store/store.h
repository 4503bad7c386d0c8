/* store.h: a study that survives: what was asked, what came of it.
 *
 * One SQLite file (WAL), or a schema in PostgreSQL; each call that changes something is one
 * transaction, durable against the death of the process when it returns. A trial is written when it
 * is asked (`running`) and again when it is finished, so nothing finished is lost and what was
 * running is known. */
#ifndef HWNAS_STORE_STORE_H
#define HWNAS_STORE_STORE_H

#include "trial/trial.h"

typedef struct hwnas_store hwnas_store;

typedef enum hwnas_store_mode {
    HWNAS_STORE_CREATE,  /* must not exist yet: HWNAS_E_INPUT, hint --resume */
    HWNAS_STORE_REPLACE, /* makes a draft; one of ours that exists stays until it is published */
    HWNAS_STORE_RESUME,  /* must exist and be one of ours of this version */
    HWNAS_STORE_READ,
    HWNAS_STORE_SHARE, /* several may change it at once (leases.h); is created where it is not
                          there */
} hwnas_store_mode;

/* What happened to a trial, in the order in which it did. */
typedef enum hwnas_event_kind {
    HWNAS_EVENT_FINISHED, /* measured, estimated or failed */
    HWNAS_EVENT_REVISED,  /* measured or trained; it was estimated or predicted before */
    HWNAS_EVENT_PUT_OFF,  /* it was to be measured, and the machine was disturbed */
    HWNAS_EVENT_ASKED,    /* given to another program, which may hold several at a time */
    HWNAS_N_EVENT_KINDS
} hwnas_event_kind;

/* Opens the study `path`: an SQLite file or, as postgresql://HOST/DATABASE?study=NAME, a schema of
 * a PostgreSQL database. Not a database, another program's database, a newer or older schema, a
 * truncated file: HWNAS_E_INPUT with a hint. */
HWNAS_CHECKED hwnas_status hwnas_store_open(hwnas_store **out, const char *path,
                                            hwnas_store_mode mode);
void hwnas_store_close(hwnas_store *store);
/* Whether it is kept by a server, which other machines reach, and which may be away for a while. */
bool hwnas_store_is_remote(const char *path);
/* Whether something of that name is there already. HWNAS_E_IO: its server is away, so nobody knows;
 * HWNAS_E_INPUT, HWNAS_E_UNSUPPORTED: an address that cannot be used, as of hwnas_store_open(). */
HWNAS_CHECKED hwnas_status hwnas_store_exists(bool *out, const char *path);
/* Whether some process, maybe this one, changes it at this moment. False as well where its server
 * does not say so: who opens the study then hears why. */
bool hwnas_store_is_held(const char *path);
/* Whether it is a draft: a study that is not in its place yet, and is deleted when it is closed. */
bool hwnas_store_is_draft(const hwnas_store *store);
/* Puts a draft into its place, with a new connection: nobody may borrow the old one. */
HWNAS_CHECKED hwnas_status hwnas_store_publish(hwnas_store *store);
/* Closes, and deletes what was just created. */
void hwnas_store_remove(hwnas_store *store);
/* Closes and deletes a study that was just created and has no trial. */
void hwnas_store_discard(hwnas_store *store);

/* The studies in a directory, or in the database of an address, by name, each as it can be opened;
 * yours to free, one by one. */
HWNAS_CHECKED hwnas_status hwnas_store_list(char ***out, size_t *n, const char *where);
HWNAS_CHECKED hwnas_status hwnas_store_count(uint64_t *n, uint64_t *n_finished, hwnas_store *store);
HWNAS_CHECKED hwnas_status hwnas_store_size(int64_t *bytes, hwnas_store *store);
/* Gives back the room of what was deleted and written anew. Of one that is open for changes. */
HWNAS_CHECKED hwnas_status hwnas_store_vacuum(hwnas_store *store);

/* Facts about the study: "job" (JSON), "space", "space_digest", "version", "device", ... */
HWNAS_CHECKED hwnas_status hwnas_store_set(hwnas_store *store, const char *key, const char *value);
/* NULL in `out` when it was never set; yours to free(). */
HWNAS_CHECKED hwnas_status hwnas_store_get(char **out, hwnas_store *store, const char *key);

const char *hwnas_store_path(const hwnas_store *store); /* borrowed */
/* An open study's connection, for tables of others beside its own; borrowed, until it is closed. */
struct hwnas_database *hwnas_store_database(const hwnas_store *store);

/* The changes until hwnas_store_end() are one transaction: all of them are written, or none, which
 * is so unless `status` is HWNAS_OK. It returns the status of all. */
HWNAS_CHECKED hwnas_status hwnas_store_begin(hwnas_store *store);
HWNAS_CHECKED hwnas_status hwnas_store_end(hwnas_store *store, hwnas_status status);

/* What is read until hwnas_store_end() is as it was at one moment, whatever others write
 * meanwhile; they do not wait for it. Nothing is changed. */
HWNAS_CHECKED hwnas_status hwnas_store_begin_reading(hwnas_store *store);

/* Records that a trial was asked. */
HWNAS_CHECKED hwnas_status hwnas_store_start(hwnas_store *store, uint64_t number, const char *code,
                                             const char *digest, int rung);
/* Records its end with all its values. `trial->order` is set. */
HWNAS_CHECKED hwnas_status hwnas_store_finish(hwnas_store *store, hwnas_trial *trial);

/* Writes a finished trial anew, as it was estimated and is measured now: values, status, message,
 * detail, seconds and violation; the order in which it finished stays. The history keeps what it
 * was before. */
HWNAS_CHECKED hwnas_status hwnas_store_revise(hwnas_store *store, const hwnas_trial *trial);
/* Records, of a trial that was started, that it was asked, or of a finished one that it was put
 * off: where that stands among the events matters. */
HWNAS_CHECKED hwnas_status hwnas_store_note(hwnas_store *store, uint64_t number,
                                            hwnas_event_kind kind);

/* All trials by number. `out` is an array of n, release with hwnas_trials_free(). */
HWNAS_CHECKED hwnas_status hwnas_store_trials(hwnas_trial **out, size_t *n, hwnas_store *store);

enum { HWNAS_FEW = 8 };
/* The same of those of n numbers, 1 to HWNAS_FEW, that are there. */
HWNAS_CHECKED hwnas_status hwnas_store_few(hwnas_trial **out, size_t *n_out, hwnas_store *store,
                                           const uint64_t *numbers, size_t n);
/* One of them; release with hwnas_trial_done(). HWNAS_E_INPUT: it is not there. */
HWNAS_CHECKED hwnas_status hwnas_store_trial(hwnas_trial *out, hwnas_store *store, uint64_t number);

/* Whether a trial with a lower number has this code. */
HWNAS_CHECKED hwnas_status hwnas_store_has_code(bool *out, hwnas_store *store, const char *code,
                                                uint64_t below);

typedef struct hwnas_event {
    hwnas_event_kind kind;
    hwnas_trial trial;  /* as it was then; of one that was put off, the number; of one that was
                           asked, with code and digest */
    bool is_now;        /* no later event wrote the trial anew; false, too, where it is not known */
    double run_seconds; /* of its detail: inside runs of the network; 0: it was not run */
    double estimate;    /* of its detail: of the latency, before it was measured; NaN: none */
} hwnas_event;

/* Takes run_seconds and estimate from a trial's detail; NULL: it has none. */
void hwnas_event_read_detail(hwnas_event *event, const char *detail);

/* Is given an event, which lives until it returns. It may use the store. */
typedef hwnas_status hwnas_event_taker(void *context, const hwnas_event *event);

/* How many trials there are, with the numbers from 0 on, and how many finished, in an order without
 * gaps. HWNAS_E_INPUT: it is not so. */
HWNAS_CHECKED hwnas_status hwnas_store_extent(uint64_t *n, uint64_t *n_finished,
                                              hwnas_store *store);
/* Gives what happened after *position, which becomes that of the last event, in its order; from 0
 * on all of it, and then it is checked that it fits the trials. A strategy that is told the trials
 * of a history as they were knows what the one knew that was there. Trials have no detail and no
 * seconds where many events are read at once. */
HWNAS_CHECKED hwnas_status hwnas_store_walk(int64_t *position, hwnas_store *store,
                                            hwnas_event_taker *take, void *context);
/* The trials that were asked and are not finished, by number: number, code, digest and rung;
 * release with hwnas_trials_free(). */
HWNAS_CHECKED hwnas_status hwnas_store_running(hwnas_trial **out, size_t *n, hwnas_store *store);
/* Packs what an older hwnas wrote, so that it is read as fast as what is written now. */
HWNAS_CHECKED hwnas_status hwnas_store_pack(hwnas_store *store);
/* Of the last event; 0: there is none. */
HWNAS_CHECKED hwnas_status hwnas_store_position(int64_t *out, hwnas_store *store);

/* Records values of a finished trial that were measured again (metric, value, low, high, rounds).
 * The first ones stay: hwnas_store_trials() gives those, as what a strategy did follows from them.
 */
HWNAS_CHECKED hwnas_status hwnas_store_again(hwnas_store *store, uint64_t number,
                                             const hwnas_value_row *values, size_t n);
/* Puts what was measured again into all trials of a study, by number, in the place of the first. */
HWNAS_CHECKED hwnas_status hwnas_store_replace(hwnas_trial *trials, size_t n, hwnas_store *store);

#endif
