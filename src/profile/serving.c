#include "profile/serving.h"

#include <math.h>

/* A search for a rate looks at so many of them, each this much lower than the last: down to 1e-6.
 */
enum { N_RATES = 700, N_HALVINGS = 60 };
static const double RATE_STEP = 0.98;

/* Probability that a request has to wait for one of c servers under a load of a erlangs: Erlang's C
 * (1917), through the recursion of his B. */
static double erlang_c(int c, double a)
{
    double b = 1;
    for (int k = 1; k <= c; k++)
        b = a * b / (k + a * b);
    const double rho = a / c;
    return b / (1 - rho + rho * b);
}

/* Probability that the batch of a request is not full after t gaps. The request has the same chance
 * of every place in its batch, and the k that follow it come as a Poisson stream: the mean of
 * Erlang tails over k = 0 ... batch - 1. In logarithms, as exp(-t) of a large batch is 0. */
static double unfilled(int batch, double t)
{
    double log_term = -t, sum = 0, total = 0;
    for (int k = 1; k < batch; k++) {
        sum += exp(log_term);
        total += sum;
        log_term += log(t / k);
    }
    return total / batch;
}

double hwnas_serving_fill(int batch, double percentile)
{
    const double tail = 1 - percentile, mean = 0.5 * (batch - 1);
    double low = 0, high = batch;
    if (batch == 1)
        return 0;
    while (unfilled(batch, high) > tail)
        high *= 2;
    for (int i = 0; i < N_HALVINGS; i++) {
        const double middle = 0.5 * (low + high);
        if (unfilled(batch, middle) > tail)
            low = middle;
        else
            high = middle;
    }
    return fmax(high, mean); /* a median may be 0, as the last of a batch does not wait */
}

/* Batches come with Erlang-distributed gaps (squared variation 1/batch) to servers of constant
 * time: Allen and Cunneen's mean for G/G/c (Allen, Probability, Statistics and Queueing Theory, 2nd
 * ed., 1990, section 5.5), with Cosmetatos' correction for constant service (Operational Research
 * Quarterly 27, 1976, 615-620), on the exponential tail of M/M/c. */
static double wait_time(const hwnas_service *s, double rho)
{
    const int c = s->streams;
    const double served = c * s->batch / s->items_per_second; /* seconds of a batch, on average */
    const double correction = 1 + (1 - rho) * (c - 1) * (sqrt(4 + 5.0 * c) - 2) / (16 * rho * c);
    const double c_of_wait = erlang_c(c, c * rho);
    const double scale = served / c / (1 - rho) * correction / (2.0 * s->batch);
    const double tail = 1 - s->percentile;
    const double mean = c_of_wait * scale;
    return c_of_wait > tail ? fmax(scale * log(c_of_wait / tail), mean) : mean;
}

hwnas_response hwnas_serving_response(const hwnas_service *service, double rate)
{
    hwnas_response r = {.service = service->seconds};
    const double rho = rate / service->items_per_second;
    r.fill = service->batch == 1 ? 0 : service->fill / rate;
    r.wait = rho >= 1 ? INFINITY : rho > 0 ? wait_time(service, rho) : 0;
    r.total = r.fill + r.wait + r.service;
    return r;
}

/* Filling gets faster with the rate, waiting slower, so the rates that keep the target are those
 * between two: the upper one is looked for from above. */
double hwnas_serving_rate(const hwnas_service *service, double target, double utilisation)
{
    double high = utilisation * service->items_per_second, low = high;
    int i = 0;
    for (; i < N_RATES && hwnas_serving_response(service, low).total > target; i++) {
        high = low;
        low *= RATE_STEP;
    }
    if (i == N_RATES)
        return 0;
    for (int k = 0; i > 0 && k < N_HALVINGS; k++) {
        const double middle = 0.5 * (low + high);
        if (hwnas_serving_response(service, middle).total > target)
            high = middle;
        else
            low = middle;
    }
    return low;
}

long hwnas_serving_machines(const hwnas_service *service, double load, double target,
                            double utilisation)
{
    const double rate = hwnas_serving_rate(service, target, utilisation);
    if (rate <= 0)
        return 0;
    /* A load of exactly n machines is not n + 1 of them by rounding. */
    const double n = fmax(1, ceil(load / rate * (1 - 1e-9)));
    const double slack = 1 + 1e-9;
    if (n > HWNAS_SERVING_MACHINES)
        return HWNAS_SERVING_MACHINES + 1;
    return hwnas_serving_response(service, load / n).total > target * slack ? 0 : (long)n;
}
