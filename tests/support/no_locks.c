/* A library to be loaded before others: flock, links and renames that never replace fail, as on some mounts.

   NO_LOCKS and NO_LINKS are set where they shall fail. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>

int flock(int file, int operation) {
    int (*real)(int, int) = dlsym(RTLD_NEXT, "flock");
    if (getenv("NO_LOCKS")) { errno = ENOLCK; return -1; }
    return real(file, operation);
}

int link(const char *from, const char *to) {
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "link");
    if (getenv("NO_LINKS")) { errno = EPERM; return -1; }
    return real(from, to);
}

int linkat(int a, const char *from, int b, const char *to, int flags) {
    int (*real)(int, const char *, int, const char *, int) = dlsym(RTLD_NEXT, "linkat");
    if (getenv("NO_LINKS")) { errno = EPERM; return -1; }
    return real(a, from, b, to, flags);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    int (*real)(int, const char *, int, const char *, unsigned) = dlsym(RTLD_NEXT, "renameat2");
    if (getenv("NO_LINKS") && flags) { errno = EINVAL; return -1; }
    return real(a, from, b, to, flags);
}
