/* test_results.c: what a user's trainings go through: the files of results and of curves, the
 * choice of what to train, vectors, programs. The command line's tests do the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/str.h"
#include "graph/elaborate.h"
#include "predict/curve.h"
#include "predict/epochs.h"
#include "predict/program.h"
#include "predict/results.h"
#include "predict/suggest.h"
#include "predict/supervise.h"
#include "predict/vector.h"
#include "space/table.h"

static char dir[] = "/tmp/test_results.XXXXXX";
static char path[64];

static hwnas_result result(const char *digit, const char *code, double value)
{
    hwnas_result r = {.code = (char *)code, .value = value, .sd = NAN, .seconds = 1.5};
    memset(r.digest.hex, *digit, sizeof r.digest.hex - 1);
    return r;
}

static void results_come_back(void **state)
{
    hwnas_results *a, *b;
    (void)state;
    unlink(path);
    assert_int_equal(hwnas_results_open(&a, path, "acc_pct"), HWNAS_OK);
    assert_false(hwnas_file_exists(path));
    hwnas_result rows[] = {result("1", "e=12,k=35", 91.25), result("2", "x", 1e-3)};
    rows[1].sd = 0.5;
    assert_int_equal(hwnas_results_add(a, rows, 2), HWNAS_OK);
    const hwnas_result again = result("1", "e=12,k=35", 92);
    assert_int_equal(hwnas_results_add(a, &again, 1), HWNAS_OK);
    assert_int_equal(hwnas_results_open(&b, path, "acc_pct"), HWNAS_OK);
    assert_int_equal(b->n, 3);
    assert_string_equal(b->rows[0].code, "e=12,k=35");
    assert_true(b->rows[0].value == 91.25 && isnan(b->rows[0].sd) && b->rows[0].seconds == 1.5);
    assert_true(b->rows[1].sd == 0.5);
    assert_int_equal(b->rows[1].line, 3);
    assert_true(hwnas_results_find(b, again.digest)->value == 92); /* the last of them */
    assert_null(hwnas_results_find(b, result("9", "", 0).digest));
    hwnas_results_close(a);
    hwnas_results_close(b);
    assert_int_equal(hwnas_results_open(&a, path, "loss"), HWNAS_E_INPUT);
}

/* A row of which the seconds alone may be cut counts. */
static size_t rows_before(const char *text, size_t cut)
{
    size_t n = 0, commas = 0;
    bool is_quoted = false;
    for (size_t i = 0; i < cut; i++) {
        is_quoted ^= text[i] == '"';
        commas = text[i] == '\n' ? 0 : commas + (text[i] == ',' && !is_quoted);
        n += text[i] == '\n';
    }
    return n ? n - 1 + (commas == 4) : 0;
}

static void compare_file(const char *want, size_t length)
{
    char *text;
    size_t n;
    assert_int_equal(hwnas_file_read(&text, &n, path, 1 << 20), HWNAS_OK);
    assert_int_equal(n, length);
    assert_memory_equal(text, want, length);
    free(text);
}

/* Whatever byte a writer died at, all rows before it are there, reading changes nothing, and the
 * next row is whole. */
static void a_torn_row_is_cut_off(void **state)
{
    char *text;
    size_t length;
    hwnas_results *r;
    (void)state;
    unlink(path);
    assert_int_equal(hwnas_results_open(&r, path, "acc"), HWNAS_OK);
    const hwnas_result rows[] = {result("1", "a,b", 1), result("2", "c", 2)};
    assert_int_equal(hwnas_results_add(r, rows, 2), HWNAS_OK);
    hwnas_results_close(r);
    assert_int_equal(hwnas_file_read(&text, &length, path, 1 << 20), HWNAS_OK);
    for (size_t cut = 0; cut < length; cut++) {
        const size_t n_whole = rows_before(text, cut);
        assert_int_equal(hwnas_file_write(path, text, cut), HWNAS_OK);
        assert_int_equal(hwnas_results_open(&r, path, "acc"), HWNAS_OK);
        compare_file(text, cut);
        assert_int_equal(r->n, n_whole);
        const hwnas_result next = result("3", "d", 3);
        assert_int_equal(hwnas_results_add(r, &next, 1), HWNAS_OK);
        hwnas_results_close(r);
        assert_int_equal(hwnas_results_open(&r, path, "acc"), HWNAS_OK);
        assert_int_equal(r->n, n_whole + 1);
        for (size_t i = 0; i < n_whole; i++)
            assert_true(r->rows[i].value == rows[i].value);
        assert_true(r->rows[n_whole].value == 3 && r->rows[n_whole].seconds == 1.5);
        hwnas_results_close(r);
    }
    free(text);
}

