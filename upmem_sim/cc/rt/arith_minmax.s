// Smaller and larger of two: fminf fmaxf (r1, r0) -> r1, fmin fmax (d0, d2) -> d0, as C99 has them: a
// NaN operand gives the other one; -0 counts as less than +0.
    .section .text.fminf
    .globl fminf
fminf:
    move r4, 0x7f800000
    and r2, r1, 0x7fffffff
    and r3, r0, 0x7fffffff
    jgtu r2, r4, .Lfminf_second
    jgtu r3, r4, .Lfminf_first
    asr r4, r1, 31
    lsr r4, r4, 1
    xor r2, r1, r4
    asr r4, r0, 31
    lsr r4, r4, 1
    xor r3, r0, r4
    jlts r2, r3, .Lfminf_first
.Lfminf_second:
    move r1, r0
.Lfminf_first:
    jump r23

    .section .text.fmaxf
    .globl fmaxf
fmaxf:
    move r4, 0x7f800000
    and r2, r1, 0x7fffffff
    and r3, r0, 0x7fffffff
    jgtu r2, r4, .Lfmaxf_second
    jgtu r3, r4, .Lfmaxf_first
    asr r4, r1, 31
    lsr r4, r4, 1
    xor r2, r1, r4
    asr r4, r0, 31
    lsr r4, r4, 1
    xor r3, r0, r4
    jges r2, r3, .Lfmaxf_first
.Lfmaxf_second:
    move r1, r0
.Lfmaxf_first:
    jump r23

    .section .text.fmin
    .globl fmin
fmin:
    move r4, 0x7ff00000
    and r5, r0, 0x7fffffff
    and r6, r2, 0x7fffffff
    sub r7, zero, r1
    subc zero, r4, r5, ltu, .Lfmin_second
    sub r7, zero, r3
    subc zero, r4, r6, ltu, .Lfmin_first
    asr r4, r0, 31
    xor r7, r1, r4
    lsr r4, r4, 1
    xor r6, r0, r4
    asr r4, r2, 31
    xor r9, r3, r4
    lsr r4, r4, 1
    xor r8, r2, r4
    sub zero, r7, r9
    subc zero, r6, r8, lts, .Lfmin_first
.Lfmin_second:
    movd d0, d2
.Lfmin_first:
    jump r23

    .section .text.fmax
    .globl fmax
fmax:
    move r4, 0x7ff00000
    and r5, r0, 0x7fffffff
    and r6, r2, 0x7fffffff
    sub r7, zero, r1
    subc zero, r4, r5, ltu, .Lfmax_second
    sub r7, zero, r3
    subc zero, r4, r6, ltu, .Lfmax_first
    asr r4, r0, 31
    xor r7, r1, r4
    lsr r4, r4, 1
    xor r6, r0, r4
    asr r4, r2, 31
    xor r9, r3, r4
    lsr r4, r4, 1
    xor r8, r2, r4
    sub zero, r7, r9
    subc zero, r6, r8, ges, .Lfmax_first
.Lfmax_second:
    movd d0, d2
.Lfmax_first:
    jump r23
