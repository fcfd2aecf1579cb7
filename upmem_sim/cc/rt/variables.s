// Variables of the run time: error number of each tasklet, clock rate (set when loading).
    .section .bss.__upmem_errno,"aw",@nobits
    .globl __upmem_errno
    .p2align 3
__upmem_errno:
    .zero 96
    .size __upmem_errno, 96

    .section .dpu_host
    .globl CLOCKS_PER_SEC
    .p2align 3
CLOCKS_PER_SEC:
    .word 350000000
    .size CLOCKS_PER_SEC, 4
    .zero 4