/* Text of others, with the header of results or without, is not changed by reading or refusing. */
static void files_of_others_stay(void **state)
{
    static const char digest[] = "0123456789abcdef0123456789abcdef";
    static const struct {
        const char *text, *row;
        hwnas_status status;
    } cases[] = {
        {"my notes\non trainings", "", HWNAS_E_INPUT},
        {"arch,acc\n", "", HWNAS_E_INPUT}, /* a header alone has columns too */
        {"code,digest,loss,sd,seconds\n", "", HWNAS_E_INPUT},
        {"code,digest,acc,sd,seconds\na, b", "", HWNAS_E_INPUT}, /* none of our rows, cut off */
        {"code,digest,acc,sd,seconds\nmine,", ",5,,", HWNAS_OK}, /* an editor ends it so */
        {"\xef\xbb\xbf"
         "code,digest,acc,sd,seconds\r\nmine,",
         ",5,,\r\n", HWNAS_OK},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hwnas_results *r;
        char *text = *cases[i].row ? hwnas_printf("%s%s%s", cases[i].text, digest, cases[i].row)
                                   : hwnas_strdup(cases[i].text);
        assert_int_equal(hwnas_file_write(path, text, strlen(text)), HWNAS_OK);
        assert_int_equal(hwnas_results_open(&r, path, "acc"), cases[i].status);
        compare_file(text, strlen(text));
        if (cases[i].status == HWNAS_OK) {
            const hwnas_result next = result("3", "d", 3);
            assert_int_equal(r->n, 1);
            assert_int_equal(hwnas_results_add(r, &next, 1), HWNAS_OK);
            hwnas_results_close(r);
            assert_int_equal(hwnas_results_open(&r, path, "acc"), HWNAS_OK);
            assert_int_equal(r->n, 2);
            assert_string_equal(r->rows[0].code, "mine");
            hwnas_results_close(r);
        }
        free(text);
    }
}

/* One that was put in the place of a file of results after it was opened is not written to. */
static void a_file_that_changed_is_not_written_to(void **state)
{
    static const char notes[] = "other notes\nwithout an end";
    hwnas_results *r;
    (void)state;
    unlink(path);
    assert_int_equal(hwnas_results_open(&r, path, "acc"), HWNAS_OK);
    assert_int_equal(hwnas_file_write(path, notes, strlen(notes)), HWNAS_OK);
    const hwnas_result row = result("1", "a", 1);
    assert_int_equal(hwnas_results_add(r, &row, 1), HWNAS_E_INPUT);
    compare_file(notes, strlen(notes));
    hwnas_results_close(r);
    assert_int_equal(hwnas_results_open(&r, "/dev/null", "acc"), HWNAS_E_INPUT);
}

static void rows_of_others_are_taken_in(void **state)
{
    hwnas_results *a, *b;
    (void)state;
    unlink(path);
    assert_int_equal(hwnas_results_open(&a, path, "acc"), HWNAS_OK);
    assert_int_equal(hwnas_results_open(&b, path, "acc"), HWNAS_OK);
    const hwnas_result rows[] = {result("1", "a", 1), result("2", "b", 2), result("3", "c", 3)};
    assert_int_equal(hwnas_results_add(a, &rows[0], 1), HWNAS_OK);
    assert_int_equal(hwnas_results_add(b, &rows[1], 1), HWNAS_OK);
    assert_int_equal(hwnas_results_add(a, &rows[2], 1), HWNAS_OK);
    assert_int_equal(hwnas_results_refresh(b), HWNAS_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_true(a->rows[i].value == rows[i].value);
        assert_true(b->rows[i].value == rows[i].value);
    }
    assert_int_equal(a->n, 3);
    assert_int_equal(b->n, 3);
    hwnas_results_close(a);
    hwnas_results_close(b);
}

