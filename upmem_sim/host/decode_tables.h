// Operation numbers inside the groups of instruction words, and condition codes; encoding.py has
// the same tables and the evidence for them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

#include "../core/isa.h"

namespace upmem::host {

// Thrown for a word in a hole of the layout.
struct NoInsn {};

inline constexpr uint32_t kImmShift = ~0u;  // class of shifts by a constant: no nsh32, sh32

template <size_t N>
inline Op pick(const std::optional<Op> (&names)[N], uint32_t number) {
  if (number >= N || !names[number]) throw NoInsn{};
  return *names[number];
}

inline constexpr std::optional<Op> kNone{};
inline constexpr std::optional<Op> kAdders[] = {OP_add, OP_addc, OP_rsub, OP_rsubc,
                                                OP_sub, OP_subc, OP_sub,  OP_subc};
inline constexpr std::optional<Op> kOthers[] = {
    OP_mul_ul_ul, OP_mul_ul_uh, OP_mul_uh_ul, OP_mul_uh_uh, OP_mul_sl_sl,
    OP_mul_sl_sh, OP_mul_sh_sl, OP_mul_sh_sh, OP_mul_sl_ul, OP_mul_sl_uh,
    OP_mul_sh_ul, OP_mul_sh_uh, kNone,        OP_time,      OP_time_cfg};
inline constexpr uint32_t kSum = 12;
inline constexpr std::optional<Op> kLogic[] = {kNone,   OP_hash, kNone,   kNone,   kNone,  kNone,
                                               kNone,   kNone,   OP_xor,  OP_nxor, OP_and, OP_or,
                                               OP_andn, OP_orn,  OP_nand, OP_nor};
inline constexpr std::optional<Op> kByRegister[] = {
    OP_hash, OP_cmpb4, OP_call, kNone, kNone,   kNone,  kNone,   kNone,
    OP_xor,  OP_nxor,  OP_and,  OP_or, OP_andn, OP_orn, OP_nand, OP_nor};
inline constexpr std::optional<Op> kUnary[] = {OP_cao,   OP_clo,   OP_cls,   OP_clz, OP_extsb,
                                               OP_extsh, OP_extub, OP_extuh, OP_sats};
inline constexpr std::optional<Op> kShifts[] = {
    OP_rol, kNone,  kNone, kNone, OP_lsl, OP_lsl1, OP_lslx, OP_lsl1x,
    OP_ror, OP_asr, kNone, kNone, OP_lsr, OP_lsr1, OP_lsrx, OP_lsr1x};
inline constexpr std::optional<Op> kShifted[] = {OP_rol_add, OP_lsr_add, OP_lsl_add, OP_lsl_sub};
inline constexpr std::optional<Op> kSteps[] = {kNone, kNone, OP_mul_step, OP_div_step};
inline constexpr std::optional<Op> kMoves[] = {OP_movd, OP_swapd};
inline constexpr uint32_t kMovesNumber = 1;
inline constexpr std::optional<Op> kWide[] = {OP_add, OP_addc, OP_sub, OP_subc,
                                              OP_xor, OP_and,  OP_or};
inline constexpr std::optional<Op> kWideFlags[] = {OP_add, OP_addc, OP_sub, OP_subc,
                                                   OP_xor, OP_and,  OP_or};
inline constexpr std::optional<Op> kWidePair[] = {OP_add, kNone, kNone, kNone, kNone, kNone, OP_or};
inline constexpr std::optional<Op> kLoads[] = {OP_lbu, OP_lbs, OP_lhu, OP_lhs, OP_lw, kNone, OP_ld};
inline constexpr std::optional<Op> kStores[] = {OP_sb, OP_sh, OP_sw, OP_sd};
inline constexpr std::optional<Op> kStoresById[] = {OP_sb_id, OP_sh_id, OP_sw_id, OP_sd_id};
inline constexpr std::optional<Op> kDma[] = {OP_ldma, OP_ldmai, OP_sdma};
inline constexpr std::optional<Op> kSingle[] = {OP_read_run, OP_clr_run, OP_resume, OP_boot,
                                                OP_fault,    OP_stop,    OP_tell};

// Code in the condition field of jump forms; equal codes belong to different classes.
inline constexpr uint8_t kJumpCodes[] = {
    0,  1,  2,  3,  4,  5,  8,  9,  8,  9,  12, 13, 14, 15, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
    28, 29, 30, 31, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 24, 25, 28, 29, 30, 31, 30, 31};
static_assert(std::size(kJumpCodes) == CC_COUNT);
static_assert(kJumpCodes[CC_nc14] == 31 && kJumpCodes[CC_ltu] == 20 && kJumpCodes[CC_small] == 30);

inline std::optional<Condition> jump_condition(uint32_t code, uint32_t classes) {
  const bool constant = classes == kImmShift;
  if (constant) classes = SHIFT;
  for (uint32_t cc = 0; cc < CC_COUNT; ++cc) {
    if (kJumpCodes[cc] != code || !(kConditionClasses[cc] & classes)) continue;
    if (constant && (cc == CC_nsh32 || cc == CC_sh32)) continue;
    return static_cast<Condition>(cc);
  }
  return {};
}

}  // namespace upmem::host
