/* Any bytes as a recorded profile: it is refused with a message, or what is written of it is read
 * as the same again. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "profile/record.h"

/* Yours to free(). */
static char *write_profile(const hwnas_profile *profile)
{
    json_t *json = hwnas_profile_json(profile);
    FUZZ_CHECK(json);
    char *text = json_dumps(json, JSON_COMPACT);
    FUZZ_CHECK(text);
    json_decref(json);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hwnas_profile *profile = NULL, *again = NULL;
    hwnas_status status = hwnas_profile_load(&profile, fuzz_file(data, size, "fuzz.json"));
    if (status != HWNAS_OK) {
        fuzz_check_refused(status);
        return 0;
    }
    char *first = write_profile(profile);
    status =
        hwnas_profile_load(&again, fuzz_file((const uint8_t *)first, strlen(first), "again.json"));
    FUZZ_CHECK(status == HWNAS_OK);
    char *second = write_profile(again);
    FUZZ_CHECK(!strcmp(first, second));
    free(first);
    free(second);
    hwnas_profile_free(profile);
    hwnas_profile_free(again);
    return 0;
}