/* Processes that append at one time. */
static void writers_do_not_mix(void **state)
{
    enum { WRITERS = 4, ROWS = 50 };
    hwnas_results *r;
    (void)state;
    unlink(path);
    for (int w = 0; w < WRITERS; w++)
        if (fork() == 0) {
            bool good = hwnas_results_open(&r, path, "acc") == HWNAS_OK;
            for (int i = 0; good && i < ROWS; i++) {
                const hwnas_result row = result("5", "some=1,code=2", w * ROWS + i);
                good = hwnas_results_add(r, &row, 1) == HWNAS_OK;
            }
            _exit(!good);
        }
    for (int w = 0; w < WRITERS; w++) {
        int wait_status;
        assert_true(wait(&wait_status) > 0);
        assert_int_equal(wait_status, 0);
    }
    bool seen[WRITERS * ROWS] = {false};
    assert_int_equal(hwnas_results_open(&r, path, "acc"), HWNAS_OK);
    assert_int_equal(r->n, WRITERS * ROWS);
    for (size_t i = 0; i < r->n; i++)
        seen[(int)r->rows[i].value] = true;
    for (size_t i = 0; i < WRITERS * ROWS; i++)
        assert_true(seen[i]);
    hwnas_results_close(r);
}

/* Six of the 6561 chains: every operator at every place. Of six random ones that is so in 9 of 100.
 */
static void suggestions_are_spread(void **state)
{
    hwnas_space *space;
    (void)state;
    assert_int_equal(hwnas_graph_load_space(&space, "nas_bench_macro"), HWNAS_OK);
    for (uint64_t seed = 0; seed < 3; seed++) {
        hwnas_arch *archs[6];
        const hwnas_suggest_options options = {.n = 6, .seed = seed};
        assert_int_equal(hwnas_suggest(archs, space, &options), HWNAS_OK);
        for (size_t g = 0; g < space->n_genes; g++) {
            unsigned values = 0;
            for (size_t i = 0; i < 6; i++)
                values |= 1u << archs[i]->genes[g];
            assert_int_equal(values, 7);
        }
        for (size_t i = 0; i < 6; i++)
            hwnas_arch_free(archs[i]);
    }
    hwnas_space_free(space);
}

static void vectors_of_a_cell(void **state)
{
    hwnas_space *space;
    hwnas_arch *arch;
    float v[64];
    (void)state;
    assert_int_equal(hwnas_graph_load_space(&space, "nas_bench_201"), HWNAS_OK);
    assert_int_equal(hwnas_arch_parse(&arch, space, "421210"), HWNAS_OK);
    hwnas_vector *one_hot = hwnas_vector_new(&hwnas_vector_layouts[0], space),
                 *values = hwnas_vector_new(&hwnas_vector_layouts[1], space);
    assert_int_equal(one_hot->n, 30);
    assert_int_equal(values->n, 6);
    hwnas_vector_fill(v, one_hot, arch);
    for (size_t g = 0; g < 6; g++)
        for (size_t k = 0; k < 5; k++)
            assert_true(v[5 * g + k] == ("421210"[g] == (char)('0' + k)));
    hwnas_vector_fill(v, values, arch);
    for (size_t g = 0; g < 6; g++)
        assert_true(v[g] == "421210"[g] - '0');
    hwnas_vector_free(one_hot);
    hwnas_vector_free(values);
    hwnas_arch_free(arch);
    hwnas_space_free(space);
}

static char *sh[3][4] = {{(char *)"sh", (char *)"-c", (char *)"echo 1; echo 2 0.5"},
                         {(char *)"sh", (char *)"-c", (char *)"exit 7"},
                         {(char *)"sh", (char *)"-c", (char *)"echo -3e1, 2"}};
static char *nothing[] = {NULL};

static hwnas_status begin(void *context, hwnas_run *run)
{
    const hwnas_run *first = context;
    run->arguments = sh[run - first];
    run->environment = nothing;
    run->state = HWNAS_RUN_READY;
    return HWNAS_OK;
}

static hwnas_status done(void *context, hwnas_run *run)
{
    (void)context, (void)run;
    return HWNAS_OK;
}

static void programs_answer(void **state)
{
    hwnas_run runs[3] = {0};
    hwnas_programs p = {.jobs = 3, .timeout = 60, .begin = begin, .done = done, .context = runs};
    (void)state;
    assert_int_equal(hwnas_programs_run(&p, runs, 3), HWNAS_E_CRASHED);
    assert_non_null(strstr(hwnas_last_error()->message, "ended with status 7"));
    assert_true(runs[0].mean == 2 && runs[0].sd == 0.5);
    assert_int_equal(runs[1].error.status, HWNAS_E_CRASHED);
    assert_true(runs[2].mean == -30 && runs[2].sd == 2);
    assert_int_equal(hwnas_programs_run(&p, runs, 0), HWNAS_OK);
    /* One at a time: after the failure the third is not begun. */
    memset(runs, 0, sizeof runs);
    p.jobs = 1;
    assert_int_equal(hwnas_programs_run(&p, runs, 3), HWNAS_E_CRASHED);
    assert_null(runs[2].arguments);
}

