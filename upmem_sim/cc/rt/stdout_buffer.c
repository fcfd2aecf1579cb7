/* The log's ring, unless the program defines its own (STDOUT_BUFFER_INIT). */
#include <attributes.h>

__mram_noinit unsigned char __stdout_buffer[1 << 20];
const unsigned int __stdout_buffer_size = 1 << 20;
