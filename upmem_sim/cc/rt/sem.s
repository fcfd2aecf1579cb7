// sem_take, sem_give(r1 = semaphore {last in queue, count, initial count, lock}); see barrier.s for
// the queue. A tasklet that takes the count below zero sleeps until it is first in the queue when
// another gives.
    .section .text.sem_take
    .globl sem_take
sem_take:
    lbu r2, r1, 3
    acquire r2, 0, nz, .
    lbs r3, r1, 1
    add r3, r3, -1
    sb r1, 1, r3
    extsb r3, r3, pl, .Ltaken
    lbu r4, r1, 0
    jeq r4, 255, .Lfirst
    lbu r5, r4, __sys_wq_table
    sb_id r4, __sys_wq_table
    sb id, __sys_wq_table, r5
    sb_id r1, 0
    release r2, 0, nz, .Lsleep
.Lfirst:
    sb_id id, __sys_wq_table
    sb_id r1, 0
    release r2, 0, nz, .Lsleep
.Lsleep:
    stop
    jump r23
.Ltaken:
    release r2, 0, nz, .Lout
.Lout:
    jump r23

    .section .text.sem_give
    .globl sem_give
sem_give:
    lbu r2, r1, 3
    acquire r2, 0, nz, .
    lbu r3, r1, 1
    lbu r4, r1, 0
    add r3, r3, 1
    sb r1, 1, r3
    jeq r4, 255, .Lgiven
    lbu r5, r4, __sys_wq_table
    jeq r5, r4, .Lonly
    lbu r6, r5, __sys_wq_table
    sb r4, __sys_wq_table, r6
    jump .Lresume
.Lonly:
    sb r1, 0, -1
.Lresume:
    resume r5, 0, nz, .Lresume
.Lgiven:
    release r2, 0, nz, .Ldone
.Ldone:
    jump r23
