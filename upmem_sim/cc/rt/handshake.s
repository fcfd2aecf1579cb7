// handshake_notify(), handshake_wait_for(r1 = notifier) -> r1. One byte for each notifier: 0xFF
// nothing, 0x80 it sleeps until somebody waits for it, else the number of the tasklet that waits.
// To wait for a tasklet that there is not is fault 3.
    .section .text.handshake_notify
    .globl handshake_notify
handshake_notify:
    move r2, __handshake_lock
    acquire r2, 0, nz, .
    lbu r3, id, __handshake_state
    jeq r3, 255, .Lsleep
.Lresume:
    resume r3, 0, nz, .Lresume
    sb id, __handshake_state, -1
    release r2, 0, nz, .Lout
.Lsleep:
    sb id, __handshake_state, -128
    release r2, 0, nz, .Lstop
.Lstop:
    stop
.Lout:
    jump r23

    .section .text.handshake_wait_for
    .globl handshake_wait_for
handshake_wait_for:
    jgeu r1, NR_TASKLETS, .Lnobody
    move r2, __handshake_lock
    acquire r2, 0, nz, .
    lbu r3, r1, __handshake_state
    jeq r3, 255, .Lwait
    jeq r3, 128, .Lmeet
    release r2, 0, nz, .Ltaken
.Ltaken:
    move r1, 7
    sw id4, __upmem_errno, r1
    jump r23
.Lwait:
    sb_id r1, __handshake_state
    release r2, 0, nz, .Lstop_waiting
.Lstop_waiting:
    stop
    move r1, 0
    jump r23
.Lmeet:
    sb r1, __handshake_state, -1
.Lresume_notifier:
    resume r1, 0, nz, .Lresume_notifier
    move r1, 0
    release r2, 0, nz, .Lmet
.Lmet:
    jump r23
.Lnobody:
    fault 3

    .section .data.immediate_memory.__handshake_state
__handshake_state:
    .fill 24, 1, 255

    .section .atomic
__handshake_lock:
    .byte 0
