/* Interface of the UPMEM SDK that only chips of version v1B have. */
#error "dpu_fifo.h: FIFOs to running DPUs need chip v1B; libdpu simulates v1A"
