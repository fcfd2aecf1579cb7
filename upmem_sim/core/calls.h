// Which of the program's own lines a tasklet in library code is there for.
#pragma once
#include <cstdint>
#include <vector>

#include "machine.h"

namespace upmem {

// The innermost instruction with a line (of those marked in `lined`) that tasklet `t`, which is at
// `pc`, has come from by calls and jumps; `pc` itself if it has one, -1 if that cannot be told.
// Found from the code and the state alone: the library has no frame tables.
int32_t lined_caller(const Machine& m, uint32_t t, int32_t pc, const std::vector<bool>& lined);

}  // namespace upmem
