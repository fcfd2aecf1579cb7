/* What a rank is made of: the part of the UPMEM SDK's description that programs read. */
#ifndef DPU_DESCRIPTION_H
#define DPU_DESCRIPTION_H

#include "dpu_types.h"

typedef struct _dpu_description_t {
    struct {
        struct {
            uint8_t nr_of_control_interfaces;
            uint8_t nr_of_dpus_per_control_interface;
        } topology;
        struct {
            mram_size_t mram_size; /* bytes */
            wram_size_t wram_size; /* 32-bit words */
            iram_size_t iram_size; /* instructions */
        } memories;
        struct {
            uint32_t fck_frequency_in_mhz;
        } timings;
        struct {
            uint32_t nr_of_threads;
            uint32_t nr_of_atomic_bits;
        } dpu;
    } hw;
} *dpu_description_t;

#endif
