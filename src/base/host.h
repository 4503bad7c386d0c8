/* host.h: which machine this is, for what is kept where several machines see it. */
#ifndef HWNAS_BASE_HOST_H
#define HWNAS_BASE_HOST_H

enum { HWNAS_HOST_ID = 17 };

/* 16 hexadecimal digits that tell machines apart, also those with the same processor: a hash of
 * /etc/machine-id (machine-id(5)) and of the host's name, as images of containers share the one and
 * cloned machines may share the other. */
void hwnas_host_id(char out[HWNAS_HOST_ID]);
/* The same of other contents. */
void hwnas_host_id_of(char out[HWNAS_HOST_ID], const char *machine_id, const char *name);

#endif
