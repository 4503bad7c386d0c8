#include "profile/record.h"

#include "profile/fields.h"

static json_t *row_json(const hwnas_profile_row *row)
{
    json_t *json = json_object();
    for (const hwnas_profile_field *f = hwnas_profile_fields; f->name; f++)
        if (hwnas_field_applies(f, row))
            json_object_set_new(json, f->name, hwnas_field_json(f, row));
    if (row->layers)
        json_object_set_new(json, "layers", hwnas_layers_json(row->layers));
    return json;
}

static json_t *device_json(const hwnas_profile_device *device)
{
    const hwnas_device_info *info = &device->info;
    return json_pack("{s:s, s:s, s:s, s:s}", "spelling", device->spelling, "name", info->name,
                     "library", info->library, "isa", info->isa);
}

json_t *hwnas_profile_json(const hwnas_profile *profile)
{
    json_t *rows = json_array(), *devices = json_array();
    for (size_t i = 0; i < profile->n_devices; i++)
        json_array_append_new(devices, device_json(&profile->devices[i]));
    for (size_t i = 0; i < profile->n_rows; i++)
        json_array_append_new(rows, row_json(&profile->rows[i]));
    return json_pack("{s:s, s:i, s:O?, s:o, s:o}", "format", "hwnas.profile", "version", 1,
                     "device", json_array_get(devices, 0), "devices", devices, "rows", rows);
}
