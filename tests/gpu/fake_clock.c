/* fake_clock.c: see fake_clock.h. The stream is asynchronous: what is enqueued is computed at once,
 * but has its place in time behind what was enqueued before it, and the host goes on meanwhile. */
#include "fake_clock.h"

#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake_gpu.h"

enum { N_SPANS = 8192 };
static const double REST = 0.02; /* without work: the clock rate falls */

/* The GPU was busy without a pause. */
typedef struct span {
    double begin, end;
} span;

/* What several processes may share. */
static struct state {
    int lock;
    double now;               /* where time is virtual */
    double start, end;        /* of the GPU's time; of what is on the stream */
    double worked, worked_on; /* seconds of work: all, and since the last rest */
    double factor;            /* of the clock rate */
    unsigned limits;
    double settled; /* busy seconds in spans that are no longer kept */
    unsigned first, n;
    span spans[N_SPANS]; /* a ring */
} own, *state;
static double reached; /* by this process's own stream, on a GPU that others may share */

/* ---- Settings ---- */

static const struct {
    const char *name;
    size_t at;
} keys[] = {
#define KEY(NAME)                                                                                  \
    {                                                                                              \
#NAME, offsetof(fake_settings, NAME)                                                       \
    }
    KEY(is_virtual), KEY(values),    KEY(kernel),     KEY(cold),     KEY(launch),
    KEY(delay),      KEY(nvml),      KEY(tick),       KEY(idle),     KEY(busy),
    KEY(hertz),      KEY(ramp),      KEY(slowest),    KEY(cap_from), KEY(cap_until),
    KEY(cap),        KEY(heat_from), KEY(heat_until), KEY(heat),     KEY(event),
};

static void set(fake_settings *out, const char *name, size_t n, double value)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strlen(keys[i].name) == n && !strncmp(keys[i].name, name, n)) {
            memcpy((char *)out + keys[i].at, &value, sizeof value);
            return;
        }
    fprintf(stderr, "FAKE_GPU_SIMULATION has no '%.*s'\n", (int)n, name);
    abort();
}

static fake_settings parse(const char *text)
{
    fake_settings s = {.values = 1, .idle = 50, .busy = 300, .hertz = 1.5e9};
    while (text && *text) {
        const size_t n = strcspn(text, "=");
        char *end = NULL;
        set(&s, text, n, strtod(text + n + 1, &end));
        text = *end == ',' ? end + 1 : end;
    }
    return s;
}

const fake_settings *fake_simulation(void)
{
    static fake_settings settings;
    static char last[512] = "none yet";
    const char *text = getenv("FAKE_GPU_SIMULATION");
    text = text ? text : "";
    if (strcmp(text, last)) {
        settings = parse(text);
        snprintf(last, sizeof last, "%s", text);
    }
    return &settings;
}

/* ---- The host's time ---- */

static double host_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void open_state(void)
{
    const char *file = getenv("FAKE_GPU_SHARED");
    const int fd = file ? open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    state = &own;
    if (fd >= 0 && !ftruncate(fd, sizeof *state)) {
        void *shared = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        state = shared == MAP_FAILED ? &own : shared;
    }
    if (fd >= 0)
        close(fd);
}

static struct state *take(void)
{
    if (!state)
        open_state();
    while (__atomic_exchange_n(&state->lock, 1, __ATOMIC_ACQUIRE))
        sched_yield(); /* who has it may wait for this core */
    if (!state->start) {
        state->now = 1000;
        state->factor = 1;
        state->start = state->end = fake_simulation()->is_virtual ? state->now : host_clock();
    }
    return state;
}

static void give(struct state *s)
{
    __atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

static double clock_of(const struct state *s)
{
    return fake_simulation()->is_virtual ? s->now : host_clock();
}

EXPORT double fake_gpu_clock(void);
double fake_gpu_clock(void)
{
    return fake_clock();
}

double fake_clock(void)
{
    struct state *s = take();
    const double now = clock_of(s);
    give(s);
    return now;
}

static void sleep_until(double when)
{
    for (double left; (left = when - host_clock()) > 0;)
        nanosleep(&(struct timespec){.tv_sec = (time_t)left,
                                     .tv_nsec = (long)(1e9 * (left - floor(left)))},
                  NULL);
}

void fake_wait(double until)
{
    struct state *s = take();
    s->now = fmax(s->now, until);
    give(s);
    if (!fake_simulation()->is_virtual)
        sleep_until(until);
}

void fake_spend(double seconds)
{
    if (seconds > 0)
        fake_wait(fake_clock() + seconds);
}

/* For tests whose machine has this clock. */
EXPORT void fake_gpu_pause(double seconds);
void fake_gpu_pause(double seconds)
{
    fake_spend(seconds);
}

/* ---- The GPU's ---- */

enum { LIMIT_POWER = 0x04, LIMIT_HEAT = 0x40 };

static void set_rate(struct state *s, const fake_settings *f)
{
    s->factor = f->ramp > 0 ? f->slowest + (1 - f->slowest) * fmin(1, s->worked_on / f->ramp) : 1;
    s->limits = 0;
    if (s->worked >= f->cap_from && s->worked < f->cap_until) {
        s->factor *= f->cap;
        s->limits |= LIMIT_POWER;
    }
    if (s->worked >= f->heat_from && s->worked < f->heat_until) {
        s->factor *= f->heat;
        s->limits |= LIMIT_HEAT;
    }
}

static void add_span(struct state *s, double begin, double end)
{
    span *last = &s->spans[(s->first + s->n - 1) % N_SPANS];
    if (s->n && begin - last->end < 1e-12) {
        last->end = end;
        return;
    }
    if (s->n == N_SPANS) {
        s->settled += s->spans[s->first].end - s->spans[s->first].begin;
        s->first = (s->first + 1) % N_SPANS;
        s->n--;
    }
    s->spans[(s->first + s->n++) % N_SPANS] = (span){begin, end};
}

void fake_work(double seconds, bool is_first)
{
    const fake_settings *f = fake_simulation();
    struct state *s = take();
    const double soonest = clock_of(s) + (is_first ? f->delay : 0);
    const double begin = is_first ? fmax(s->end, soonest) : s->end;
    if (begin - s->end > REST)
        s->worked_on = 0;
    set_rate(s, f);
    seconds /= s->factor;
    s->end = begin + seconds;
    s->worked += seconds;
    s->worked_on += seconds;
    add_span(s, begin, s->end);
    reached = s->end;
    give(s);
}

double fake_stream_end(void)
{
    struct state *s = take();
    const double end = fmax(reached, clock_of(s));
    give(s);
    return end;
}

unsigned fake_limits(void)
{
    struct state *s = take();
    const unsigned limits = s->limits;
    give(s);
    return limits;
}

double fake_hertz(void)
{
    struct state *s = take();
    const double hertz = s->factor * fake_simulation()->hertz;
    give(s);
    return hertz;
}

double fake_joules(void)
{
    const fake_settings *f = fake_simulation();
    struct state *s = take();
    double now = clock_of(s) - s->start;
    if (f->tick > 0)
        now = floor(now / f->tick) * f->tick;
    double busy = s->settled;
    for (unsigned i = 0; i < s->n; i++) {
        const span *one = &s->spans[(s->first + i) % N_SPANS];
        busy += fmax(0, fmin(one->end - s->start, now) - (one->begin - s->start));
    }
    give(s);
    return f->idle * now + (f->busy - f->idle) * busy;
}

/* As if it were new. */
EXPORT void fake_gpu_restart(void);
void fake_gpu_restart(void)
{
    struct state *s = take();
    memset(s, 0, sizeof *s);
    reached = 0;
}
