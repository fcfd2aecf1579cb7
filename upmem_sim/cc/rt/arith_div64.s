// 64-bit division: __udivdi3 __umoddi3 __divdi3 __moddi3 (dividend d0, divisor d2) -> d0.
// Shift and subtract, one round of 20 instructions without branches for each quotient bit; about 240
// instructions on the operands of PrIM's INT64 division (10 quotient bits), the count implied by its
// published throughput. A dividend below the divisor leaves early. The vendor's routines do not
// look for 32-bit operands either. Division by zero is fault 2; INT64_MIN / -1 wraps.

// Unsigned core: quotient d0, remainder d4; leaves r12, r13 alone.
    .section .text.__dpu_udivmod64
    .globl __dpu_udivmod64
__dpu_udivmod64:
    or zero, r2, r3, z, .Lzero_divisor
    sub zero, r1, r3
    subc zero, r0, r2, ltu, .Lsmaller
    clz r7, r0, nmax, .Ldividend_bits
    clz r7, r1
    add r7, r7, 32
.Ldividend_bits:
    clz r6, r2, nmax, .Ldivisor_bits
    clz r6, r3
    add r6, r6, 32
.Ldivisor_bits:
    sub r10, r6, r7
    add r10, r10, 1
// remainder:quotient = dividend shifted so that r10 (1 to 64) rounds remain
    jgeu r10, 32, .Lupper
    lsr r5, r1, r10
    lsrx r8, r0, r10
    or r5, r5, r8
    lsr r4, r0, r10
    lsrx r0, r1, r10
    move r1, 0, true, .Lstart
.Lupper:
    move r4, 0
    jeq r10, 64, .Lall
    lsr r5, r0, r10
    lsrx r8, r0, r10
    lsrx r9, r1, r10
    lsr r0, r1, r10
    or r0, r0, r8
    move r1, r9, true, .Lstart
.Lall:
    move r5, 0
.Lstart:
    move r6, 0
.Lround:
    lsr r7, r5, 31
    lsl_add r4, r7, r4, 1
    lsr r7, r0, 31
    lsl_add r5, r7, r5, 1
    lsr r7, r1, 31
    lsl_add r0, r7, r0, 1
    lsl r1, r1, 1
    or r1, r1, r6
// mask r8 = all ones if remainder >= divisor: the sign of divisor - remainder - 1
    not r9, r5
    not r8, r4
    add r9, r9, r3
    addc r8, r8, r2
    asr r8, r8, 31
    and r6, r8, 1
    and r9, r3, r8
    and r8, r2, r8
    sub r5, r5, r9
    subc r4, r4, r8
    add r10, r10, -1
    jneq r10, 0, .Lround
    lsr r7, r1, 31
    lsl_add r0, r7, r0, 1
    lsl_add r1, r6, r1, 1
    jump r23
.Lsmaller:
    movd d4, d0
    move r0, 0
    move r1, 0
    jump r23
.Lzero_divisor:
    fault 2

    .section .text.__udivdi3
    .globl __udivdi3
__udivdi3:
    move r12, r23
    call r23, __dpu_udivmod64
    jump r12

    .section .text.__umoddi3
    .globl __umoddi3
__umoddi3:
    move r12, r23
    call r23, __dpu_udivmod64
    movd d0, d4
    jump r12

// Signs by masks: x ^ m - m negates when m is all ones.
    .section .text.__divdi3
    .globl __divdi3
__divdi3:
    move r12, r23
    xor r13, r0, r2
    asr r13, r13, 31
    asr r4, r0, 31
    xor r0, r0, r4
    xor r1, r1, r4
    sub r1, r1, r4
    subc r0, r0, r4
    asr r4, r2, 31
    xor r2, r2, r4
    xor r3, r3, r4
    sub r3, r3, r4
    subc r2, r2, r4
    call r23, __dpu_udivmod64
    xor r0, r0, r13
    xor r1, r1, r13
    sub r1, r1, r13
    subc r0, r0, r13
    jump r12

    .section .text.__moddi3
    .globl __moddi3
__moddi3:
    move r12, r23
    asr r13, r0, 31
    xor r0, r0, r13
    xor r1, r1, r13
    sub r1, r1, r13
    subc r0, r0, r13
    asr r4, r2, 31
    xor r2, r2, r4
    xor r3, r3, r4
    sub r3, r3, r4
    subc r2, r2, r4
    call r23, __dpu_udivmod64
    xor r0, r4, r13
    xor r1, r5, r13
    sub r1, r1, r13
    subc r0, r0, r13
    jump r12
