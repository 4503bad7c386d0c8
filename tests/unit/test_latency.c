/* test_latency.c: the table of latencies: what it learns of made-up devices, how sure it is, and
 * the files that keep it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/file.h"
#include "base/host.h"
#include "base/mem.h"
#include "base/rng.h"
#include "latency/latency_table.h"
#include "latency/latency_file.h"
#include "trial/skip.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- A made-up device ---- */

/* A part of kind 0 or 1 and of some size. */
static hwnas_part make_part(int kind, int size)
{
    return (hwnas_part){.signature = (uint64_t)(1000 * kind + size),
                        .kind = (uint64_t)kind,
                        .macs = 1e4 * size * size,
                        .read_bytes = 1e3 * size,
                        .written_bytes = 1e3 * size,
                        .weight_bytes = 100.0 * size * size};
}

/* What it takes, with something of its own that neighbours do not tell. */
static double part_seconds(const hwnas_part *part)
{
    const double own = 1 + 0.1 * sin((double)part->signature);
    return own * (2e-6 + (part->kind ? 3 : 1) * part->macs / 2e10);
}

static double normal(hwnas_rng *rng)
{
    const double u = hwnas_rng_double(rng), v = hwnas_rng_double(rng);
    return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* A network of ten random parts of some sizes, measured with noise on all and on each. */
static hwnas_observation *observe_from(hwnas_rng *rng, int least, int most, double level,
                                       double noise)
{
    enum { N = 10 };
    hwnas_observation *o = hwnas_observation_alloc(N, N);
    o->is_steady = true;
    const double slow = exp(level * normal(rng));
    for (int i = 0; i < N; i++) {
        o->parts[i] = make_part((int)(hwnas_rng_double(rng) * 2),
                                least + (int)(hwnas_rng_double(rng) * most));
        const double seconds = slow * part_seconds(&o->parts[i]);
        o->set_of[i] = i;
        o->set_seconds[i] = seconds * exp(noise * normal(rng));
        o->seconds += 1.05 * seconds; /* between the parts something is lost */
    }
    return o;
}

static hwnas_observation *observe(hwnas_rng *rng, int most, double level, double noise)
{
    return observe_from(rng, 10, most, level, noise);
}

static double true_seconds(const hwnas_observation *o)
{
    double sum = 0;
    for (size_t i = 0; i < o->n_parts; i++)
        sum += 1.05 * part_seconds(&o->parts[i]);
    return sum;
}

static hwnas_latency_table *taught(hwnas_rng *rng, int n, int most, double level, double noise)
{
    hwnas_latency_table *table = hwnas_latency_table_new();
    for (int i = 0; i < n; i++) {
        hwnas_observation *o = observe(rng, most, level, noise);
        hwnas_latency_table_tell(table, o);
        hwnas_observation_free(o);
    }
    return table;
}

static hwnas_latency_estimate estimate(hwnas_latency_table *table, const hwnas_observation *o)
{
    const hwnas_parts parts = {.n = o->n_parts, .parts = o->parts};
    hwnas_latency_estimate e;
    assert_true(hwnas_latency_table_estimate(&e, table, &parts));
    assert_true(e.low < e.seconds && e.seconds < e.high);
    return e;
}

/* Two measurements of three are of a machine that others slow down, and say so: they tell what the
 * parts' shares are, but not how fast the machine is. */
static void foretells_steady_measurements(void **state)
{
    (void)state;
    enum { N = 200 };
    hwnas_rng rng = hwnas_rng_new(11, 0);
    hwnas_latency_table *table = hwnas_latency_table_new();
    hwnas_latency_state known;
    int n_near = 0, n_inside = 0;
    for (int i = 0; i < N; i++) {
        hwnas_observation *o = observe(&rng, 20, 0.01, 0.05);
        const double slow = i % 3 ? 1.2 + hwnas_rng_double(&rng) : 1;
        o->is_steady = slow == 1;
        o->seconds *= slow;
        for (size_t k = 0; k < o->n_sets; k++)
            o->set_seconds[k] *= slow;
        hwnas_latency_table_tell(table, o);
        hwnas_observation_free(o);
    }
    for (int i = 0; i < N; i++) {
        hwnas_observation *o = observe(&rng, 20, 0, 0);
        const hwnas_latency_estimate e = estimate(table, o);
        n_near += fabs(e.seconds / true_seconds(o) - 1) < 0.05;
        n_inside += e.low <= true_seconds(o) && true_seconds(o) <= e.high;
        assert_true(e.high < 1.25 * e.low);
        hwnas_observation_free(o);
    }
    assert_in_range(n_near, 0.95 * N, N);
    assert_in_range(n_inside, 0.95 * N, N);
    hwnas_latency_table_describe(&known, table);
    assert_in_range(known.n_judged, N / 3 - 3, N / 3 + 10); /* at first all, for want of better */
    assert_true(known.error < 0.05);
    hwnas_latency_table_free(table);
}

/* Networks of two spaces have no part in common, and fell into minutes that differ. */
static void keeps_the_minutes_of_spaces_apart(void **state)
{
    (void)state;
    enum { N = 200 };
    hwnas_rng rng = hwnas_rng_new(12, 0);
    hwnas_latency_table *table = hwnas_latency_table_new();
    for (int i = 0; i < 2 * N; i++) {
        const bool is_second = i >= N;
        hwnas_observation *o = observe_from(&rng, is_second ? 40 : 10, 20, 0.01, 0.05);
        o->is_steady = hwnas_rng_double(&rng) < (is_second ? 0.7 : 0.2);
        const double slow = o->is_steady ? 1 : 1.3 + 0.2 * hwnas_rng_double(&rng);
        o->seconds *= slow;
        for (size_t k = 0; k < o->n_sets; k++)
            o->set_seconds[k] *= slow;
        hwnas_latency_table_add(table, o);
        hwnas_observation_free(o);
    }
    for (int space = 0; space < 2; space++) {
        int n_near = 0, n_below = 0;
        for (int i = 0; i < N; i++) {
            hwnas_observation *o = observe_from(&rng, space ? 40 : 10, 20, 0, 0);
            const double ratio = estimate(table, o).seconds / true_seconds(o);
            n_near += fabs(ratio - 1) < 0.05;
            n_below += ratio < 1;
            hwnas_observation_free(o);
        }
        assert_in_range(n_near, 0.95 * N, N);
        assert_in_range(n_below, 0.05 * N, 0.95 * N);
    }
    hwnas_latency_table_free(table);
}

/* Known parts give the network; noise averages out; a slow minute of the machine does not stay. */
static void learns_sums(void **state)
{
    (void)state;
    hwnas_rng rng = hwnas_rng_new(1, 0);
    hwnas_latency_table *table = taught(&rng, 150, 20, 0.1, 0.05);
    int n_near = 0, n_inside = 0;
    enum { N = 200 };
    for (int i = 0; i < N; i++) {
        hwnas_observation *o = observe(&rng, 20, 0.1, 0);
        const hwnas_latency_estimate e = estimate(table, o);
        n_near += fabs(e.seconds / true_seconds(o) - 1) < 0.05;
        n_inside += e.low <= o->seconds && o->seconds <= e.high;
        hwnas_observation_free(o);
    }
    assert_true(n_near > 0.95 * N);
    assert_true(n_inside > 0.9 * N && n_inside < N); /* of 95 %: neither too narrow nor too wide */
    hwnas_latency_state s;
    hwnas_latency_table_describe(&s, table);
    assert_int_equal(s.n_networks, 150);
    assert_true(s.n_judged >= 140 && s.coverage > 0.85);
    hwnas_latency_table_free(table);
}

/* ---- How sure the corrections are ---- */

enum { KINDS = 8 };

/* What a network takes beyond its parts, by their kinds and by itself. */
typedef struct corrections {
    double factors[KINDS], whole;
} corrections;

/* A network of twelve parts, of all kinds or of two of them; `noise` is in each part and in it. */
static hwnas_observation *observe_corrected(hwnas_rng *rng, const corrections *c, bool is_mixed,
                                            double noise)
{
    enum { N = 12 };
    hwnas_observation *o = hwnas_observation_alloc(N, N);
    const int two[2] = {(int)hwnas_rng_below(rng, KINDS), (int)hwnas_rng_below(rng, KINDS)};
    double sum = 0, factor = 0;
    o->is_steady = true;
    for (int i = 0; i < N; i++) {
        const int kind = is_mixed ? (int)hwnas_rng_below(rng, KINDS) : two[hwnas_rng_below(rng, 2)];
        o->parts[i] = make_part(kind, 10 + 5 * (int)hwnas_rng_below(rng, 3));
        const double seconds = 2e-6 + (1 + kind) * o->parts[i].macs / 2e10;
        o->set_of[i] = i;
        o->set_seconds[i] = seconds * exp(noise * normal(rng));
        sum += seconds;
        factor += c->factors[kind] * seconds;
    }
    o->seconds = sum * exp(c->whole + factor / sum + noise * normal(rng));
    return o;
}

/* Few networks that are mixtures of everything say little about one that is not: estimates of such
 * networks are off by the corrections that could not be told apart, and their intervals know by how
 * much, whether corrections are as large as is usual, twice as large, or none. */
static void knows_how_sure_corrections_are(void **state)
{
    (void)state;
    enum { TABLES = 40, TRIED = 20 };
    static const int counts[] = {6, 10, 20, 50, 200};
    static const double sizes[] = {0.1, 0.2, 0};
    for (size_t row = 0; row < COUNT(counts) * COUNT(sizes); row++) {
        const int n = counts[row % COUNT(counts)];
        const double size = sizes[row / COUNT(counts)];
        double width = 0, error = 0;
        int n_inside = 0;
        for (uint64_t seed = 0; seed < TABLES; seed++) {
            hwnas_rng rng = hwnas_rng_new(seed, 77);
            corrections c = {.whole = 0.1 * normal(&rng)};
            hwnas_latency_table *table = hwnas_latency_table_new();
            for (int k = 0; k < KINDS; k++)
                c.factors[k] = size * normal(&rng);
            for (int i = 0; i < n; i++) {
                hwnas_observation *o = observe_corrected(&rng, &c, true, 0.01);
                hwnas_latency_table_add(table, o);
                hwnas_observation_free(o);
            }
            for (int i = 0; i < TRIED; i++) {
                hwnas_observation *o = observe_corrected(&rng, &c, false, 0.01);
                const hwnas_latency_estimate e = estimate(table, o);
                n_inside += e.low <= o->seconds && o->seconds <= e.high;
                width += log(e.high / e.low) / (TABLES * TRIED);
                error += fabs(log(e.seconds / o->seconds)) / (TABLES * TRIED);
                hwnas_observation_free(o);
            }
            hwnas_latency_table_free(table);
        }
        print_message("# corrections of %.1f, %d networks: %.1f %% of %d inside, intervals %.1f %% "
                      "wide, off by %.1f %%\n",
                      size, n, 100.0 * n_inside / (TABLES * TRIED), TABLES * TRIED, 100 * width,
                      100 * error);
        assert_in_range(n_inside, 0.88 * TABLES * TRIED, 0.99 * TABLES * TRIED);
        assert_true(width < 12 * error); /* not by doubting everything */
    }
}

/* Parts never timed are told from their neighbours, less surely. */
static void predicts_unknown_parts(void **state)
{
    (void)state;
    hwnas_rng rng = hwnas_rng_new(2, 0);
    hwnas_latency_table *table = hwnas_latency_table_new();
    for (int i = 0; i < 60; i++) {
        hwnas_observation *o = observe(&rng, 40, 0, 0.01);
        for (size_t k = 0; k < o->n_parts; k++) /* only even sizes are seen */
            if ((int)o->parts[k].signature % 2) {
                o->seconds -= 1.05 * part_seconds(&o->parts[k]);
                o->parts[k] = make_part((int)o->parts[k].kind, 30);
                o->set_seconds[k] = part_seconds(&o->parts[k]);
                o->seconds += 1.05 * part_seconds(&o->parts[k]);
            }
        hwnas_latency_table_tell(table, o);
        hwnas_observation_free(o);
    }
    int n_near = 0, n_inside = 0;
    double known_width = 0, width = 0;
    for (int i = 0; i < 100; i++) {
        hwnas_observation *o = observe(&rng, 40, 0, 0);
        const hwnas_latency_estimate e = estimate(table, o);
        n_near += fabs(e.seconds / o->seconds - 1) < 0.1;
        n_inside += e.low <= o->seconds && o->seconds <= e.high;
        width += log(e.high / e.low);
        assert_int_equal(e.n_parts, 10);
        for (size_t k = 0; k < o->n_parts; k++)
            o->parts[k] = make_part(1, 30);
        const hwnas_latency_estimate known = estimate(table, o);
        assert_int_equal(known.n_unknown, 0);
        known_width += log(known.high / known.low);
        hwnas_observation_free(o);
    }
    assert_true(n_near > 85);
    assert_true(n_inside > 85);
    assert_true(known_width < width);
    hwnas_latency_table_free(table);
}

static void says_nothing_at_first(void **state)
{
    (void)state;
    hwnas_rng rng = hwnas_rng_new(3, 0);
    hwnas_latency_table *table = hwnas_latency_table_new();
    hwnas_observation *o = observe(&rng, 20, 0, 0);
    const hwnas_parts parts = {.n = o->n_parts, .parts = o->parts};
    hwnas_latency_estimate e;
    assert_false(hwnas_latency_table_estimate(&e, table, &parts));
    assert_true(hwnas_latency_table_doubt(table, &parts) == 1);
    hwnas_latency_table_tell(table, o);
    assert_false(hwnas_latency_table_estimate(&e, table, &parts));
    assert_false(hwnas_latency_table_is_trusted(table));
    hwnas_observation_free(o);
    hwnas_latency_table_free(table);
}

/* A machine that is three times as fast as when the table learnt: what is left of its good record
 * does not count for long, and what it learns anew makes it good again. */
static void doubts_itself_where_the_machine_has_changed(void **state)
{
    (void)state;
    hwnas_rng rng = hwnas_rng_new(13, 0);
    hwnas_latency_table *table = taught(&rng, 250, 20, 0.01, 0.05);
    assert_true(hwnas_latency_table_is_trusted(table));
    int n_until = 0, n_again = 0;
    for (int i = 1; i <= 1000 && !n_again; i++) {
        hwnas_observation *o = observe(&rng, 20, 0.01, 0.05);
        o->seconds /= 3;
        for (size_t k = 0; k < o->n_sets; k++)
            o->set_seconds[k] /= 3;
        hwnas_latency_table_tell(table, o);
        hwnas_observation_free(o);
        const bool is_trusted = hwnas_latency_table_is_trusted(table);
        if (!n_until && !is_trusted)
            n_until = i;
        else if (n_until && is_trusted)
            n_again = i;
    }
    assert_in_range(n_until, 1, 16);
    assert_in_range(n_again, n_until + 1, 1000);
    hwnas_latency_table_free(table);
}

static void is_deterministic(void **state)
{
    (void)state;
    hwnas_latency_estimate e[2];
    for (int i = 0; i < 2; i++) {
        hwnas_rng rng = hwnas_rng_new(4, 0);
        hwnas_latency_table *table = taught(&rng, 40, 30, 0.05, 0.02);
        hwnas_observation *o = observe(&rng, 60, 0, 0);
        e[i] = estimate(table, o);
        hwnas_observation_free(o);
        hwnas_latency_table_free(table);
    }
    assert_memory_equal(&e[0], &e[1], sizeof e[0]);
}

/* ---- Files ---- */

static char *cache_path(void)
{
    const char *tmp = getenv("TMPDIR");
    char *folder = hwnas_printf("%s/hwnas-latency-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    char *path = hwnas_printf("%s/cache/latency.db", folder);
    free(folder);
    return path;
}

static void remove_cache(char *path)
{
    glob_t files;
    char *pattern = hwnas_printf("%s*", path);
    if (!glob(pattern, 0, NULL, &files)) {
        for (size_t i = 0; i < files.gl_pathc; i++)
            unlink(files.gl_pathv[i]);
        globfree(&files);
    }
    for (int i = 0; i < 2; i++) {
        *strrchr(path, '/') = '\0';
        rmdir(path);
    }
    free(pattern);
    free(path);
}

static size_t n_networks(hwnas_latency_file *file, const char *key)
{
    hwnas_latency_state state;
    hwnas_latency_table *table = hwnas_latency_table_new();
    assert_int_equal(hwnas_latency_load(table, file, key, INT64_MAX), HWNAS_OK);
    hwnas_latency_table_describe(&state, table);
    hwnas_latency_table_free(table);
    return state.n_networks;
}

/* What was written is read again, and gives the same estimates; machines do not mix. */
static void keeps_what_it_learnt(void **state)
{
    (void)state;
    char *path = cache_path(), *note = NULL;
    hwnas_latency_file *one, *two;
    hwnas_rng rng = hwnas_rng_new(5, 0);
    hwnas_latency_table *table = hwnas_latency_table_new(), *read = hwnas_latency_table_new();
    assert_int_equal(hwnas_latency_open(&one, &note, path), HWNAS_OK);
    assert_int_equal(hwnas_latency_open(&two, &note, path), HWNAS_OK); /* at once */
    for (int i = 0; i < 30; i++) {
        hwnas_observation *o = observe(&rng, 20, 0.02, 0.02);
        o->set_of[3] = -1;
        hwnas_latency_table_add(table, o);
        assert_int_equal(hwnas_latency_add(i % 2 ? one : two, "a", o), HWNAS_OK);
        hwnas_observation_free(o);
    }
    hwnas_observation *o = observe(&rng, 20, 0, 0);
    assert_int_equal(hwnas_latency_add(one, "b", o), HWNAS_OK);
    assert_int_equal(n_networks(two, "a"), 30);
    assert_int_equal(n_networks(two, "b"), 1);
    assert_int_equal(n_networks(two, "c"), 0);
    assert_int_equal(hwnas_latency_load(read, two, "a", INT64_MAX), HWNAS_OK);
    const hwnas_latency_estimate x = estimate(table, o), y = estimate(read, o);
    assert_float_equal(y.seconds, x.seconds, 1e-3 * x.seconds); /* their order is another */
    hwnas_latency_state known;
    hwnas_latency_table_describe(&known, read);
    assert_true(known.n_judged >= 20 && known.coverage > 0.8); /* of what was held out */
    assert_null(note);
    hwnas_observation_free(o);
    hwnas_latency_table_free(table);
    hwnas_latency_table_free(read);
    hwnas_latency_close(one);
    hwnas_latency_close(two);
    remove_cache(path);
}

static void fill(const char *path)
{
    char *note = NULL;
    hwnas_latency_file *file;
    hwnas_rng rng = hwnas_rng_new(6, 0);
    assert_int_equal(hwnas_latency_open(&file, &note, path), HWNAS_OK);
    for (int i = 0; i < 20; i++) {
        hwnas_observation *o = observe(&rng, 20, 0.02, 0.02);
        assert_int_equal(hwnas_latency_add(file, "a", o), HWNAS_OK);
        hwnas_observation_free(o);
    }
    hwnas_latency_close(file);
}

/* A file that is not a cache, or half of one, is put aside whole, and said so; a new one works. */
static void survives_damage(void **state)
{
    (void)state;
    static const char *const ways[] = {"garbage", "cut", "version", "flipped"};
    for (size_t w = 0; w < COUNT(ways); w++) {
        char *path = cache_path(), *note = NULL, *bytes = NULL, *old = NULL;
        size_t n, n_old;
        hwnas_latency_file *file;
        fill(path);
        assert_int_equal(hwnas_file_read(&bytes, &n, path, 1 << 24), HWNAS_OK);
        if (w == 0)
            memset(bytes, 'x', n);
        else if (w == 1)
            n = n / 2 + 7;
        else if (w == 2)
            bytes[63] = 9; /* user_version */
        else
            memset(bytes + 4096, 0xff, 4096);
        assert_int_equal(hwnas_file_write(path, bytes, n), HWNAS_OK);
        assert_int_equal(hwnas_latency_open(&file, &note, path), HWNAS_OK);
        assert_non_null(note);
        assert_non_null(strstr(note, "damaged"));
        assert_int_equal(n_networks(file, "a"), 0);
        hwnas_latency_close(file);
        glob_t found;
        char *pattern = hwnas_printf("%s.damaged-*[0-9]", path);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        assert_int_equal(hwnas_file_read(&old, &n_old, found.gl_pathv[0], 1 << 24), HWNAS_OK);
        assert_int_equal(n_old, n);
        assert_memory_equal(old, bytes, n);
        globfree(&found);
        free(pattern);
        free(note);
        free(bytes);
        free(old);
        fill(path); /* works again */
        remove_cache(path);
    }
}

/* Whoever may write the cache may have left a trigger in it, which is not run. */
static void triggers_do_not_run(void **state)
{
    (void)state;
    char *path = cache_path();
    sqlite3 *db = NULL;
    fill(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "CREATE TRIGGER a AFTER INSERT ON observation BEGIN DELETE FROM"
                                  " observation; END",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    fill(path);
    char *note = NULL;
    hwnas_latency_file *file;
    assert_int_equal(hwnas_latency_open(&file, &note, path), HWNAS_OK);
    assert_int_equal(n_networks(file, "a"), 40);
    hwnas_latency_close(file);
    remove_cache(path);
}

static void refuses_what_it_cannot_write(void **state)
{
    (void)state;
    char *note = NULL;
    hwnas_latency_file *file;
    assert_int_equal(hwnas_latency_open(&file, &note, "/proc/hwnas/latency.db"), HWNAS_E_IO);
    assert_null(note);
}

/* Two machines with one processor, as of a cluster with one home directory, keep their times apart.
 */
static void key_names_the_machine(void **state)
{
    (void)state;
    const hwnas_device_info info = {.name = "a processor", .library = "a library", .threads = 2};
    const hwnas_exec_options options = {.precision = HWNAS_F32};
    char here[HWNAS_HOST_ID], a[HWNAS_HOST_ID], b[HWNAS_HOST_ID], c[HWNAS_HOST_ID];
    char *key = hwnas_latency_table_key("cpu", &info, &options);
    hwnas_host_id(here);
    assert_non_null(strstr(key, here));
    hwnas_host_id_of(a, "0123456789abcdef\n", "node1");
    hwnas_host_id_of(b, "0123456789abcdef\n", "node2");
    hwnas_host_id_of(c, "fedcba9876543210\n", "node1");
    assert_string_not_equal(a, b);
    assert_string_not_equal(a, c);
    assert_int_equal(strlen(a), HWNAS_HOST_ID - 1);
    free(key);
}

/* Anybody who may read the directory can lock it, and keep it. */
static void does_not_wait_for_ever(void **state)
{
    (void)state;
    char folder[] = "/tmp/hwnas-test-latency.XXXXXX", path[64], *note = NULL;
    hwnas_latency_file *file;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/latency.db", folder);
    const int held = open(folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(held, LOCK_EX), 0);
    alarm(60); /* a wait without end is to fail */
    assert_int_equal(hwnas_latency_open(&file, &note, path), HWNAS_OK);
    alarm(0);
    hwnas_latency_close(file);
    close(held);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_names_the_machine),
        cmocka_unit_test(learns_sums),
        cmocka_unit_test(foretells_steady_measurements),
        cmocka_unit_test(keeps_the_minutes_of_spaces_apart),
        cmocka_unit_test(knows_how_sure_corrections_are),
        cmocka_unit_test(predicts_unknown_parts),
        cmocka_unit_test(says_nothing_at_first),
        cmocka_unit_test(doubts_itself_where_the_machine_has_changed),
        cmocka_unit_test(is_deterministic),
        cmocka_unit_test(keeps_what_it_learnt),
        cmocka_unit_test(survives_damage),
        cmocka_unit_test(triggers_do_not_run),
        cmocka_unit_test(refuses_what_it_cannot_write),
        cmocka_unit_test(does_not_wait_for_ever),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("latency", tests, NULL, NULL);
}
