/* Strings and memory (C17 7.24). Short copies of constant length are done in line. */
#ifndef UPMEM_STRING_H
#define UPMEM_STRING_H
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *left, const void *right, size_t size);
void *memchr(const void *area, int byte, size_t size);
size_t strlen(const char *string);
size_t strnlen(const char *string, size_t limit);
int strcmp(const char *left, const char *right);
int strncmp(const char *left, const char *right, size_t limit);
char *strcpy(char *restrict to, const char *restrict from);
char *strncpy(char *restrict to, const char *restrict from, size_t limit);
char *stpcpy(char *restrict to, const char *restrict from);
char *stpncpy(char *restrict to, const char *restrict from, size_t limit);
char *strcat(char *restrict to, const char *restrict from);
char *strncat(char *restrict to, const char *restrict from, size_t limit);
char *strchr(const char *string, int character);
char *strrchr(const char *string, int character);
size_t strspn(const char *string, const char *accept);
size_t strcspn(const char *string, const char *reject);
char *strpbrk(const char *string, const char *accept);
char *strstr(const char *string, const char *part);
char *strtok_r(char *restrict string, const char *restrict delimiters, char **restrict state);
char *strsep(char **restrict string, const char *restrict delimiters);
char *strlwr(char *string);
char *strupr(char *string);
char *strrev(char *string);
char *strerror(int number);

#define memcpy(to, from, size) __builtin_memcpy(to, from, size)
#define memmove(to, from, size) __builtin_memmove(to, from, size)
#define memset(to, byte, size) __builtin_memset(to, byte, size)
#define strxfrm strncpy
#define strcoll strcmp
#endif
