#define _GNU_SOURCE 1 /* sched_getaffinity() */
#include "measure/conditions.h"

#include <glob.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#define CORES "/sys/devices/system/cpu"

const char *hwnas_conditions_root(void)
{
    const char *root = getenv("HWNAS_SYSTEM");
    return root ? root : "";
}

/* The first line of a file, without its end. */
static bool read_line(char *out, size_t size, const char *path)
{
    FILE *file = hwnas_file_stream(path);
    const bool is_there = file && fgets(out, (int)size, file);
    if (file)
        fclose(file);
    if (is_there)
        out[strcspn(out, "\n")] = '\0';
    return is_there;
}

/* NaN: there is no number. */
static double read_number(const char *path)
{
    char text[64], *end = text;
    if (!read_line(text, sizeof text, path))
        return NAN;
    const double number = strtod(text, &end);
    return end > text ? number : NAN;
}

static double read_number_at(const char *root, const char *path)
{
    char *whole = hwnas_printf("%s%s", root, path);
    const double number = read_number(whole);
    free(whole);
    return number;
}

/* ---- Clock rate ---- */

static void read_governors(hwnas_conditions *out, const char *root, const cpu_set_t *cores)
{
    for (int core = 0; core < CPU_SETSIZE; core++) {
        char governor[sizeof out->governor];
        if (!CPU_ISSET((size_t)core, cores))
            continue;
        char *path = hwnas_printf("%s" CORES "/cpu%d/cpufreq/scaling_governor", root, core);
        const bool is_known = read_line(governor, sizeof governor, path);
        free(path);
        if (is_known && !*out->governor)
            memcpy(out->governor, governor, sizeof governor);
        else if (is_known && strcmp(governor, out->governor) != 0)
            snprintf(out->governor, sizeof out->governor, "mixed");
    }
}

/* Documentation/admin-guide/pm/intel_pstate.rst and cpufreq.rst ("boost"). */
static int read_turbo(const char *root)
{
    const double none = read_number_at(root, CORES "/intel_pstate/no_turbo");
    const double boost = read_number_at(root, CORES "/cpufreq/boost");
    return !isnan(none) ? none == 0 : !isnan(boost) ? boost != 0 : -1;
}

/* ---- Heat ---- */

/* Of all files of a pattern, whose other file NAME has a text that is in the list: the largest. */
static double read_sensors(const char *root, const char *pattern, const char *name,
                           const char *const *known)
{
    glob_t files;
    double most = NAN;
    char *whole = hwnas_printf("%s%s", root, pattern);
    if (!glob(whole, 0, NULL, &files)) {
        for (size_t i = 0; i < files.gl_pathc; i++) {
            char text[64] = "";
            const char *file = files.gl_pathv[i];
            char *path = hwnas_printf("%.*s/%s", (int)(strrchr(file, '/') - file), file, name);
            bool is_known = false;
            if (read_line(text, sizeof text, path))
                for (const char *const *k = known; *k; k++)
                    is_known |= !strcmp(text, *k);
            free(path);
            if (is_known)
                most = fmax(most, read_number(file));
        }
        globfree(&files);
    }
    free(whole);
    return most;
}

/* Documentation/driver-api/thermal/sysfs-api.rst, Documentation/hwmon/sysfs-interface.rst:
 * thousandths of a degree. */
static double read_celsius(const char *root)
{
    static const char *const zones[] = {"x86_pkg_temp", "cpu-thermal", "cpu_thermal", NULL};
    static const char *const chips[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal", NULL};
    return 1e-3 * fmax(read_sensors(root, "/sys/class/thermal/thermal_zone*/temp", "type", zones),
                       read_sensors(root, "/sys/class/hwmon/hwmon*/temp*_input", "name", chips));
}

/* The kernel counts for each core and for its package; all cores of a package have the latter. */
static double read_heat_stops(const char *root, const cpu_set_t *cores)
{
    double sum = 0, package = NAN;
    bool is_counted = false;
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET((size_t)core, cores))
            continue;
        char *folder = hwnas_printf("%s" CORES "/cpu%d/thermal_throttle", root, core);
        const double own = read_number_at(folder, "/core_throttle_count");
        package = fmax(package, read_number_at(folder, "/package_throttle_count"));
        free(folder);
        is_counted |= !isnan(own);
        sum += isnan(own) ? 0 : own;
    }
    return is_counted || !isnan(package) ? sum + (isnan(package) ? 0 : package) : NAN;
}

