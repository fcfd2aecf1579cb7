// Start-up of programs that print: tasklet 0 empties the log before anything else, and then goes the
// way of crt0.s. State: {bytes to the next message in the ring, 1 after it has wrapped}.
    .section .text.__bootstrap
    .globl __bootstrap
__bootstrap:
    jneq id, 0, __sys_start
    move r0, __stdout_buffer_state
    sd r0, 0, 0
    jump __sys_start

    .section .dpu_host
    .globl __stdout_buffer_state
    .p2align 3
__stdout_buffer_state:
    .zero 8
    .size __stdout_buffer_state, 8
