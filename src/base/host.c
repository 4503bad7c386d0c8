#include "base/host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"

void hwnas_host_id_of(char out[HWNAS_HOST_ID], const char *machine_id, const char *name)
{
    const XXH64_hash_t hash =
        XXH3_64bits_withSeed(name, strlen(name), XXH3_64bits(machine_id, strlen(machine_id)));
    snprintf(out, HWNAS_HOST_ID, "%016llx", (unsigned long long)hash);
}

void hwnas_host_id(char out[HWNAS_HOST_ID])
{
    char id[64] = "", name[256] = "";
    FILE *file = hwnas_file_stream("/etc/machine-id");
    if (file && !fgets(id, sizeof id, file))
        *id = '\0';
    if (file)
        fclose(file);
    if (gethostname(name, sizeof name - 1))
        *name = '\0';
    hwnas_host_id_of(out, id, name);
}
