/* Makes calls fail as some file systems do: NO_FLOCK and NO_LINK are numbers of errors; NO_RENAME stands for EINVAL. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

static int fails(const char *name) {
    const char *value = getenv(name);
    if (value == NULL || *value == 0) return 0;
    errno = atoi(value);
    return 1;
}

int flock(int file, int how) {
    if (fails("NO_FLOCK")) return -1;
    return ((int (*)(int, int))dlsym(RTLD_NEXT, "flock"))(file, how);
}

int link(const char *from, const char *to) {
    if (fails("NO_LINK")) return -1;
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "link"))(from, to);
}

int linkat(int a, const char *from, int b, const char *to, int flags) {
    if (fails("NO_LINK")) return -1;
    return ((int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat"))(a, from, b, to, flags);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    if (fails("NO_RENAME")) return -1;
    return ((int (*)(int, const char *, int, const char *, unsigned))dlsym(RTLD_NEXT, "renameat2"))(a, from, b, to, flags);
}
