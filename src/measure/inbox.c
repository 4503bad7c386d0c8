#define _GNU_SOURCE 1 /* sched_setaffinity() */
#include "measure/inbox.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "device/device.h"
#include "measure/cores.h"
#include "measure/priority.h"
#include "measure/wire.h"
#include "onnx/onnx.h"

enum {
    MOST_AHEAD = 64 << 20, /* bytes; a longer request stays in the pipe */
    CHUNK = 64 << 10,
};

static const double LOOK_SECONDS = 10e-3; /* between two looks at who holds the cores */

struct hwnas_inbox {
    int fd, wake; /* what wakes the thread out of waiting for `fd` */
    bool has_thread;
    pthread_t thread;
    hwnas_device *device;
    int n_cores, cores[HWNAS_MAX_CORES];
    cpu_set_t bound;    /* those of them that the thread is on */
    double looked_when; /* the thread's */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t change;
    bool is_up, is_over; /* the thread: it has begun, it is to end */
    bool is_open;        /* a network is measured */
    bool is_odd;         /* nothing more can be read ahead of what is in `bytes` */
    bool is_done;        /* with the request in `bytes` */
    bool has_prepared;
    size_t n; /* bytes that were read ahead */
    unsigned char *bytes;
};

hwnas_inbox *hwnas_inbox_new(int fd)
{
    hwnas_inbox *inbox = hwnas_alloc(sizeof *inbox);
    inbox->fd = fd;
    inbox->wake = -1;
    pthread_mutex_init(&inbox->lock, NULL);
    pthread_cond_init(&inbox->change, NULL);
    return inbox;
}

void hwnas_inbox_free(hwnas_inbox *inbox)
{
    hwnas_inbox_rest(inbox);
    pthread_cond_destroy(&inbox->change);
    pthread_mutex_destroy(&inbox->lock);
    free(inbox->bytes);
    free(inbox);
}

/* ---- The parent's bytes, in their turn ---- */

static size_t take_ahead(hwnas_inbox *inbox, void *out, size_t n)
{
    pthread_mutex_lock(&inbox->lock);
    n = n < inbox->n ? n : inbox->n;
    if (n) {
        memcpy(out, inbox->bytes, n);
        inbox->n -= n;
        memmove(inbox->bytes, inbox->bytes + n, inbox->n);
    }
    inbox->is_done = inbox->is_odd = false;
    pthread_mutex_unlock(&inbox->lock);
    return n;
}

hwnas_status hwnas_inbox_read(hwnas_inbox *inbox, void *out, size_t n)
{
    for (size_t done = take_ahead(inbox, out, n); done < n;) {
        const ssize_t got = read(inbox->fd, (char *)out + done, n - done);
        if (got == 0)
            return hwnas_fail(HWNAS_E_NOT_FOUND, NULL, "the parent has gone");
        if (got > 0)
            done += (size_t)got;
        else if (errno != EINTR)
            return hwnas_fail(HWNAS_E_IO, NULL, "cannot read from the parent: %s", strerror(errno));
    }
    return HWNAS_OK;
}

/* ---- Ahead ---- */

/* One request: a frame MEASURE and a frame GRAPH. */
typedef struct request {
    size_t text, graph; /* where the payloads begin */
    size_t n_text, n_graph;
} request;

/* How many bytes are wanted next, behind those that are there; 0: the request is whole, or
 * `is_odd`. */
static size_t read_heads(request *out, hwnas_inbox *inbox)
{
    size_t at = 0;
    for (int i = 0; i < 2; i++) {
        hwnas_wire_frame frame;
        if (inbox->n < at + HWNAS_FRAME_HEAD)
            return at + HWNAS_FRAME_HEAD - inbox->n;
        if (!hwnas_frame_decode(&frame, inbox->bytes + at) ||
            frame.type != (i ? HWNAS_FRAME_GRAPH : HWNAS_FRAME_MEASURE) ||
            frame.length > MOST_AHEAD) {
            inbox->is_odd = true;
            return 0;
        }
        *(i ? &out->graph : &out->text) = at + HWNAS_FRAME_HEAD;
        *(i ? &out->n_graph : &out->n_text) = (size_t)frame.length;
        at += HWNAS_FRAME_HEAD + (size_t)frame.length;
        if (inbox->n < at)
            return at - inbox->n;
    }
    return 0;
}

