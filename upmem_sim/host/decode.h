// Instruction words -> engine rows: what decoding.py and rows.py do, for a host without Python.
#pragma once
#include <cstdint>

#include "../core/isa.h"

namespace upmem::host {

// False for a word that is no instruction. Accepts exactly the words that decode() of decoding.py
// accepts; a test compares both on all forms.
bool decode_word(uint64_t word, Row& row);

}  // namespace upmem::host
