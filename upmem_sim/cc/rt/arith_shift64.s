// 64-bit shifts by a variable: __ashldi3 __lshrdi3 __ashrdi3 (value d0, amount r3) -> d0.
// Amounts 0 to 63; lslx and lsrx give the bits that cross from one word to the other.
    .section .text.__ashldi3
    .globl __ashldi3
__ashldi3:
    lsl r4, r1, r3, sh32, .Lfar_left
    lslx r5, r1, r3
    lsl r0, r0, r3
    or r0, r0, r5
    move r1, r4
    jump r23
.Lfar_left:
    move r0, r4
    move r1, 0
    jump r23

    .section .text.__lshrdi3
    .globl __lshrdi3
__lshrdi3:
    lsr r4, r0, r3, sh32, .Lfar_right
    lsrx r5, r0, r3
    lsr r1, r1, r3
    or r1, r1, r5
    move r0, r4
    jump r23
.Lfar_right:
    move.u d0, r4
    jump r23

    .section .text.__ashrdi3
    .globl __ashrdi3
__ashrdi3:
    asr r4, r0, r3, sh32, .Lfar_signed
    lsrx r5, r0, r3
    lsr r1, r1, r3
    or r1, r1, r5
    move r0, r4
    jump r23
.Lfar_signed:
    move.s d0, r4
    jump r23