static bool is_readable(const hwnas_inbox *inbox, int timeout)
{
    struct pollfd p[] = {{.fd = inbox->fd, .events = POLLIN},
                         {.fd = inbox->wake, .events = POLLIN}};
    return poll(p, 2, timeout) > 0 && p[0].revents;
}

bool hwnas_inbox_has_more(hwnas_inbox *inbox, double seconds)
{
    pthread_mutex_lock(&inbox->lock);
    const bool is_there = inbox->n > 0;
    pthread_mutex_unlock(&inbox->lock);
    return is_there || is_readable(inbox, (int)(1e3 * seconds));
}

/* At most `n` more, if they are there; the end of all is for whoever reads in turn. */
static void read_some(hwnas_inbox *inbox, size_t n)
{
    const size_t room = n < CHUNK ? n : CHUNK;
    void *bytes = realloc(inbox->bytes, inbox->n + room);
    if (bytes)
        inbox->bytes = bytes;
    const ssize_t got = bytes ? read(inbox->fd, inbox->bytes + inbox->n, room) : 0;
    if (got > 0)
        inbox->n += (size_t)got;
    else if (got == 0 || errno != EINTR)
        inbox->is_odd = true;
}

/* Binds the thread to the cores that nobody uses; false where there are none. */
static bool find_room(hwnas_inbox *inbox)
{
    cpu_set_t room;
    CPU_ZERO(&room);
    for (int i = 0; i < inbox->n_cores; i++)
        if (!hwnas_core_is_in_use(inbox->cores[i]))
            CPU_SET((size_t)inbox->cores[i], &room);
    inbox->looked_when = hwnas_now();
    if (!CPU_COUNT(&room))
        return false;
    if (!CPU_EQUAL(&room, &inbox->bound) && !sched_setaffinity(0, sizeof room, &room))
        inbox->bound = room;
    return true;
}

/* Asked by the thread, between two plans. */
static bool goes_on(void *context)
{
    hwnas_inbox *inbox = context;
    pthread_mutex_lock(&inbox->lock);
    const bool is_open = inbox->is_open && !inbox->is_over;
    pthread_mutex_unlock(&inbox->lock);
    return is_open && (hwnas_now() - inbox->looked_when < LOOK_SECONDS || find_room(inbox));
}

/* Of a request for one measurement; copies, races and checks are others. */
static bool read_options(hwnas_measure_options *out, const char *text, size_t n)
{
    json_t *object = json_loadb(text, n, 0, NULL);
    const bool is_one = !json_is_true(json_object_get(object, "is_copy")) &&
                        !json_object_get(object, "race") && !json_object_get(object, "verify") &&
                        hwnas_wire_read_options(out, object);
    json_decref(object);
    return is_one;
}

/* Takes the network's bytes. */
static void prepare(hwnas_inbox *inbox, void *onnx, size_t n, const hwnas_measure_options *options)
{
    hwnas_graph *raw = NULL, *graph = NULL;
    hwnas_status status = hwnas_onnx_take(&raw, "the next candidate", &onnx, n);
    if (status == HWNAS_OK)
        status = hwnas_exec_form(&graph, raw, &options->exec);
    if (status == HWNAS_OK && find_room(inbox))
        hwnas_device_prepare(inbox->device, graph, &options->exec, goes_on, inbox);
    if (status != HWNAS_OK)
        hwnas_error_clear();
    hwnas_graph_free(graph);
    hwnas_graph_free(raw);
    free(onnx);
}

/* The request as it is now, on a copy: in its turn it is read again. Lets go of the lock
 * meanwhile. */
static void do_ahead(hwnas_inbox *inbox, const request *r)
{
    hwnas_measure_options options;
    void *onnx = NULL;
    const char *text = (const char *)inbox->bytes + r->text;
    const bool is_good = read_options(&options, text, r->n_text) && (onnx = malloc(r->n_graph + 1));
    inbox->is_done = true;
    if (!is_good)
        return;
    memcpy(onnx, inbox->bytes + r->graph, r->n_graph);
    ((char *)onnx)[r->n_graph] = '\0';
    inbox->has_prepared = true;
    pthread_mutex_unlock(&inbox->lock);
    prepare(inbox, onnx, r->n_graph, &options);
    pthread_mutex_lock(&inbox->lock);
}

