/* Names of error numbers. */
#include <errno.h>

char *strerror(int number) {
    switch (number) {
        case 0: return "no error";
        case EALREADY: return "already in progress";
        case EINVAL: return "invalid argument";
        case ENOMEM: return "out of memory";
        case EOVERFLOW: return "overflow";
        case ERANGE: return "out of range";
        default: return "unknown error";
    }
}
