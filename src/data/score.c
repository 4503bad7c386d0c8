#include "data/score.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "data/array_file.h"
#include "graph/op.h"

enum { IGNORED = -100 }; /* as PyTorch's cross_entropy() has it */

/* The normal distribution's 97.5 % quantile. */
static const double Z = 1.959963984540054;

static const char *const names[HWNAS_N_TASKS] = {
    [HWNAS_TASK_AUTO] = "auto",     [HWNAS_TASK_CLASSIFY] = "classify",
    [HWNAS_TASK_TOKENS] = "tokens", [HWNAS_TASK_REGRESS] = "regress",
    [HWNAS_TASK_NONE] = "none",
};

const char *hwnas_task_name(hwnas_task task)
{
    return names[task];
}

hwnas_status hwnas_task_find(hwnas_task *out, const char *name)
{
    for (int task = 0; task < HWNAS_TASK_NONE; task++)
        if (!strcmp(name, names[task])) {
            *out = (hwnas_task)task;
            return HWNAS_OK;
        }
    return hwnas_fail(HWNAS_E_USAGE, NULL,
                      "there is no task '%s'; there are classify, tokens, regress and auto", name);
}

/* ---- What is compared with what ---- */

static int64_t product(int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    return n;
}

/* The classes are the one dimension of outputs that is not 1. */
static bool are_classes(int rank, const int64_t *dims)
{
    int n = 0;
    for (int i = 0; i < rank; i++)
        n += dims[i] != 1;
    return n == 1;
}

static hwnas_status do_not_fit(int output_rank, const int64_t *output_dims, int label_rank,
                               const int64_t *label_dims, hwnas_task asked)
{
    char *output = hwnas_dims_text(output_rank, output_dims);
    char *label = hwnas_dims_text(label_rank, label_dims);
    const hwnas_status status = hwnas_fail(
        HWNAS_E_INPUT, NULL,
        "the network gives %s for a sample, a label is %s: these do not fit%s%s", output, label,
        asked == HWNAS_TASK_AUTO ? "" : " the task ", asked == HWNAS_TASK_AUTO ? "" : names[asked]);
    free(output);
    free(label);
    return hwnas_hint(status,
                      "a class number for each sample, one for each position of (positions, "
                      "classes), or as many numbers as the output has (one-hot: "
                      "y.argmax(1))");
}

bool hwnas_gives_probabilities(const hwnas_graph *graph)
{
    const int producer = graph->tensors[graph->outputs[0]].producer;
    return producer >= 0 && graph->nodes[producer].op->id == HWNAS_OP_SOFTMAX;
}

hwnas_status hwnas_score_settle(hwnas_score_shape *out, int output_rank, const int64_t *output_dims,
                                int label_rank, const int64_t *label_dims)
{
    const int64_t n_outputs = product(output_rank, output_dims);
    const bool is_sequence = output_rank == 2;
    const hwnas_task asked = out->task;
    if (label_rank < 0) {
        const bool has_classes = are_classes(output_rank, output_dims);
        out->task = HWNAS_TASK_NONE;
        out->positions = has_classes ? 1 : is_sequence ? output_dims[0] : 0;
        out->values = has_classes || !is_sequence ? n_outputs : output_dims[1];
        return HWNAS_OK;
    }
    const int64_t n_labels = product(label_rank, label_dims);
    const bool can[HWNAS_N_TASKS] = {
        [HWNAS_TASK_CLASSIFY] = n_labels == 1 && are_classes(output_rank, output_dims),
        [HWNAS_TASK_TOKENS] = is_sequence && output_dims[1] > 1 && n_labels == output_dims[0],
        [HWNAS_TASK_REGRESS] = n_labels == n_outputs,
    };
    for (int task = HWNAS_TASK_CLASSIFY; out->task == HWNAS_TASK_AUTO && task < HWNAS_TASK_NONE;
         task++)
        if (can[task])
            out->task = (hwnas_task)task;
    if (!can[out->task]) {
        out->task = asked;
        return do_not_fit(output_rank, output_dims, label_rank, label_dims, asked);
    }
    out->positions = out->task == HWNAS_TASK_TOKENS ? n_labels : 1;
    out->values = n_outputs / out->positions;
    return HWNAS_OK;
}

