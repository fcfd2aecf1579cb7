// Bit counts: __clzsi2 __ctzsi2 __popcountsi2 (r1) -> r1, and of 64 bits (d0) -> r1.
// Trailing zeros are the ones of (x - 1) & ~x. Of 0: clz and ctz give the width.
    .section .text.__clzsi2
    .globl __clzsi2
__clzsi2:
    clz r1, r1
    jump r23

    .section .text.__clzdi2
    .globl __clzdi2
__clzdi2:
    clz r0, r0, max, .Lclz_low
    move r1, r0
    jump r23
.Lclz_low:
    clz r1, r1
    add r1, r1, 32
    jump r23

    .section .text.__ctzsi2
    .globl __ctzsi2
__ctzsi2:
    add r0, r1, -1
    andn r1, r1, r0
    cao r1, r1
    jump r23

    .section .text.__ctzdi2
    .globl __ctzdi2
__ctzdi2:
    add r2, r1, -1
    andn r1, r1, r2
    cao r1, r1, max, .Lctz_high
    jump r23
.Lctz_high:
    add r2, r0, -1
    andn r0, r0, r2
    cao r0, r0
    add r1, r1, r0
    jump r23

    .section .text.__popcountsi2
    .globl __popcountsi2
__popcountsi2:
    cao r1, r1
    jump r23

    .section .text.__popcountdi2
    .globl __popcountdi2
__popcountdi2:
    cao r0, r0
    cao r1, r1
    add r1, r1, r0
    jump r23