static void *help(void *context)
{
    hwnas_inbox *inbox = context;
    CPU_ZERO(&inbox->bound);
    for (int i = 0; i < inbox->n_cores; i++)
        CPU_SET((size_t)inbox->cores[i], &inbox->bound);
    sched_setaffinity(0, sizeof inbox->bound, &inbox->bound);
    hwnas_priority_stand_by(inbox->cores, inbox->n_cores);
    pthread_mutex_lock(&inbox->lock);
    inbox->is_up = true;
    pthread_cond_broadcast(&inbox->change);
    while (!inbox->is_over) {
        request r;
        size_t wanted = 0;
        if (inbox->is_open && !inbox->is_odd && !inbox->is_done &&
            !(wanted = read_heads(&r, inbox)) && !inbox->is_odd) {
            do_ahead(inbox, &r);
        } else if (!wanted) {
            pthread_cond_wait(&inbox->change, &inbox->lock);
        } else {
            pthread_mutex_unlock(&inbox->lock);
            is_readable(inbox, -1);
            pthread_mutex_lock(&inbox->lock);
            /* By now another thread may read, or may have read. */
            if (inbox->is_open && is_readable(inbox, 0))
                read_some(inbox, wanted);
        }
    }
    pthread_mutex_unlock(&inbox->lock);
    return NULL;
}

static bool is_among(const int *numbers, int n, int number)
{
    for (int i = 0; i < n; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

int hwnas_inbox_help(hwnas_inbox *inbox, hwnas_device *device, const int *cores, int n,
                      const int *taken, int n_taken)
{
    if (inbox->has_thread)
        return inbox->n_cores;
    inbox->n_cores = 0;
    for (int i = 0; i < n && i < HWNAS_MAX_CORES; i++)
        if (cores[i] >= 0 && cores[i] < CPU_SETSIZE && !is_among(taken, n_taken, cores[i]))
            inbox->cores[inbox->n_cores++] = cores[i];
    if (!inbox->n_cores)
        return 0;
    inbox->device = device;
    inbox->is_up = inbox->is_over = inbox->is_open = false;
    inbox->wake = eventfd(0, EFD_CLOEXEC);
    inbox->has_thread = inbox->wake >= 0 && !pthread_create(&inbox->thread, NULL, help, inbox);
    pthread_mutex_lock(&inbox->lock);
    while (inbox->has_thread && !inbox->is_up)
        pthread_cond_wait(&inbox->change, &inbox->lock);
    pthread_mutex_unlock(&inbox->lock);
    return inbox->has_thread ? inbox->n_cores : 0;
}

void hwnas_inbox_rest(hwnas_inbox *inbox)
{
    if (inbox->has_thread) {
        pthread_mutex_lock(&inbox->lock);
        inbox->is_over = true;
        pthread_cond_broadcast(&inbox->change);
        pthread_mutex_unlock(&inbox->lock);
        eventfd_write(inbox->wake, 1);
        pthread_join(inbox->thread, NULL);
        hwnas_priority_nobody_stands_by();
        inbox->has_thread = false;
    }
    if (inbox->wake >= 0)
        close(inbox->wake);
    inbox->wake = -1;
}

static void set_open(hwnas_inbox *inbox, bool is_open)
{
    pthread_mutex_lock(&inbox->lock);
    inbox->is_open = is_open;
    pthread_cond_broadcast(&inbox->change);
    pthread_mutex_unlock(&inbox->lock);
}

void hwnas_inbox_begin(hwnas_inbox *inbox)
{
    set_open(inbox, true);
}

void hwnas_inbox_end(hwnas_inbox *inbox)
{
    set_open(inbox, false);
}

bool hwnas_inbox_has_prepared(hwnas_inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    const bool has_prepared = inbox->has_prepared;
    pthread_mutex_unlock(&inbox->lock);
    return has_prepared;
}