static char *script[] = {NULL, NULL};

static hwnas_status begin_script(void *context, hwnas_run *run)
{
    (void)context;
    run->arguments = script;
    run->environment = nothing;
    run->state = HWNAS_RUN_READY;
    return HWNAS_OK;
}

static void write_script(const char *text)
{
    assert_int_equal(hwnas_file_write(path, text, strlen(text)), HWNAS_OK);
    assert_int_equal(chmod(path, 0755), 0);
    script[0] = path;
}

static const hwnas_programs one_script = {
    .jobs = 1, .retries = 3, .timeout = 60, .begin = begin_script, .done = done};

static void hear_enough(void *context, hwnas_run *run, const char *line)
{
    (void)context;
    run->is_enough |= !strcmp(line, "enough");
}

/* It would go on for ten minutes, and would be tried again if it had failed. */
static void a_program_that_said_enough_is_ended(void **state)
{
    hwnas_programs programs = one_script;
    hwnas_run run = {0};
    (void)state;
    programs.says = hear_enough;
    write_script("#!/bin/sh\necho begun\necho enough\nsleep 600\necho 7\n");
    assert_int_equal(hwnas_programs_run(&programs, &run, 1), HWNAS_OK);
    assert_true(run.is_enough && run.error.status == HWNAS_OK && run.seconds < 300);
}

/* nohup, some containers and shells hand it down so. */
static void sigchld_may_be_ignored(void **state)
{
    hwnas_run run = {0};
    (void)state;
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    write_script("#!/bin/sh\n/bin/true; echo 7\n");
    assert_int_equal(hwnas_programs_run(&one_script, &run, 1), HWNAS_OK);
    assert_true(run.mean == 7);
    memset(&run, 0, sizeof run);
    write_script("#!/bin/sh\nexit 3\n");
    assert_int_equal(hwnas_programs_run(&one_script, &run, 1), HWNAS_E_CRASHED);
    assert_non_null(strstr(hwnas_last_error()->message, "ended with status 3"));
    signal(SIGCHLD, before);
}

static void a_retry_that_cannot_start_is_a_failure(void **state)
{
    hwnas_run run = {0};
    (void)state;
    write_script("#!/bin/sh\n/bin/chmod -x \"$0\"\nexit 1\n");
    assert_int_equal(hwnas_programs_run(&one_script, &run, 1), HWNAS_E_INPUT);
    assert_non_null(strstr(hwnas_last_error()->message, "cannot start"));
    assert_non_null(strstr(hwnas_last_error()->message, "Permission denied"));
}

/* A program that is still being written, by a copy or by a compiler, is waited for. */
static void a_busy_program_is_waited_for(void **state)
{
    enum { RUNS = 5 };
    (void)state;
    char *text;
    size_t length;
    assert_int_equal(hwnas_file_read(&text, &length, "/bin/echo", 64 << 20), HWNAS_OK);
    assert_int_equal(hwnas_file_write(path, text, length), HWNAS_OK);
    assert_int_equal(chmod(path, 0755), 0);
    free(text);
    char *arguments[] = {path, (char *)"5", NULL};
    for (int i = 0; i < RUNS; i++) {
        hwnas_supervised s;
        const int writer = open(path, O_WRONLY | O_CLOEXEC);
        const pid_t closer = fork();
        if (closer == 0) { /* holds it open a little longer than we do */
            usleep(100000);
            _exit(0);
        }
        close(writer);
        const hwnas_program program = {.path = path,
                                       .arguments = arguments,
                                       .environment = nothing,
                                       .out = STDERR_FILENO,
                                       .err = STDERR_FILENO};
        assert_int_equal(hwnas_supervise(&s, &program), 0);
        int wait_status = -1;
        while (!hwnas_supervised_has_ended(&wait_status, &s))
            usleep(1000);
        assert_int_equal(wait_status, 0);
        waitpid(closer, NULL, 0);
    }
}

/* ---- Curves ---- */

