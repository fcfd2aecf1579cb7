// Numbers and names of the operations and conditions in isa.def, and the 16-byte row of a program.
#pragma once
#include <cstdint>

namespace upmem {

// Classes are bits: a condition says which families of operations accept it.
enum ConditionClass : uint32_t {
  NONE = 0,
  ADD = 1 << 0,
  SUB = 1 << 1,
  LOG = 1 << 2,
  SHIFT = 1 << 3,
  MUL = 1 << 4,
  COUNT = 1 << 5,
  SHADD = 1 << 6,
  STEP = 1 << 7,
  DIV = 1 << 8,
  MOVE = 1 << 9,
  ACQUIRE = 1 << 10,
  RELEASE = 1 << 11,
  TIME = 1 << 12,
  SET = 1 << 13,
  // The units of hypothetical cores; no condition belongs to one.
  MULTIPLY32 = 1 << 14,
  FLOAT_ADD = 1 << 15,
  FLOAT_MUL = 1 << 16,
  FLOAT_DIV = 1 << 17,
};

enum class Kind : uint8_t {
  ALU,
  UNARY,
  SHADD,
  STEP,
  PAIR,
  LOAD,
  STORE,
  STOREID,
  DMA,
  ATOMIC,
  THREAD,
  STOP,
  TIME,
  CALL,
  CODE,
  NONE,
  UNIT,
};

enum Op : uint8_t {
#define OP(name, kind, cls, result) OP_##name,
#include "isa.def"
  OP_COUNT
};

enum Condition : uint8_t {
#define CONDITION(name, classes, test) CC_##name,
#include "isa.def"
  CC_COUNT
};

inline constexpr const char* kOpNames[] = {
#define OP(name, kind, cls, result) #name,
#include "isa.def"
};

inline constexpr Kind kOpKinds[] = {
#define OP(name, kind, cls, result) Kind::kind,
#include "isa.def"
};

inline constexpr const char* kOpKindNames[] = {
#define OP(name, kind, cls, result) #kind,
#include "isa.def"
};

inline constexpr uint32_t kOpClasses[] = {
#define OP(name, kind, cls, result) cls,
#include "isa.def"
};

inline constexpr const char* kConditionNames[] = {
#define CONDITION(name, classes, test) #name,
#include "isa.def"
};

inline constexpr uint32_t kConditionClasses[] = {
#define CONDITION(name, classes, test) classes,
#include "isa.def"
};

enum Flag : uint8_t {
  F_SET = 1,       // rd = condition ? 1 : 0
  F_JUMP = 2,      // if condition: pc = target
  F_SIGNED = 4,    // result sign-extended into a pair
  F_UNSIGNED = 8,  // result zero-extended into a pair
  F_BIG = 16,      // big-endian access
  F_RIR = 32,      // the immediate is the first operand
};

inline constexpr uint8_t kZero = 24;        // register number of "zero"; as rd: no destination
inline constexpr uint8_t kId8 = 31;         // of "id8"
inline constexpr uint8_t kImmediate = 255;  // rb: use imm

// One instruction as Python hands it over; same layout as the NumPy dtype ROW.
struct Row {
  uint8_t op, cc, rd, ra, rb, flags;
  uint16_t target;
  int32_t imm, off;
};
static_assert(sizeof(Row) == 16);

}  // namespace upmem
