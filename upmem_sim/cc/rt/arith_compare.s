// Comparisons of float32 (r1, r0) and double (d0, d2) -> r1: -1, 0, 1 as the first is less, equal,
// greater; unordered gives 1 for eq ne lt le and -1 for gt ge, so that the caller's test fails.
// Values become ordered integers (negative ones complement their magnitude); 16 instructions for
// float32 and 24 for double, as the vendor's library.
    .section .text.__lesf2
    .globl __eqsf2
    .globl __nesf2
    .globl __ltsf2
    .globl __lesf2
__eqsf2:
__nesf2:
__ltsf2:
__lesf2:
    move r4, 0x7f800000
    and r2, r1, 0x7fffffff
    and r3, r0, 0x7fffffff
    jgtu r2, r4, .Lles_unordered
    jgtu r3, r4, .Lles_unordered
    or zero, r2, r3, z, .Lles_equal
    asr r4, r1, 31
    lsr r4, r4, 1
    xor r1, r1, r4
    asr r4, r0, 31
    lsr r4, r4, 1
    xor r0, r0, r4
    sub r2, r1, r0, gts
    sub r3, r1, r0, lts
    sub r1, r2, r3
    jump r23
.Lles_equal:
    move r1, 0
    jump r23
.Lles_unordered:
    move r1, 1
    jump r23

    .section .text.__gesf2
    .globl __gtsf2
    .globl __gesf2
__gtsf2:
__gesf2:
    move r4, 0x7f800000
    and r2, r1, 0x7fffffff
    and r3, r0, 0x7fffffff
    jgtu r2, r4, .Lges_unordered
    jgtu r3, r4, .Lges_unordered
    or zero, r2, r3, z, .Lges_equal
    asr r4, r1, 31
    lsr r4, r4, 1
    xor r1, r1, r4
    asr r4, r0, 31
    lsr r4, r4, 1
    xor r0, r0, r4
    sub r2, r1, r0, gts
    sub r3, r1, r0, lts
    sub r1, r2, r3
    jump r23
.Lges_equal:
    move r1, 0
    jump r23
.Lges_unordered:
    move r1, -1
    jump r23

    .section .text.__unordsf2
    .globl __unordsf2
__unordsf2:
    move r4, 0x7f800000
    and r2, r1, 0x7fffffff
    and r3, r0, 0x7fffffff
    sub r2, r2, r4, gtu
    sub r3, r3, r4, gtu
    or r1, r2, r3
    jump r23

    .section .text.__ledf2
    .globl __eqdf2
    .globl __nedf2
    .globl __ltdf2
    .globl __ledf2
__eqdf2:
__nedf2:
__ltdf2:
__ledf2:
    move r4, 0x7ff00000
    and r5, r0, 0x7fffffff
    and r6, r2, 0x7fffffff
    sub r7, zero, r1
    subc zero, r4, r5, ltu, .Lled_unordered
    sub r7, zero, r3
    subc zero, r4, r6, ltu, .Lled_unordered
    or r5, r5, r6
    or r5, r5, r1
    or zero, r5, r3, z, .Lled_equal
    asr r4, r0, 31
    xor r1, r1, r4
    lsr r4, r4, 1
    xor r0, r0, r4
    asr r4, r2, 31
    xor r3, r3, r4
    lsr r4, r4, 1
    xor r2, r2, r4
    sub zero, r1, r3
    subc r4, r0, r2, lts
    sub zero, r3, r1
    subc r5, r2, r0, lts
    sub r1, r5, r4
    jump r23
.Lled_equal:
    move r1, 0
    jump r23
.Lled_unordered:
    move r1, 1
    jump r23

    .section .text.__gedf2
    .globl __gtdf2
    .globl __gedf2
__gtdf2:
__gedf2:
    move r4, 0x7ff00000
    and r5, r0, 0x7fffffff
    and r6, r2, 0x7fffffff
    sub r7, zero, r1
    subc zero, r4, r5, ltu, .Lged_unordered
    sub r7, zero, r3
    subc zero, r4, r6, ltu, .Lged_unordered
    or r5, r5, r6
    or r5, r5, r1
    or zero, r5, r3, z, .Lged_equal
    asr r4, r0, 31
    xor r1, r1, r4
    lsr r4, r4, 1
    xor r0, r0, r4
    asr r4, r2, 31
    xor r3, r3, r4
    lsr r4, r4, 1
    xor r2, r2, r4
    sub zero, r1, r3
    subc r4, r0, r2, lts
    sub zero, r3, r1
    subc r5, r2, r0, lts
    sub r1, r5, r4
    jump r23
.Lged_equal:
    move r1, 0
    jump r23
.Lged_unordered:
    move r1, -1
    jump r23

    .section .text.__unorddf2
    .globl __unorddf2
__unorddf2:
    move r4, 0x7ff00000
    and r5, r0, 0x7fffffff
    and r6, r2, 0x7fffffff
    sub r7, zero, r1
    subc r5, r4, r5, ltu
    sub r7, zero, r3
    subc r6, r4, r6, ltu
    or r1, r5, r6
    jump r23