/* What a trainer says, in lines, and the curve that follows. */
static void epochs_are_heard(void **state)
{
    const hwnas_giver giver = {.column = "acc_pct", .has_percentage = true, .said = "it printed"};
    const struct {
        const char *line;
        double value; /* NAN: the line says nothing new */
        size_t n, n_planned;
    } steps[] = {{"was epoch 1 of 4: loss 0.9, validation 50.25 %", 50.25, 1, 4},
                 {"epoch 2 of 4: 61", 61, 2, 4},
                 {"epochs are long", NAN, 2, 4},
                 {"epoch 4 of 4: 80", NAN, 2, 4},
                 {"epoch 5 of 4: 80", NAN, 2, 4},
                 {"epoch -1 of 4: 80", NAN, 2, 4},
                 {"epoch 3 of 4: loss nan", NAN, 2, 4},
                 {"epoch 3 of 4: 161", NAN, 2, 4},
                 {"epoch 3 of 4: loss 0.5, validation 75,2 %", NAN, 2, 4},
                 {"epoch 3 of 4: loss 0.5 validation 7.5e1%", 75, 3, 4},
                 {"epoch 4 of 4: 0.5,76.5", 76.5, 4, 4},
                 {"epoch 1 of 9: 33.5", 33.5, 1, 9}}; /* it began anew */
    hwnas_epochs e = {.n = 0};
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(hwnas_epochs_hear(&e, steps[i].line, &giver), !isnan(steps[i].value));
        assert_int_equal(e.n, steps[i].n);
        assert_int_equal(e.n_planned, steps[i].n_planned);
        if (!isnan(steps[i].value))
            assert_true(e.values[e.n - 1] == steps[i].value);
    }
    hwnas_epochs_done(&e);
}

static void curves_come_back(void **state)
{
    hwnas_results *r;
    char *text;
    size_t length;
    (void)state;
    unlink(path);
    assert_int_equal(hwnas_results_open_curves(&r, path, "acc"), HWNAS_OK);
    double curve[] = {1.5, -2e-5, 30};
    hwnas_result row = result("1", "a,b", 33);
    row.n_epochs = 9;
    row.curve = curve;
    row.n_curve = 3;
    assert_int_equal(hwnas_results_add(r, &row, 1), HWNAS_OK);
    hwnas_results_close(r);
    assert_int_equal(hwnas_results_open_curves(&r, path, "acc"), HWNAS_OK);
    assert_int_equal(r->rows[0].n_epochs, 9);
    assert_int_equal(r->rows[0].n_curve, 3);
    assert_memory_equal(r->rows[0].curve, curve, sizeof curve);
    hwnas_results_close(r);
    /* A last number that may be cut is none; nor is a file of the other kind taken for one. */
    assert_int_equal(hwnas_file_read(&text, &length, path, 1 << 20), HWNAS_OK);
    assert_int_equal(hwnas_file_write(path, text, length - 2), HWNAS_OK);
    assert_int_equal(hwnas_results_open_curves(&r, path, "acc"), HWNAS_OK);
    assert_int_equal(r->rows[0].n_curve, 2);
    hwnas_results_close(r);
    assert_int_equal(hwnas_results_open(&r, path, "acc"), HWNAS_E_INPUT);
    strcpy(strstr(text, " -2e-05"), " x 30\n");
    assert_int_equal(hwnas_file_write(path, text, strlen(text)), HWNAS_OK);
    assert_int_equal(hwnas_results_open_curves(&r, path, "acc"), HWNAS_E_INPUT);
    free(text);
}

/* Student's t as tables of it have it: 90 % of five degrees of freedom lie within 2.015, 95 % of
 * six within 2.447. */
static void an_end_is_students(void **state)
{
    hwnas_curve_end end = {.middle = 10, .scale = 2, .freedom = 5};
    double low, high;
    (void)state;
    hwnas_curve_interval(&low, &high, &end, 0.9);
    assert_true(fabs(low - (10 - 2 * 2.015)) < 2e-3 && fabs(high - (10 + 2 * 2.015)) < 2e-3);
    assert_true(fabs(hwnas_curve_chance(&end, high) - 0.05) < 1e-9);
    end.freedom = 6;
    hwnas_curve_interval(&low, &high, &end, 0.95);
    assert_true(fabs(high - (10 + 2 * 2.447)) < 2e-3);
    end.scale = 0;
    assert_true(hwnas_curve_chance(&end, 9) == 1 && hwnas_curve_chance(&end, 11) == 0);
}

/* Of real trainings (tests/data/fashion_curves.csv): the ends of others lie in the 90 % intervals
 * as often as these say, and are nearer to the middle than to the last value plus the mean gain. */
