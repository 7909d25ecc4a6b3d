/* Makes chosen calls to the file system fail; see faulty_storage.py.

   FAULT_AT=errno:calls:skip:times:path. A call of the list fails if its path
   contains `path`, from the (skip + 1)-th such call on, `times` times
   (0 = always). FAULT_LOG names a file that gets a line for each failure.
   A process may also set the rule of its own by set_fault. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int matched;
static char own_rule[4096];

/* Sets the rule of this process, "" for none; returns the calls it matched. */
int set_fault(const char *rule) {
  strncpy(own_rule, rule, sizeof own_rule - 1);
  return atomic_exchange(&matched, 0);
}

static const char *current_rule(void) {
  return own_rule[0] ? own_rule : getenv("FAULT_AT");
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int in_list(const char *list, const char *end, const char *call) {
  size_t n = strlen(call);
  for (const char *p = list; p < end; p++) {
    if (!strncmp(p, call, n) && (p[n] == ',' || p[n] == ':')) return 1;
    while (p < end && *p != ',') p++;
  }
  return 0;
}

/* Returns whether the call must fail, and sets errno. */
static int fails(const char *call, const char *path) {
  const char *rule = current_rule();
  if (!rule || !path) return 0;
  int number = atoi(rule);
  const char *calls = strchr(rule, ':');
  const char *skip = calls ? strchr(calls + 1, ':') : 0;
  const char *times = skip ? strchr(skip + 1, ':') : 0;
  const char *part = times ? strchr(times + 1, ':') : 0;
  if (!part || !strstr(path, part + 1)) return 0;
  if (!in_list(calls + 1, skip, call)) return 0;
  int at = atomic_fetch_add(&matched, 1);
  int first = atoi(skip + 1), count = atoi(times + 1);
  if (at < first || (count && at >= first + count)) return 0;
  const char *log = getenv("FAULT_LOG");
  if (log) {
    static int (*real_open)(const char *, int, ...);
    static ssize_t (*real_write)(int, const void *, size_t);
    if (!real_open) real_open = dlsym(RTLD_NEXT, "open");
    if (!real_write) real_write = dlsym(RTLD_NEXT, "write");
    int fd = real_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    char line[4200];
    int n = snprintf(line, sizeof line, "%s %s\n", call, path);
    if (fd >= 0 && real_write(fd, line, n) < 0) n = 0;
    if (fd >= 0) close(fd);
  }
  errno = number;
  return 1;
}

static int fails_fd(const char *call, int fd) {
  if (!current_rule() || fd < 3) return 0;
  char name[64], path[4096];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(name, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return path[0] == '/' && fails(call, path);
}

#define OPEN(name, ...) \
  mode_t mode = 0; \
  if (flags & (O_CREAT | O_TMPFILE)) { \
    va_list rest; \
    va_start(rest, flags); \
    mode = va_arg(rest, mode_t); \
    va_end(rest); \
  } \
  if (fails(flags & (O_WRONLY | O_RDWR) ? "create" : "open", path)) return -1; \
  REAL(name); \
  return real(__VA_ARGS__, mode)

int open(const char *path, int flags, ...) { OPEN(open, path, flags); }
int open64(const char *path, int flags, ...) { OPEN(open64, path, flags); }
int openat(int at, const char *path, int flags, ...) {
  OPEN(openat, at, path, flags);
}
int openat64(int at, const char *path, int flags, ...) {
  OPEN(openat64, at, path, flags);
}

#define ON_FD(result, name, call, parameters, ...) \
  result name parameters { \
    if (fails_fd(call, fd)) return -1; \
    REAL(name); \
    return real(__VA_ARGS__); \
  }

ON_FD(ssize_t, write, "write", (int fd, const void *b, size_t n), fd, b, n)
ON_FD(ssize_t, pwrite, "write", (int fd, const void *b, size_t n, off_t o),
      fd, b, n, o)
ON_FD(ssize_t, pwrite64, "write",
      (int fd, const void *b, size_t n, off64_t o), fd, b, n, o)
ON_FD(ssize_t, writev, "write", (int fd, const struct iovec *v, int n),
      fd, v, n)
ON_FD(ssize_t, read, "read", (int fd, void *b, size_t n), fd, b, n)
ON_FD(ssize_t, pread, "read", (int fd, void *b, size_t n, off_t o),
      fd, b, n, o)
ON_FD(ssize_t, pread64, "read", (int fd, void *b, size_t n, off64_t o),
      fd, b, n, o)
ON_FD(int, fsync, "fsync", (int fd), fd)
ON_FD(int, fdatasync, "fsync", (int fd), fd)

#define ON_PATH(name, call, parameters, ...) \
  int name parameters { \
    if (fails(call, path)) return -1; \
    REAL(name); \
    return real(__VA_ARGS__); \
  }

ON_PATH(rename, "rename", (const char *path, const char *to), path, to)
ON_PATH(renameat, "rename",
        (int a, const char *path, int b, const char *to), a, path, b, to)
ON_PATH(unlink, "remove", (const char *path), path)
ON_PATH(unlinkat, "remove", (int at, const char *path, int flags),
        at, path, flags)
ON_PATH(rmdir, "remove", (const char *path), path)
ON_PATH(mkdir, "mkdir", (const char *path, mode_t mode), path, mode)
ON_PATH(mkdirat, "mkdir", (int at, const char *path, mode_t mode),
        at, path, mode)

ON_FD(int, flock, "flock", (int fd, int how), fd, how)

/* close(2) reports what NFS and quotas noticed late; the file is closed. */
int close(int fd) {
  int failed = fails_fd("close", fd), number = errno;
  REAL(close);
  int result = real(fd);
  if (!failed) return result;
  errno = number;
  return -1;
}
