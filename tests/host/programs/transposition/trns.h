#define ROWS 64
#define COLUMNS_PER_DPU 16
