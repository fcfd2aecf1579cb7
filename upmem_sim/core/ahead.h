// Bookkeeping of tasklets that execute ahead of their issue: what they read and wrote, and how to
// take it back.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "machine.h"

namespace upmem {

inline constexpr uint32_t kQuantum = 512;  // instructions a tasklet may be ahead

// A segment is what one tasklet executed at one go. Its mark is a running number over 5 bits of
// tasklet; it is alive until the last of its instructions has issued. Words of WRAM remember their
// last writer and reader, and which of the four bytes these used.
class Ahead {
 public:
  using Mark = uint32_t;

  explicit Ahead(uint32_t wram_bytes);

  // Opens a segment: from here on `tasklet` can be taken back to this state.
  Mark open(const Tasklet& t, uint32_t tasklet);
  void close(uint32_t tasklet) { alive_[tasklet] = 0; }
  bool is_open(uint32_t tasklet) const { return alive_[tasklet] != 0; }
  void set_length(uint32_t tasklet, uint32_t length) { segments_[tasklet].length = length; }

  // Whether a segment may read or write; notes that it does if so. False: another living segment
  // has used the word in a way that the order of the two matters.
  template <int kLog>  // 2^kLog bytes
  [[gnu::always_inline]] bool read(Mark mark, uint32_t address);
  template <int kLog>
  [[gnu::always_inline]] bool write(Mark mark, uint32_t address);
  // The value that a write of 2^log bytes is about to replace.
  [[gnu::always_inline]] void save(Mark mark, const uint8_t* wram, uint32_t address, uint32_t log);

  // The same questions for bytes [address, address + bytes) used in the very cycle.
  bool may_read_now(uint32_t address, uint32_t bytes) const;
  bool may_write_now(uint32_t address, uint32_t bytes);  // if so, clears their marks

  // Takes back what all tasklets did beyond their last issue. `replay` executes n instructions of
  // a tasklet.
  void take_back(Machine& m, void (*replay)(Machine&, Tasklet&, uint32_t, uint32_t));

 private:
  struct Undo {
    uint32_t address, log;
    uint64_t value;
  };
  struct Segment {
    std::array<uint32_t, 24> registers;
    uint32_t pc, z, length, undos;
    bool cf;
    std::array<Undo, kQuantum> undo;
  };
  struct Word {
    Mark writer, reader;    // the last ones
    uint32_t others;        // no living segment but `reader` has read it if all are newer
    uint8_t written, read;  // bits of bytes
  };

  bool alive(Mark mark) const { return alive_[mark & 31] == mark; }
  // Some living segment other than `mark` is not newer than `number`.
  bool alive_since(uint32_t number, Mark mark) const;
  void forget();

  std::vector<Word> words_;
  std::array<Mark, 32> alive_{};
  std::array<Segment, kMaxTasklets> segments_;
  uint32_t number_ = 0;
  uint32_t oldest_ = 0;  // no living segment has a lower number
};

// The bytes that an access uses of each word it touches.
template <int kLog>
constexpr uint32_t used_bytes(uint32_t address) {
  return kLog >= 2 ? 15u : ((1u << (1 << kLog)) - 1) << (address & 3);
}

template <int kLog>
inline bool Ahead::read(Mark mark, uint32_t address) {
  constexpr uint32_t words = kLog == 3 ? 2 : 1;
  Word* word = &words_[address / 4];
  const uint32_t used = used_bytes<kLog>(address);
  for (uint32_t i = 0; i < words; ++i) {
    const Mark writer = word[i].writer;
    if (writer != mark && alive(writer) && (word[i].written & used)) [[unlikely]]
      return false;
  }
  for (uint32_t i = 0; i < words; ++i) {
    Word& w = word[i];
    if (w.reader != mark) {
      if (w.others < oldest_) w.others = 0;
      if (alive(w.reader)) w.others = std::max(w.others, w.reader >> 5);
      if (!w.others) w.read = 0;
      w.reader = mark;
    }
    w.read |= static_cast<uint8_t>(used);
  }
  return true;
}

template <int kLog>
inline bool Ahead::write(Mark mark, uint32_t address) {
  constexpr uint32_t words = kLog == 3 ? 2 : 1;
  Word* word = &words_[address / 4];
  const uint32_t used = used_bytes<kLog>(address);
  for (uint32_t i = 0; i < words; ++i) {
    const Word& w = word[i];
    if (w.writer != mark && alive(w.writer)) [[unlikely]]
      return false;  // room for one writer only
    if (!(w.read & used)) continue;
    if (w.reader != mark && alive(w.reader)) [[unlikely]]
      return false;
    if (w.others && alive_since(w.others, mark)) [[unlikely]]
      return false;
  }
  for (uint32_t i = 0; i < words; ++i) {
    Word& w = word[i];
    w.written = static_cast<uint8_t>(used | (w.writer == mark ? w.written : 0));
    w.writer = mark;
  }
  return true;
}

inline void Ahead::save(Mark mark, const uint8_t* wram, uint32_t address, uint32_t log) {
  Segment& segment = segments_[mark & 31];
  Undo& undo = segment.undo[segment.undos++];
  undo.address = address;
  undo.log = log;
  __builtin_memcpy(&undo.value, wram + (address & ~7u), 8);
}

}  // namespace upmem