static void curves_of_trainings_are_foreseen(void **state)
{
    enum { KNOWN = 20, EPOCHS = 9, MOST = 100 };
    static double values[MOST][EPOCHS];
    hwnas_csv *csv;
    (void)state;
    assert_int_equal(hwnas_csv_load(&csv, HWNAS_TEST_DATA "/fashion_curves.csv"), HWNAS_OK);
    for (size_t first = 0, n; first < csv->n_rows; first += n) {
        const char *schedule = hwnas_csv_cell(csv, first, 0);
        double error = 0, plain_error = 0;
        size_t inside = 0, judged = 0;
        for (n = 0; first + n < csv->n_rows && n < MOST; n++) {
            if (strcmp(hwnas_csv_cell(csv, first + n, 0), schedule))
                break;
            for (size_t k = 0; k < EPOCHS; k++)
                assert_int_equal(hwnas_csv_number(&values[n][k], csv, first + n, k + 1), HWNAS_OK);
        }
        for (size_t i = 0; i < n; i++)
            for (size_t epochs = 1; epochs < EPOCHS; epochs++) {
                hwnas_curve known[KNOWN];
                hwnas_curve_end end;
                double gain = 0, low, high;
                for (size_t k = 0; k < KNOWN; k++) {
                    const double *other = values[(i + 1 + k) % n];
                    known[k] = (hwnas_curve){other, EPOCHS, other[EPOCHS - 1]};
                    gain += (other[EPOCHS - 1] - other[epochs - 1]) / KNOWN;
                }
                assert_true(hwnas_curve_extrapolate(&end, values[i], epochs, known, KNOWN, true));
                hwnas_curve_interval(&low, &high, &end, 0.9);
                const double truth = values[i][EPOCHS - 1];
                inside += low <= truth && truth <= high;
                error += fabs(end.mean - truth);
                plain_error += fabs(values[i][epochs - 1] + gain - truth);
                judged++;
            }
        const double share = (double)inside / (double)judged;
        print_message("# %s: %zu trainings, %.1f %% inside, off by %.2f points (%.2f)\n", schedule,
                      n, 100 * share, error / (double)judged, plain_error / (double)judged);
        assert_true(n > KNOWN);
        assert_true(share >= 0.86 && share <= 0.94);
        assert_true(error < 0.8 * plain_error);
    }
    hwnas_csv_free(csv);
}

/* Too few curves, curves that are shorter, or all alike. */
static void little_is_known_of_few_curves(void **state)
{
    static const double rising[] = {10, 20, 30}, flat[] = {50, 50, 50};
    hwnas_curve known[HWNAS_CURVES_FEWEST];
    hwnas_curve_end end;
    (void)state;
    for (size_t i = 0; i < HWNAS_CURVES_FEWEST; i++)
        known[i] = (hwnas_curve){flat, 3, 50};
    assert_false(hwnas_curve_extrapolate(&end, rising, 2, known, HWNAS_CURVES_FEWEST - 1, true));
    assert_true(hwnas_curve_extrapolate(&end, flat, 2, known, HWNAS_CURVES_FEWEST, false));
    assert_true(end.mean == 50 && hwnas_curve_chance(&end, 50.1) < 1e-6);
    known[3].n = 1;
    assert_false(hwnas_curve_extrapolate(&end, rising, 2, known, HWNAS_CURVES_FEWEST, true));
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return 1;
    snprintf(path, sizeof path, "%s/results.csv", dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_come_back),
        cmocka_unit_test(a_torn_row_is_cut_off),
        cmocka_unit_test(files_of_others_stay),
        cmocka_unit_test(a_file_that_changed_is_not_written_to),
        cmocka_unit_test(rows_of_others_are_taken_in),
        cmocka_unit_test(writers_do_not_mix),
        cmocka_unit_test(suggestions_are_spread),
        cmocka_unit_test(vectors_of_a_cell),
        cmocka_unit_test(programs_answer),
        cmocka_unit_test(sigchld_may_be_ignored),
        cmocka_unit_test(a_retry_that_cannot_start_is_a_failure),
        cmocka_unit_test(a_busy_program_is_waited_for),
        cmocka_unit_test(a_program_that_said_enough_is_ended),
        cmocka_unit_test(epochs_are_heard),
        cmocka_unit_test(curves_come_back),
        cmocka_unit_test(an_end_is_students),
        cmocka_unit_test(curves_of_trainings_are_foreseen),
        cmocka_unit_test(little_is_known_of_few_curves),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
