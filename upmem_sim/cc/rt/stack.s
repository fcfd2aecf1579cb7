// check_stack() -> r1: bytes left on the caller's stack: r22 minus its lower end, which is the end
// that the linker's table gives, minus its size. (Stacks grow down.)
    .section .text.check_stack
    .globl check_stack
check_stack:
    lw r0, id8, __sys_thread_stack_table_ptr + 4
    lw r1, id4, __stack_sizes
    sub r0, r0, r1
    sub r1, r22, r0
    jump r23

    .section .rodata.__stack_sizes
    .p2align 2
__stack_sizes:
    .word STACK_SIZE_TASKLET_0
    .word STACK_SIZE_TASKLET_1
    .word STACK_SIZE_TASKLET_2
    .word STACK_SIZE_TASKLET_3
    .word STACK_SIZE_TASKLET_4
    .word STACK_SIZE_TASKLET_5
    .word STACK_SIZE_TASKLET_6
    .word STACK_SIZE_TASKLET_7
    .word STACK_SIZE_TASKLET_8
    .word STACK_SIZE_TASKLET_9
    .word STACK_SIZE_TASKLET_10
    .word STACK_SIZE_TASKLET_11
    .word STACK_SIZE_TASKLET_12
    .word STACK_SIZE_TASKLET_13
    .word STACK_SIZE_TASKLET_14
    .word STACK_SIZE_TASKLET_15
    .word STACK_SIZE_TASKLET_16
    .word STACK_SIZE_TASKLET_17
    .word STACK_SIZE_TASKLET_18
    .word STACK_SIZE_TASKLET_19
    .word STACK_SIZE_TASKLET_20
    .word STACK_SIZE_TASKLET_21
    .word STACK_SIZE_TASKLET_22
    .word STACK_SIZE_TASKLET_23
