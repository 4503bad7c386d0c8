#include <gmp.h>
#include <oneapi/dnnl/dnnl.h>
#include <protobuf-c/protobuf-c.h>
#include <sqlite3.h>
#include <stdio.h>
#include <xgboost/c_api.h>
#include <yaml.h>

#include "cli/cli.h"

static const hwnas_usage usage = {.synopsis = "version",
                                  .summary = "Prints the versions of hwnas and of its libraries."};

hwnas_status hwnas_cmd_version(int argc, char **argv)
{
    bool as_json = false, done;
    int n, x, y, z;
    const hwnas_option options[] = {
        {"json", 0, HWNAS_OPTION_FLAG, &as_json, NULL, "one JSON object"}, {0}};
    TRY(hwnas_options_parse(&usage, options, argc, argv, NULL, &n, &done));
    if (done)
        return HWNAS_OK;
    const dnnl_version_t *dnnl = dnnl_version();
    char onednn[32], xgboost[32];
    snprintf(onednn, sizeof onednn, "%d.%d.%d", dnnl->major, dnnl->minor, dnnl->patch);
    XGBoostVersion(&x, &y, &z);
    snprintf(xgboost, sizeof xgboost, "%d.%d.%d", x, y, z);
    const char *const rows[][2] = {
        {"hwnas", hwnas_version()},
        {"oneDNN", onednn},
        {"XGBoost", xgboost},
        {"SQLite", sqlite3_libversion()},
        {"protobuf-c", protobuf_c_version()},
        {"libyaml", yaml_get_version_string()},
        {"jansson", JANSSON_VERSION},
        {"GMP", gmp_version},
    };
    hwnas_str text = {0};
    json_t *json = json_pack("{s:s, s:i}", "format", "hwnas.version", "version", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hwnas_str_addf(&text, "%-10s %s\n", rows[i][0], rows[i][1]);
        json_object_set_new(json, rows[i][0], json_string(rows[i][1]));
    }
    if (!as_json) {
        json_decref(json);
        return hwnas_print_text(&text);
    }
    hwnas_str_done(&text);
    return hwnas_print_json(json);
}
