/* Kinds of ASCII characters (C17 7.4). */
#ifndef UPMEM_CTYPE_H
#define UPMEM_CTYPE_H
#define __UPMEM_CTYPE static inline __attribute__((unused)) int
__UPMEM_CTYPE isdigit(int c) { return c >= '0' && c <= '9'; }
__UPMEM_CTYPE islower(int c) { return c >= 'a' && c <= 'z'; }
__UPMEM_CTYPE isupper(int c) { return c >= 'A' && c <= 'Z'; }
__UPMEM_CTYPE isalpha(int c) { return islower(c) || isupper(c); }
__UPMEM_CTYPE isalnum(int c) { return isalpha(c) || isdigit(c); }
__UPMEM_CTYPE isblank(int c) { return c == ' ' || c == '\t'; }
__UPMEM_CTYPE isspace(int c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
__UPMEM_CTYPE iscntrl(int c) { return (c >= 0 && c < 32) || c == 127; }
__UPMEM_CTYPE isprint(int c) { return c >= 32 && c < 127; }
__UPMEM_CTYPE isgraph(int c) { return c > 32 && c < 127; }
__UPMEM_CTYPE ispunct(int c) { return isgraph(c) && !isalnum(c); }
__UPMEM_CTYPE isxdigit(int c) {
    return isdigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
__UPMEM_CTYPE isascii(int c) { return c >= 0 && c < 128; }
__UPMEM_CTYPE toascii(int c) { return c & 127; }
__UPMEM_CTYPE tolower(int c) { return isupper(c) ? c + ('a' - 'A') : c; }
__UPMEM_CTYPE toupper(int c) { return islower(c) ? c - ('a' - 'A') : c; }
#undef __UPMEM_CTYPE
#endif
