// dpu.h and dpu_log.h: what a DPU printed. The ring in MRAM is described in cc/rt/stdio.c, and read
// as log.py does.
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <regex>
#include <string_view>

#include "include/dpu/dpu.h"
#include "include/dpu/dpu_log.h"
#include "memory.h"

using namespace upmem::host;

namespace {

// The bytes of the messages, from `at` on.
class Reader {
 public:
  explicit Reader(std::string_view data) : data_(data) {}
  bool at_end() const { return at_ >= data_.size(); }
  void align() { at_ = (at_ + 7) / 8 * 8; }

  std::string text() {
    const size_t end = data_.find('\0', at_);
    if (end == data_.npos) throw Failure{DPU_ERR_LOG_FORMAT, ""};
    const std::string_view out = data_.substr(at_, end - at_);
    at_ = end + 1;
    return std::string(out);
  }

  template <class T>
  T number() {
    if (data_.size() - at_ < sizeof(T)) throw Failure{DPU_ERR_LOG_FORMAT, ""};
    T out;
    std::memcpy(&out, data_.data() + at_, sizeof out);
    at_ += sizeof out;
    return out;
  }

 private:
  std::string_view data_;
  size_t at_ = 0;
};

template <class T>
std::string print(const std::string& format, T value) {
  char buffer[512];
  const int length = std::snprintf(buffer, sizeof buffer, format.c_str(), value);
  if (length < 0) throw Failure{DPU_ERR_LOG_FORMAT, ""};
  if (static_cast<size_t>(length) < sizeof buffer) return std::string(buffer, length);
  std::string out(static_cast<size_t>(length) + 1, '\0');
  std::snprintf(out.data(), out.size(), format.c_str(), value);
  out.pop_back();
  return out;
}

std::string binary(uint64_t value) {
  std::string out;
  do out.insert(out.begin(), static_cast<char>('0' + (value & 1)));
  while (value >>= 1);
  return out;
}

std::string integer(const std::string& flags, char letter, uint64_t value, bool wide) {
  if (letter == 'p') return print("0x%08x", static_cast<uint32_t>(value));
  if (letter == 'b') return binary(value);
  if (letter == 'd' || letter == 'i') {
    const auto number = wide ? static_cast<int64_t>(value) : static_cast<int32_t>(value);
    return print("%" + flags + "lld", static_cast<long long>(number));
  }
  if (!std::strchr("uxXo", letter)) throw Failure{DPU_ERR_LOG_FORMAT, ""};
  return print("%" + flags + "ll" + letter, static_cast<unsigned long long>(value));
}

std::string conversion(const std::string& flags, bool wide, char letter, Reader& arguments) {
  if (letter == '%') return "%";
  if (letter == 's') return print("%" + flags + "s", arguments.text().c_str());
  if (letter == 'c') return print("%" + flags + "c", static_cast<int>(arguments.number<char>()));
  if (std::strchr("feEgG", letter)) return print("%" + flags + letter, arguments.number<double>());
  const uint64_t value = wide ? arguments.number<uint64_t>() : arguments.number<uint32_t>();
  return integer(flags, letter, value, wide);
}

std::string message(Reader& reader) {
  static const auto* const pattern = new std::regex("%([-+ #0]*[0-9]*(?:\\.[0-9]*)?)(l*)([^])");
  const std::string formats = reader.text();
  std::string out;
  auto plain = formats.cbegin();
  std::smatch match;
  while (std::regex_search(plain, formats.cend(), match, *pattern)) {
    out.append(plain, match[0].first);
    out += conversion(match[1], match[2].length() > 0, *match[3].first, reader);
    plain = match[0].second;
  }
  return out.append(plain, formats.cend());
}

std::string read_log(dpu_t& dpu) {
  if (!dpu.program) throw Failure{DPU_ERR_NO_PROGRAM_LOADED, ""};
  const Symbol* state = dpu.program->find("__stdout_buffer_state");
  const Symbol* ring = dpu.program->find("__stdout_buffer");
  if (!state || !ring) throw Failure{DPU_ERR_LOG_CONTEXT_MISSING, ""};
  uint32_t words[2];  // next byte of the ring, whether it has wrapped
  std::memcpy(words, at(dpu, check_place({state->address, 8}, 0, 8)), sizeof words);
  if (words[1]) throw Failure{DPU_ERR_LOG_BUFFER_TOO_SMALL, ""};
  const Place place = check_place({ring->address, ring->size}, 0, words[0]);
  Reader reader({reinterpret_cast<const char*>(at(dpu, place)), place.bytes});
  std::string out;
  for (; !reader.at_end(); reader.align()) out += message(reader);
  return out;
}

dpu_error_t print_log(const dpu_set_t& set, std::FILE* stream) {
  dpu_t& dpu = single_dpu(set);
  const Turn turn({dpu.rank});
  const std::string text = read_log(dpu);
  std::fprintf(stream, "=== DPU#0x%x ===\n", id_of(dpu));
  std::fwrite(text.data(), 1, text.size(), stream);
  return DPU_OK;
}

}  // namespace

extern "C" {

dpu_error_t dpu_log_read(dpu_set_t set, FILE* stream) {
  return guarded([&] { return print_log(set, stream); });
}

dpu_error_t dpulog_read_for_dpu(dpu_t* dpu, FILE* stream) {
  dpu_set_t set{};
  set.kind = DPU_SET_DPU;
  set.dpu = dpu;
  return guarded([&] { return print_log(set, stream); });
}

}  // extern "C"
