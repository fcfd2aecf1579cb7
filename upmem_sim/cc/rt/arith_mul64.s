// 64-bit multiply: __muldi3(d0, d2) -> d0, also used for 32 x 32 -> 64.
// Schoolbook over bytes: each of the 36 byte products that reach the low 64 bits is formed, shifted
// and added by itself; always 128 instructions. Sums of columns (with lsl_add) would need about 85,
// but the vendor's routine takes 128 to 129 (INT64 multiply of PrIM, figure 4), and float, double and
// 64-bit programs inherit their cost from it. Uses no r14-r22.
    .section .text.__muldi3
    .globl __muldi3
__muldi3:
    lsr r4, r1, 16
    lsr r5, r0, 16
    lsr r6, r2, 16
    lsr r7, r3, 16
    move.u d8, zero
// byte products below bit 32: low word r9, carries into the high word r8
    mul_ul_ul r10, r1, r3
    add r9, r9, r10
    mul_ul_uh r10, r1, r3
    lsl r11, r10, 8
    lsr r10, r10, 24
    add r9, r9, r11
    addc r8, r8, r10
    mul_uh_ul r10, r1, r3
    lsl r11, r10, 8
    lsr r10, r10, 24
    add r9, r9, r11
    addc r8, r8, r10
    mul_ul_ul r10, r1, r7
    lsl r11, r10, 16
    lsr r10, r10, 16
    add r9, r9, r11
    addc r8, r8, r10
    mul_uh_uh r10, r1, r3
    lsl r11, r10, 16
    lsr r10, r10, 16
    add r9, r9, r11
    addc r8, r8, r10
    mul_ul_ul r10, r4, r3
    lsl r11, r10, 16
    lsr r10, r10, 16
    add r9, r9, r11
    addc r8, r8, r10
    mul_ul_uh r10, r1, r7
    lsl r11, r10, 24
    lsr r10, r10, 8
    add r9, r9, r11
    addc r8, r8, r10
    mul_uh_ul r10, r1, r7
    lsl r11, r10, 24
    lsr r10, r10, 8
    add r9, r9, r11
    addc r8, r8, r10
    mul_ul_uh r10, r4, r3
    lsl r11, r10, 24
    lsr r10, r10, 8
    add r9, r9, r11
    addc r8, r8, r10
    mul_uh_ul r10, r4, r3
    lsl r11, r10, 24
    lsr r10, r10, 8
    add r9, r9, r11
    addc r8, r8, r10
// byte products from bit 32 up
    mul_ul_ul r10, r1, r2
    add r8, r8, r10
    mul_uh_uh r10, r1, r7
    add r8, r8, r10
    mul_ul_ul r10, r4, r7
    add r8, r8, r10
    mul_uh_uh r10, r4, r3
    add r8, r8, r10
    mul_ul_ul r10, r0, r3
    add r8, r8, r10
    mul_ul_uh r10, r1, r2
    lsl r10, r10, 8
    add r8, r8, r10
    mul_uh_ul r10, r1, r2
    lsl r10, r10, 8
    add r8, r8, r10
    mul_ul_uh r10, r4, r7
    lsl r10, r10, 8
    add r8, r8, r10
    mul_uh_ul r10, r4, r7
    lsl r10, r10, 8
    add r8, r8, r10
    mul_ul_uh r10, r0, r3
    lsl r10, r10, 8
    add r8, r8, r10
    mul_uh_ul r10, r0, r3
    lsl r10, r10, 8
    add r8, r8, r10
    mul_ul_ul r10, r1, r6
    lsl r10, r10, 16
    add r8, r8, r10
    mul_uh_uh r10, r1, r2
    lsl r10, r10, 16
    add r8, r8, r10
    mul_ul_ul r10, r4, r2
    lsl r10, r10, 16
    add r8, r8, r10
    mul_uh_uh r10, r4, r7
    lsl r10, r10, 16
    add r8, r8, r10
    mul_ul_ul r10, r0, r7
    lsl r10, r10, 16
    add r8, r8, r10
    mul_uh_uh r10, r0, r3
    lsl r10, r10, 16
    add r8, r8, r10
    mul_ul_ul r10, r5, r3
    lsl r10, r10, 16
    add r8, r8, r10
    mul_ul_uh r10, r1, r6
    lsl r10, r10, 24
    add r8, r8, r10
    mul_uh_ul r10, r1, r6
    lsl r10, r10, 24
    add r8, r8, r10
    mul_ul_uh r10, r4, r2
    lsl r10, r10, 24
    add r8, r8, r10
    mul_uh_ul r10, r4, r2
    lsl r10, r10, 24
    add r8, r8, r10
    mul_ul_uh r10, r0, r7
    lsl r10, r10, 24
    add r8, r8, r10
    mul_uh_ul r10, r0, r7
    lsl r10, r10, 24
    add r8, r8, r10
    mul_ul_uh r10, r5, r3
    lsl r10, r10, 24
    add r8, r8, r10
    mul_uh_ul r10, r5, r3
    lsl r10, r10, 24
    add r8, r8, r10
    move r0, r8
    move r1, r9
    jump r23
