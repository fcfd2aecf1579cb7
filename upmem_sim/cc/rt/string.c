/* Strings (C17 7.24). */
#include <stddef.h>

size_t strlen(const char *string) {
    const char *end = string;
    while (*end) end++;
    return (size_t)(end - string);
}

size_t strnlen(const char *string, size_t limit) {
    size_t length = 0;
    while (length < limit && string[length]) length++;
    return length;
}

int strncmp(const char *left, const char *right, size_t limit) {
    for (; limit != 0; limit--, left++, right++) {
        unsigned char a = (unsigned char)*left, b = (unsigned char)*right;
        if (a != b) return a < b ? -1 : 1;
        if (a == 0) break;
    }
    return 0;
}

int strcmp(const char *left, const char *right) { return strncmp(left, right, (size_t)-1); }

char *stpcpy(char *restrict to, const char *restrict from) {
    while ((*to = *from) != 0) to++, from++;
    return to;
}

char *strcpy(char *restrict to, const char *restrict from) {
    stpcpy(to, from);
    return to;
}

char *stpncpy(char *restrict to, const char *restrict from, size_t limit) {
    for (; limit != 0 && *from; limit--) *to++ = *from++;
    char *end = to;
    for (; limit != 0; limit--) *to++ = 0;
    return end;
}

char *strncpy(char *restrict to, const char *restrict from, size_t limit) {
    stpncpy(to, from, limit);
    return to;
}

char *strcat(char *restrict to, const char *restrict from) {
    stpcpy(to + strlen(to), from);
    return to;
}

char *strncat(char *restrict to, const char *restrict from, size_t limit) {
    char *end = to + strlen(to);
    for (; limit != 0 && *from; limit--) *end++ = *from++;
    *end = 0;
    return to;
}

char *strchr(const char *string, int character) {
    for (;; string++) {
        if (*string == (char)character) return (char *)string;
        if (*string == 0) return NULL;
    }
}

char *strrchr(const char *string, int character) {
    char *last = NULL;
    for (;; string++) {
        if (*string == (char)character) last = (char *)string;
        if (*string == 0) return last;
    }
}

size_t strspn(const char *string, const char *accept) {
    size_t length = 0;
    while (string[length] && strchr(accept, string[length])) length++;
    return length;
}

size_t strcspn(const char *string, const char *reject) {
    size_t length = 0;
    while (string[length] && !strchr(reject, string[length])) length++;
    return length;
}

char *strpbrk(const char *string, const char *accept) {
    string += strcspn(string, accept);
    return *string ? (char *)string : NULL;
}

char *strstr(const char *string, const char *part) {
    size_t length = strlen(part);
    for (;; string++) {
        if (strncmp(string, part, length) == 0) return (char *)string;
        if (*string == 0) return NULL;
    }
}

char *strsep(char **restrict string, const char *restrict delimiters) {
    char *start = *string;
    if (start == NULL) return NULL;
    char *end = start + strcspn(start, delimiters);
    *string = *end ? end + 1 : NULL;
    *end = 0;
    return start;
}

char *strtok_r(char *restrict string, const char *restrict delimiters, char **restrict state) {
    if (string == NULL) string = *state;
    if (string == NULL) return NULL;
    string += strspn(string, delimiters);
    *state = string;
    return *string ? strsep(state, delimiters) : NULL;
}

char *strlwr(char *string) {
    for (char *p = string; *p; p++)
        if (*p >= 'A' && *p <= 'Z') *p += 'a' - 'A';
    return string;
}

char *strupr(char *string) {
    for (char *p = string; *p; p++)
        if (*p >= 'a' && *p <= 'z') *p -= 'a' - 'A';
    return string;
}

char *strrev(char *string) {
    char *low = string, *high = string + strlen(string);
    while (low < high) {
        char kept = *low;
        *low++ = *--high;
        *high = kept;
    }
    return string;
}
