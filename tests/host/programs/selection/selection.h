#define CAPACITY 4096
#define BLOCK 32
