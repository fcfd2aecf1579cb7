// Start-up. Every tasklet begins here: it boots the next one, loads its stack pointer and return
// address from the table that the linker makes, and runs main. Tasklet 0 first frees the program's
// atomic bits (manual of the UPMEM SDK, "DPU ABI").
    .section .text.__bootstrap
    .weak __bootstrap
    .globl __sys_start
__bootstrap:
__sys_start:
    jneq id, 0, .Lboot_next
    move r0, __atomic_used_addr
    move r1, __atomic_end_addr
    jump .Lmore_bits
.Lfree:
    release r0, 0, nz, .Lfreed
.Lfreed:
    add r0, r0, 1
.Lmore_bits:
    jneq r0, r1, .Lfree
.Lboot_next:
    jeq id, NR_TASKLETS - 1, .Lrun
    boot id, 1
.Lrun:
    ld d22, id8, __sys_thread_stack_table_ptr
    jump main

// A tasklet that has finished stops; resumed by mistake, it stops again.
    .section .text.__sys_end
    .globl __sys_end
    .globl exit
__sys_end:
exit:
    stop
    jump __sys_end
