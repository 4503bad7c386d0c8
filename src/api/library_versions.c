/* library_versions.c: the versions of all that the library is made of. */
#include <gmp.h>
#include <jansson.h>
#include <oneapi/dnnl/dnnl.h>
#include <protobuf-c/protobuf-c.h>
#include <sqlite3.h>
#include <stdio.h>
#include <xgboost/c_api.h>
#include <yaml.h>

#include "api/report_handle.h"
#include "base/c_locale.h"

hwnas_status hwnas_library_versions(hwnas_report **out)
{
    IN_C_LOCALE;
    const dnnl_version_t *dnnl = dnnl_version();
    char onednn[32], xgboost[32];
    int x, y, z;
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
    hwnas_rendering told = {.json =
                                json_pack("{s:s, s:i}", "format", "hwnas.version", "version", 1)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hwnas_str_addf(&told.text, "%-10s %s\n", rows[i][0], rows[i][1]);
        json_object_set_new(told.json, rows[i][0], json_string(rows[i][1]));
    }
    *out = hwnas_report_of(&told);
    return HWNAS_OK;
}
