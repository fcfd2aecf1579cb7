/* Queues between the host and running DPUs, which only chips of version v1B have. */
#error "wramfifo.h: FIFOs to running DPUs need chip v1B; this compiler is for v1A"
