// 32-bit multiply: __mulsi3(r1, r0) -> r1.
// The smaller factor (unsigned) is the multiplier: one mul_step for each of its N bits (one if it
// is 0), N + 6 instructions in all, the count measured on silicon for the vendor's routine. Both
// ways to the chain cost the same, and the product is left in r0 as well, where routines of the
// vendor's calling convention expect it.
    .section .text.__mulsi3
    .globl __mulsi3
__mulsi3:
    jgtu r1, r0, .Lfirst_larger
    move r2, r0
    move r0, r1, true, .Lclear
.Lfirst_larger:
    move r2, r1
    jump .Lclear
.Lclear:
    move r1, zero
    mul_step d0, r2, d0, 0, z, .Ldone
    mul_step d0, r2, d0, 1, z, .Ldone
    mul_step d0, r2, d0, 2, z, .Ldone
    mul_step d0, r2, d0, 3, z, .Ldone
    mul_step d0, r2, d0, 4, z, .Ldone
    mul_step d0, r2, d0, 5, z, .Ldone
    mul_step d0, r2, d0, 6, z, .Ldone
    mul_step d0, r2, d0, 7, z, .Ldone
    mul_step d0, r2, d0, 8, z, .Ldone
    mul_step d0, r2, d0, 9, z, .Ldone
    mul_step d0, r2, d0, 10, z, .Ldone
    mul_step d0, r2, d0, 11, z, .Ldone
    mul_step d0, r2, d0, 12, z, .Ldone
    mul_step d0, r2, d0, 13, z, .Ldone
    mul_step d0, r2, d0, 14, z, .Ldone
    mul_step d0, r2, d0, 15, z, .Ldone
    mul_step d0, r2, d0, 16, z, .Ldone
    mul_step d0, r2, d0, 17, z, .Ldone
    mul_step d0, r2, d0, 18, z, .Ldone
    mul_step d0, r2, d0, 19, z, .Ldone
    mul_step d0, r2, d0, 20, z, .Ldone
    mul_step d0, r2, d0, 21, z, .Ldone
    mul_step d0, r2, d0, 22, z, .Ldone
    mul_step d0, r2, d0, 23, z, .Ldone
    mul_step d0, r2, d0, 24, z, .Ldone
    mul_step d0, r2, d0, 25, z, .Ldone
    mul_step d0, r2, d0, 26, z, .Ldone
    mul_step d0, r2, d0, 27, z, .Ldone
    mul_step d0, r2, d0, 28, z, .Ldone
    mul_step d0, r2, d0, 29, z, .Ldone
    mul_step d0, r2, d0, 30, z, .Ldone
    mul_step d0, r2, d0, 31
.Ldone:
    move r0, r1
    jump r23