/* ---- Intervals ---- */

hwnas_estimate_95 hwnas_share_interval(double count, double n)
{
    if (!(n > 0))
        return (hwnas_estimate_95){NAN, NAN, NAN};
    const double p = count / n, zz = Z * Z;
    const double centre = (p + zz / (2 * n)) / (1 + zz / n);
    const double half = Z * sqrt(p * (1 - p) / n + zz / (4 * n * n)) / (1 + zz / n);
    return (hwnas_estimate_95){p, fmax(0, centre - half), fmin(1, centre + half)};
}

void hwnas_ratio_add(hwnas_ratio *ratio, double a, double b)
{
    ratio->n += 1;
    ratio->a += a;
    ratio->b += b;
    ratio->aa += a * a;
    ratio->ab += a * b;
    ratio->bb += b * b;
}

hwnas_estimate_95 hwnas_ratio_interval(const hwnas_ratio *ratio)
{
    const double r = ratio->a / ratio->b;
    hwnas_estimate_95 out = {r, NAN, NAN};
    if (ratio->n < 2 || !(ratio->b != 0))
        return out;
    /* a - r b has the mean 0. */
    const double squares = ratio->aa - 2 * r * ratio->ab + r * r * ratio->bb;
    const double variance = fmax(0, squares) / (ratio->n - 1);
    const double half = Z * sqrt(variance * ratio->n) / fabs(ratio->b);
    out.low = r - half;
    out.high = r + half;
    return out;
}

/* ---- Labels ---- */

void hwnas_score_init(hwnas_scoring *score, hwnas_score_shape shape)
{
    *score = (hwnas_scoring){.shape = shape};
}

void hwnas_score_done(hwnas_scoring *score)
{
    free(score->squares);
    free(score->targets);
}

