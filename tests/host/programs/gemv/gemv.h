#include <stdint.h>

#define MAX_ROWS 64
#define MAX_COLUMNS 128

struct gemv_arguments {
    uint32_t rows; /* even */
    uint32_t columns;
};
