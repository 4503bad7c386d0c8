/* roofline_cache.c: $XDG_CACHE_HOME/hwnas/roofline-HASH.json, whole or not at all. A file says its
 * key in full, so that neither a collision nor a copied home directory speaks for another machine.
 */
#include "measure/roofline_cache.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/home.h"
#include "base/host.h"
#include "base/str.h"

static const int VERSION = 4; /* of what the numbers mean: graphs, sizes */
static const size_t MAX_FILE = 1 << 16;
static const double MAX_AGE = 600; /* seconds, of one that was disturbed */

/* The value of a line of /proc/cpuinfo, or "". */
static void read_cpuinfo(char *out, size_t size, const char *name)
{
    char line[256];
    FILE *file = hwnas_file_stream("/proc/cpuinfo");
    *out = '\0';
    while (file && !*out && fgets(line, sizeof line, file))
        if (hwnas_starts_with(line, name) && strchr(line, ':'))
            snprintf(out, size, "%.*s", (int)strcspn(strchr(line, ':') + 1, "\n"),
                     strchr(line, ':') + 1);
    if (file)
        fclose(file);
}

/* What stands behind the number of a GPU: ":own" of "cuda:1:own". */
static const char *behind_number(const char *argument)
{
    const size_t n = strspn(argument, "0123456789");
    return argument[n] == ':' || !argument[n] ? argument + n : argument;
}

/* The device's spelling, but which of several equal GPUs it is. */
static char *kind_of(const char *device)
{
    const hwnas_device_ops *ops;
    const char *argument;
    if (hwnas_device_find(&ops, &argument, device) == HWNAS_OK && ops->count)
        return hwnas_printf("%s%s", ops->name, behind_number(argument));
    hwnas_error_clear();
    return hwnas_printf("%s", device);
}

char *hwnas_roofline_key(const char *device, const hwnas_device_info *info,
                         hwnas_precision precision)
{
    char microcode[64], host[HWNAS_HOST_ID];
    read_cpuinfo(microcode, sizeof microcode, "microcode");
    hwnas_host_id(host);
    char *kind = kind_of(device);
    char *key =
        hwnas_printf("%d; %s; %s; host %s; microcode%s; %d cores; %s; %s; %d threads; %s", VERSION,
                     kind, info->name, host, microcode, hwnas_device_cores(), info->library,
                     info->isa, info->threads, hwnas_precision_name(precision));
    free(kind);
    return key;
}

/* Yours to free(); NULL: there is no place for it. */
static char *path_of(const char *key)
{
    char name[48];
    snprintf(name, sizeof name, "roofline-%016llx.json",
             (unsigned long long)XXH3_64bits(key, strlen(key)));
    return hwnas_cache_path(name);
}

static json_t *encode_rate(const hwnas_rate *rate)
{
    return json_pack("[f, f, f]", rate->p50, rate->low, rate->high);
}

static bool decode_rate(hwnas_rate *out, json_t *json)
{
    return !json_unpack(json, "[F, F, F!]", &out->p50, &out->low, &out->high) && out->p50 > 0;
}

static bool decode(hwnas_roofline *out, json_t *json, const char *key)
{
    hwnas_roofline r = {0};
    const char *its_key;
    json_t *flops, *bandwidths;
    int is_unstable;
    if (json_unpack(json, "{s:s, s:i, s:b, s:i, s:F, s:F, s:o, s:o}", "key", &its_key, "precision",
                    (int *)&r.precision, "unstable", &is_unstable, "threads", &r.threads,
                    "call_seconds", &r.call_seconds, "cache_bytes", &r.cache_bytes, "flops", &flops,
                    "bandwidths", &bandwidths) ||
        strcmp(its_key, key) || !decode_rate(&r.flops, flops) ||
        json_array_size(bandwidths) != HWNAS_N_BANDWIDTHS)
        return false;
    for (size_t i = 0; i < HWNAS_N_BANDWIDTHS; i++) {
        json_t *rate, *row = json_array_get(bandwidths, i);
        if (json_unpack(row, "{s:F, s:o}", "bytes", &r.bandwidths[i].bytes, "rate", &rate) ||
            !decode_rate(&r.bandwidths[i].rate, rate) || r.bandwidths[i].bytes <= 0)
            return false;
    }
    r.is_unstable = is_unstable;
    *out = r;
    return true;
}

/* Seconds since the file was written. */
static double age_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? INFINITY : difftime(time(NULL), st.st_mtime);
}

bool hwnas_roofline_lookup(hwnas_roofline *out, const char *key)
{
    char *path = path_of(key), *text = NULL;
    size_t length = 0;
    bool is_known = false;
    if (path && hwnas_file_read(&text, &length, path, MAX_FILE) == HWNAS_OK) {
        json_t *json = json_loadb(text, length, 0, NULL);
        is_known = decode(out, json, key);
        json_decref(json);
    }
    if (is_known && out->is_unstable)
        is_known = age_of(path) <= MAX_AGE;
    hwnas_error_clear();
    free(text);
    free(path);
    return is_known;
}

void hwnas_roofline_keep(const hwnas_roofline *roofline, const char *key)
{
    char *path = path_of(key);
    if (!path)
        return;
    json_t *bandwidths = json_array();
    for (int i = 0; i < HWNAS_N_BANDWIDTHS; i++)
        json_array_append_new(bandwidths,
                              json_pack("{s:f, s:o}", "bytes", roofline->bandwidths[i].bytes,
                                        "rate", encode_rate(&roofline->bandwidths[i].rate)));
    json_t *json = json_pack("{s:s, s:i, s:b, s:i, s:f, s:f, s:o, s:o}", "key", key, "precision",
                             (int)roofline->precision, "unstable", roofline->is_unstable, "threads",
                             roofline->threads, "call_seconds", roofline->call_seconds,
                             "cache_bytes", roofline->cache_bytes, "flops",
                             encode_rate(&roofline->flops), "bandwidths", bandwidths);
    char *text = json_dumps(json, JSON_INDENT(1));
    hwnas_make_folders(path);
    if (text && hwnas_file_write(path, text, strlen(text)) != HWNAS_OK)
        hwnas_error_clear();
    json_decref(json);
    free(text);
    free(path);
}