static bool are_finite(const float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

/* How many classes come before this one; a NaN comes before none. */
static int64_t rank_of(const float *values, int64_t n, int64_t label)
{
    int64_t before = 0;
    for (int64_t i = 0; i < n; i++)
        before += values[i] > values[label] || (values[i] == values[label] && i < label);
    return isnan(values[label]) ? n : before;
}

/* Minus the logarithm of the label's probability, through the greatest, so that nothing overflows.
 */
static double cross_entropy(const float *values, int64_t n, int64_t label, bool are_probabilities)
{
    double greatest = (double)values[0], sum = 0;
    if (are_probabilities)
        return -log((double)values[label]);
    for (int64_t i = 1; i < n; i++)
        greatest = fmax(greatest, (double)values[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp((double)values[i] - greatest);
    return log(sum) - ((double)values[label] - greatest);
}

hwnas_status hwnas_score_check_labels(const hwnas_scoring *s, const double *labels, int64_t n)
{
    const int64_t per = s->shape.task == HWNAS_TASK_REGRESS ? s->shape.values : s->shape.positions;
    for (int64_t i = 0; i < n * per; i++) {
        const double y = labels[i];
        const int64_t sample = s->n + i / per;
        const bool is_class = y >= 0 && y < (double)s->shape.values && y == floor(y);
        if (s->shape.task == HWNAS_TASK_REGRESS && !isfinite(y))
            return hwnas_fail(HWNAS_E_INPUT, NULL, "the label of sample %" PRId64 " is %g", sample,
                              y);
        if (s->shape.task == HWNAS_TASK_REGRESS || is_class ||
            (s->shape.task == HWNAS_TASK_TOKENS && y == IGNORED))
            continue;
        const hwnas_status status = hwnas_fail(HWNAS_E_INPUT, NULL,
                                               "the label of sample %" PRId64
                                               " is %g; the network has the classes 0 to %" PRId64,
                                               sample, y, s->shape.values - 1);
        return y == (double)s->shape.values
                   ? hwnas_hint(status, "do they count from 1? subtract 1")
                   : hwnas_hint(status, "labels are numbers of classes, counted from 0");
    }
    return HWNAS_OK;
}

static void add_classes(hwnas_scoring *s, const float *outputs, const double *labels)
{
    const int64_t classes = s->shape.values;
    double n = 0, right = 0, right5 = 0, loss = 0;
    for (int64_t k = 0; k < s->shape.positions; k++, outputs += classes) {
        if (labels[k] == IGNORED)
            continue;
        const int64_t label = (int64_t)labels[k], rank = rank_of(outputs, classes, label);
        n++;
        right += rank < 1;
        right5 += rank < 5;
        loss += cross_entropy(outputs, classes, label, s->shape.are_probabilities);
    }
    s->right += right;
    s->right5 += right5;
    hwnas_ratio_add(&s->top1, right, n);
    hwnas_ratio_add(&s->top5, right5, n);
    hwnas_ratio_add(&s->loss, loss, n);
}

static hwnas_status make_room(hwnas_scoring *s)
{
    if ((size_t)s->n < s->capacity)
        return HWNAS_OK;
    const size_t capacity = s->capacity ? 2 * s->capacity : 1024, k = (size_t)s->shape.values;
    double *squares = realloc(s->squares, capacity * sizeof *squares);
    s->squares = squares ? squares : s->squares;
    double *targets = realloc(s->targets, capacity * k * sizeof *targets);
    s->targets = targets ? targets : s->targets;
    if (!squares || !targets)
        return hwnas_fail(HWNAS_E_MEMORY, NULL, "no memory for the labels of %zu samples",
                          capacity);
    s->capacity = capacity;
    return HWNAS_OK;
}

static hwnas_status add_numbers(hwnas_scoring *s, const float *outputs, const double *labels)
{
    const int64_t n = s->shape.values;
    double square = 0, absolute = 0;
    TRY(make_room(s));
    for (int64_t i = 0; i < n; i++) {
        const double error = (double)outputs[i] - labels[i];
        square += error * error;
        absolute += fabs(error);
    }
    s->squares[s->n] = square;
    memcpy(s->targets + s->n * n, labels, (size_t)n * sizeof *labels);
    hwnas_ratio_add(&s->square, square / (double)n, 1);
    hwnas_ratio_add(&s->absolute, absolute / (double)n, 1);
    return HWNAS_OK;
}

hwnas_status hwnas_score_add(hwnas_scoring *score, const float *outputs, const double *labels,
                             int64_t n)
{
    const bool are_numbers = score->shape.task == HWNAS_TASK_REGRESS;
    const int64_t n_outputs = score->shape.positions * score->shape.values;
    const int64_t n_labels = are_numbers ? score->shape.values : score->shape.positions;
    TRY(hwnas_score_check_labels(score, labels, n));
    for (int64_t k = 0; k < n; k++, outputs += n_outputs, labels += n_labels) {
        score->not_finite += !are_finite(outputs, n_outputs);
        if (are_numbers)
            TRY(add_numbers(score, outputs, labels));
        else
            add_classes(score, outputs, labels);
        score->n++;
    }
    return HWNAS_OK;
}

hwnas_estimate_95 hwnas_score_r2(const hwnas_scoring *score)
{
    const int64_t k = score->shape.values;
    /* From the first sample's labels, so that those of one value have exactly that mean. */
    double *means = hwnas_alloc((size_t)(k + 1) * sizeof *means);
    hwnas_ratio ratio = {0};
    for (int64_t i = 0; i < score->n * k; i++)
        means[i % k] += (score->targets[i] - score->targets[i % k]) / (double)score->n;
    for (int64_t i = 0; i < score->n; i++) {
        double deviation = 0;
        for (int64_t j = 0; j < k; j++) {
            const double label = score->targets[i * k + j];
            const double d = label - score->targets[j] - means[j];
            if (fabs(d) > DBL_EPSILON * fabs(label)) /* else it is rounding */
                deviation += d * d;
        }
        hwnas_ratio_add(&ratio, score->squares[i], deviation);
    }
    free(means);
    const hwnas_estimate_95 unexplained = hwnas_ratio_interval(&ratio);
    if (!(ratio.b > 0)) /* all labels are the same */
        return (hwnas_estimate_95){NAN, NAN, NAN};
    return (hwnas_estimate_95){1 - unexplained.value, 1 - unexplained.high, 1 - unexplained.low};
}

/* Whatever the outputs are. */
static bool is_r2_defined(const hwnas_score_shape *shape, const double *labels, int64_t n,
                          int64_t step)
{
    hwnas_scoring score;
    bool is_defined = true;
    float *zeros = hwnas_alloc((size_t)(shape->values + 1) * sizeof *zeros);
    hwnas_score_init(&score, *shape);
    for (int64_t i = 0; i < n && is_defined; i += step)
        is_defined = hwnas_score_add(&score, zeros, labels + i * shape->values, 1) == HWNAS_OK;
    is_defined = is_defined && isfinite(hwnas_score_r2(&score).value);
    hwnas_score_done(&score);
    free(zeros);
    return is_defined;
}

bool hwnas_score_is_defined(const hwnas_score_shape *shape, const double *labels, int64_t n,
                            int64_t step)
{
    if (shape->task == HWNAS_TASK_REGRESS)
        return is_r2_defined(shape, labels, n, step);
    bool counts = false;
    for (int64_t i = 0; i < n; i += step)
        for (int64_t k = 0; k < shape->positions; k++)
            counts |= labels[i * shape->positions + k] != IGNORED;
    return counts;
}

hwnas_estimate_95 hwnas_score_accuracy(const hwnas_scoring *score)
{
    const hwnas_estimate_95 e = score->shape.task == HWNAS_TASK_REGRESS ? hwnas_score_r2(score)
                                : score->shape.task == HWNAS_TASK_CLASSIFY
                                    ? hwnas_share_interval(score->right, (double)score->n)
                                    : hwnas_ratio_interval(&score->top1);
    return (hwnas_estimate_95){100 * e.value, 100 * e.low, 100 * e.high};
}

/* ---- Against an original ---- */

static int64_t first_greatest(const float *values, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (values[i] > values[best])
            best = i;
    return best;
}

void hwnas_agreement_add(hwnas_agreement *agreement, const float *outputs, const float *originals,
                         int64_t n)
{
    const int64_t positions = agreement->positions ? agreement->positions : 1;
    for (int64_t k = 0; k < n; k++) {
        double noise = 0, signal = 0, same = 0;
        for (int64_t p = 0; p < positions; p++) {
            for (int64_t i = 0; i < agreement->values; i++) {
                const double original = (double)originals[i];
                const double difference = (double)outputs[i] - original;
                noise += difference * difference;
                signal += original * original;
                if (isnan(difference) || fabs(difference) > agreement->largest)
                    agreement->largest = fabs(difference);
            }
            same += first_greatest(outputs, agreement->values) ==
                    first_greatest(originals, agreement->values);
            outputs += agreement->values;
            originals += agreement->values;
        }
        agreement->same += same;
        hwnas_ratio_add(&agreement->same_positions, same, (double)positions);
        hwnas_ratio_add(&agreement->noise, noise, signal);
        agreement->n++;
    }
}

hwnas_estimate_95 hwnas_agreement_sqnr(const hwnas_agreement *agreement)
{
    const hwnas_estimate_95 noise = hwnas_ratio_interval(&agreement->noise);
    if (agreement->noise.a == 0)
        return (hwnas_estimate_95){INFINITY, NAN, NAN};
    return (hwnas_estimate_95){-10 * log10(noise.value), -10 * log10(noise.high),
                               noise.low > 0 ? -10 * log10(noise.low) : NAN};
}
