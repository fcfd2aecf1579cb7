// Ring links of the wait queues, one byte a tasklet (a tasklet waits in one queue at a time). Low in
// WRAM, where stores of the tasklet number reach.
    .section .data.immediate_memory.__sys_wq_table
    .globl __sys_wq_table
__sys_wq_table:
    .zero 24
    .size __sys_wq_table, 24
