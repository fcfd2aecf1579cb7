/* Numbers in text (C17 7.22.1); atol saturates and sets ERANGE. */
#include <errno.h>
#include <limits.h>

long long atol(const char *text) {
    while (*text == ' ' || (*text >= '\t' && *text <= '\r')) text++;
    int negative = *text == '-';
    if (*text == '-' || *text == '+') text++;
    unsigned long long limit = negative ? (unsigned long long)LLONG_MAX + 1 : LLONG_MAX;
    unsigned long long value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        unsigned long long digit = (unsigned long long)(*text - '0');
        if (value > (limit - digit) / 10) {
            errno = ERANGE;
            return negative ? LLONG_MIN : LLONG_MAX;
        }
        value = value * 10 + digit;
    }
    return negative ? (long long)-value : (long long)value;
}

int atoi(const char *text) { return (int)atol(text); }
