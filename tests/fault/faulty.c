/* faulty.c: the program itself, run again and again with another fault each time.
 *
 * It reads lines from standard input, "FAULT N DIRECTORY ARGUMENT..." with tabs between, and for
 * each forks a process that runs the program in the directory, with the files out and err; the N-th
 * allocation or write since main() fails, in one of the ways below. It answers "STATUS SEEN": the
 * exit status, negative for a signal, and how many allocations or writes there were.
 *
 *     none     nothing fails; SEEN counts allocations
 *     memory   one allocation fails
 *     starved  so do all later ones
 *     eio      one write fails by EIO
 *     full     one write writes a half, and all later ones fail by ENOSPC
 *
 * An allocation is one of anybody in the process: the libraries' too. A write is whatever puts
 * bytes or a name on a disk: write, pwrite, ftruncate, fsync, fdatasync, rename, linkat.
 *
 * FAULTY_STACK=yes in the environment: the stack of what fails first goes to standard error. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HWNAS_SANITIZED /* what stands in the place of malloc() runs before the sanitizer does */
#pragma clang attribute push(__attribute__((no_sanitize("address", "undefined"))), apply_to = function)
#endif

typedef enum fault { NONE, MEMORY, STARVED, EIO_ONCE, FULL } fault;
static const char *const names[] = {"none", "memory", "starved", "eio", "full"};

static fault active = NONE;
static long chosen;
static bool is_running;   /* in main() of a child */
static atomic_long *seen; /* shared with the parent */

static void show_stack(void)
{
    void *frames[64];
    if (!getenv("FAULTY_STACK"))
        return;
    is_running = false; /* it allocates */
    backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
    is_running = true;
}

/* ---- Allocations ---- */

#ifdef HWNAS_SANITIZED
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif
void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *old, size_t size);
void *REAL(memalign)(size_t alignment, size_t size);

static bool has_no_memory(void)
{
    if (!is_running || active > STARVED)
        return false;
    const long n = 1 + atomic_fetch_add(seen, 1);
    if (active == NONE || (active == MEMORY ? n != chosen : n < chosen))
        return false;
    if (n == chosen)
        show_stack();
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return has_no_memory() ? NULL : REAL(malloc)(size);
}

void *calloc(size_t n, size_t size)
{
    return has_no_memory() ? NULL : REAL(calloc)(n, size);
}

void *realloc(void *old, size_t size)
{
    return has_no_memory() ? NULL : REAL(realloc)(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return has_no_memory() ? NULL : REAL(memalign)(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *p = has_no_memory() ? NULL : REAL(memalign)(alignment, size);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

/* ---- Writes ---- */

/* An error's number, 0, or -1 for "half of it". */
static int fails_to_write(void)
{
    if (!is_running || active < EIO_ONCE)
        return 0;
    const long n = 1 + atomic_fetch_add(seen, 1);
    if (n == chosen)
        show_stack();
    if (active == EIO_ONCE)
        return n == chosen ? EIO : 0;
    return n > chosen ? ENOSPC : n == chosen ? -1 : 0;
}

/* Of what has no half. */
static bool is_refused(void)
{
    const int error = fails_to_write();
    if (error)
        errno = error < 0 ? ENOSPC : error;
    return error != 0;
}

/* How much is to be written; -1: nothing, by errno. Messages are not on the disk. */
static ssize_t writable(int fd, size_t size)
{
    const int error = fd == STDERR_FILENO ? 0 : fails_to_write();
    if (error > 0 || (error < 0 && size < 2)) {
        errno = error > 0 ? error : ENOSPC;
        return -1;
    }
    return (ssize_t)(error < 0 ? size / 2 : size);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    const ssize_t n = writable(fd, size);
    return n < 0 ? n : syscall(SYS_write, fd, bytes, n);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
    const ssize_t n = writable(fd, size);
    return n < 0 ? n : syscall(SYS_pwrite64, fd, bytes, n, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return pwrite64(fd, bytes, size, offset);
}

int ftruncate64(int fd, off64_t length)
{
    return is_refused() ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length)
{
    return ftruncate64(fd, length);
}

int fsync(int fd)
{
    return is_refused() ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return is_refused() ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int rename(const char *from, const char *to)
{
    return is_refused() ? -1 : (int)syscall(SYS_rename, from, to);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    return is_refused() ? -1 : (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    return is_refused() ? -1 : (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
}

/* ---- Runs ---- */

enum { MAX_ARGUMENTS = 64, SECONDS = 120 };

int __real_main(int argc, char **argv);
int __wrap_main(int argc, char **argv);

static void open_as(int fd, const char *path, int flags)
{
    const int file = open(path, flags, 0666);
    if (file < 0 || dup2(file, fd) < 0)
        _exit(99);
    close(file);
}

static void run(char **fields, int n)
{
    active = NONE;
    while (strcmp(names[active], fields[0]))
        active++;
    chosen = atol(fields[1]);
    if (chdir(fields[2]))
        _exit(99);
    open_as(STDIN_FILENO, "/dev/null", O_RDONLY);
    open_as(STDOUT_FILENO, "out", O_WRONLY | O_CREAT | O_TRUNC);
    open_as(STDERR_FILENO, "err", O_WRONLY | O_CREAT | O_TRUNC);
    const struct rlimit no_core = {0};
    setrlimit(RLIMIT_CORE, &no_core);
    alarm(SECONDS); /* a hang is a finding */
    fields[2] = "hwnas";
    is_running = true;
    exit(__real_main(n - 2, fields + 2));
}

int __wrap_main(int argc, char **argv)
{
    char *line = NULL;
    size_t size = 0;
    (void)argc;
    (void)argv;
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    while (getline(&line, &size, stdin) > 0) {
        char *fields[MAX_ARGUMENTS + 1] = {0}, *rest = line;
        int n = 0, status = 0;
        line[strcspn(line, "\n")] = '\0';
        for (char *field; n < MAX_ARGUMENTS && (field = strsep(&rest, "\t"));)
            fields[n++] = field;
        atomic_store(seen, 0);
        const pid_t child = fork();
        if (child == 0)
            run(fields, n);
        if (child < 0 || waitpid(child, &status, 0) < 0)
            return 1;
        printf("%d %ld\n", WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status),
               atomic_load(seen));
        fflush(stdout);
    }
    free(line);
    return 0;
}

#ifdef HWNAS_SANITIZED
#pragma clang attribute pop
#endif