/* ---- The control group ---- */

/* A number of a file that has "KEY NUMBER" in its lines; NaN: it has not. */
static double read_keyed(const char *folder, const char *name, const char *key)
{
    char line[128];
    double number = NAN;
    char *path = hwnas_printf("%s/%s", folder, name);
    FILE *file = hwnas_file_stream(path);
    free(path);
    while (file && fgets(line, sizeof line, file))
        if (hwnas_starts_with(line, key) && line[strlen(key)] == ' ')
            number = strtod(line + strlen(key), NULL);
    if (file)
        fclose(file);
    return number;
}

/* Cores' worth of time; "max 100000" in version 2, -1 in version 1: no limit. */
static double read_quota(const char *folder)
{
    char text[64];
    double quota, period;
    char *path = hwnas_printf("%s/cpu.max", folder);
    const bool is_there = read_line(text, sizeof text, path);
    free(path);
    if (is_there)
        return sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : NAN;
    quota = read_number_at(folder, "/cpu.cfs_quota_us");
    period = read_number_at(folder, "/cpu.cfs_period_us");
    return quota > 0 && period > 0 ? quota / period : NAN;
}

static void read_group(void *context, const char *folder)
{
    hwnas_conditions *out = context;
    const double stops = read_keyed(folder, "cpu.stat", "nr_throttled");
    out->quota = fmin(out->quota, read_quota(folder)); /* of a number and NaN the number */
    if (!isnan(stops))
        out->quota_stops = isnan(out->quota_stops) ? stops : out->quota_stops + stops;
}

/* A group's limit holds for those within: from our own up to the root. */
static void visit_up(const char *mount, char *path, void (*visit)(void *, const char *),
                     void *context)
{
    for (bool is_root = false; !is_root;) {
        char *folder = hwnas_printf("%s%s", mount, path);
        visit(context, folder);
        free(folder);
        char *last = strrchr(path, '/');
        is_root = !last || (last == path && !path[1]) || !*path;
        if (!is_root)
            *last = '\0';
    }
}

static bool has_controller(const char *controllers, size_t n, const char *name)
{
    for (const char *at = controllers; at < controllers + n; at += strcspn(at, ",:") + 1)
        if (strcspn(at, ",:") == strlen(name) && !strncmp(at, name, strlen(name)))
            return true;
    return false;
}

/* cgroups(7): "ID:CONTROLLERS:PATH", of version 2 without controllers. */
void hwnas_conditions_visit_groups(const char *root, const char *controller,
                                   void (*visit)(void *context, const char *folder), void *context)
{
    char line[4096];
    char *own = hwnas_printf("%s/proc/self/cgroup", root);
    FILE *file = hwnas_file_stream(own);
    free(own);
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        const char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        const size_t n = (size_t)(path - ++controllers);
        if (n && !has_controller(controllers, n, controller))
            continue;
        char *mount =
            hwnas_printf("%s/sys/fs/cgroup%s%.*s", root, n ? "/" : "", (int)n, controllers);
        visit_up(mount, path + 1, visit, context);
        free(mount);
    }
    if (file)
        fclose(file);
}

/* ---- Together ---- */

hwnas_conditions hwnas_conditions_read(const char *root)
{
    hwnas_conditions out = {.quota = NAN, .quota_stops = NAN};
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores))
        CPU_SET(0, &cores);
    read_governors(&out, root, &cores);
    out.turbo = read_turbo(root);
    out.celsius = read_celsius(root);
    out.heat_stops = read_heat_stops(root, &cores);
    hwnas_conditions_visit_groups(root, "cpu", read_group, &out);
    return out;
}

static json_t *number_or_null(double number)
{
    return isfinite(number) ? json_real(number) : json_null();
}

json_t *hwnas_conditions_json(const hwnas_conditions *c)
{
    return json_pack(
        "{s:s?, s:o, s:o, s:o, s:o, s:o}", "governor", *c->governor ? c->governor : NULL, "turbo",
        c->turbo < 0 ? json_null() : json_boolean(c->turbo), "celsius", number_or_null(c->celsius),
        "quota_cores", number_or_null(c->quota), "quota_stops", number_or_null(c->quota_stops),
        "heat_stops", number_or_null(c->heat_stops));
}

double hwnas_conditions_count(double before, double after)
{
    return after > before ? after - before : 0;
}
