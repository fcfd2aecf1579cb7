/* Interface of the UPMEM SDK that only chips of version v1B have. */
#error "dpu_bank_interface_pmc.h: counters of the bank interface need chip v1B; libdpu simulates v1A"
