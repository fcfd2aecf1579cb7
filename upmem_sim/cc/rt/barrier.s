// barrier_wait(r1 = barrier {last in queue, arrivals to come, initial count, lock}).
// The queue is a ring of bytes: each waiting tasklet holds the number of the next, the barrier that
// of the last (0xFF: nobody). Sleeping tasklets take no issue slots; the last one resumes them in
// the order in which they came. A waiter holds the lock for 14 instructions, which decides how long
// a barrier takes when all arrive together; the vendor's routine holds it for 13 to 15. With nobody
// waiting it was the only one expected, and the arrivals to come are as many as they were.
    .section .text.barrier_wait
    .globl barrier_wait
barrier_wait:
    lbu r2, r1, 3
    acquire r2, 0, nz, .
    lbu r3, r1, 1
    lbu r4, r1, 0
    jeq r3, 1, .Llast
    add r3, r3, -1
    sb r1, 1, r3
    move r7, id
    add r6, r7, __sys_wq_table
    jeq r4, 255, .Lfirst
    add r8, r4, __sys_wq_table
    lbu r5, r8, 0
    sb r8, 0, r7
    sb r6, 0, r5
    sb r1, 0, r7
    release r2, 0, nz, .Lsleep
.Lfirst:
    sb r6, 0, r7
    sb r1, 0, r7
    release r2, 0, nz, .Lsleep
.Lsleep:
    stop
    jump r23
.Llast:
    jeq r4, 255, .Lnobody
    move r5, r4
.Lnext:
    lbu r5, r5, __sys_wq_table
.Lresume:
    resume r5, 0, nz, .Lresume
    jneq r5, r4, .Lnext
    sb r1, 0, -1
    lbu r3, r1, 2
    sb r1, 1, r3
.Lnobody:
    release r2, 0, nz, .Lout
.Lout:
    jump r23
