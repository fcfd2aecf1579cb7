// dpu.h and dpu_log.h: what a DPU printed. The ring in MRAM is described in cc/rt/stdio.c, and read
// as log.py does.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
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

// One conversion as the message has it, the numbers for its `*` filled in.
struct Conversion {
  std::string flags, width, precision;
  bool wide;
  char letter;
  std::string spec() const { return flags + width + precision; }
};

// What the host's printf may not know.
std::string binary(const Conversion& c, uint64_t value) {
  std::string digits;
  for (uint64_t rest = value; rest; rest >>= 1)
    digits.insert(digits.begin(), static_cast<char>('0' + (rest & 1)));
  const bool zeros = c.flags.find('0') != std::string::npos &&
                     c.flags.find('-') == std::string::npos && c.precision.empty();
  const std::string prefix = c.flags.find('#') != std::string::npos && value ? "0b" : "";
  int least = c.precision.empty() ? 1 : std::atoi(c.precision.c_str() + 1);
  if (zeros) least = std::max(least, std::atoi(c.width.c_str()) - static_cast<int>(prefix.size()));
  if (least > static_cast<int>(digits.size())) digits.insert(0, least - digits.size(), '0');
  const bool left = c.flags.find('-') != std::string::npos;
  return print("%" + std::string(left ? "-" : "") + c.width + "s", (prefix + digits).c_str());
}

std::string integer(const Conversion& c, uint64_t value) {
  const std::string spec = c.spec();
  switch (c.letter) {
    case 'p':
      return print("%" + c.flags + c.width + "s",
                   print("0x%08x", static_cast<uint32_t>(value)).c_str());
    case 'b':
      return binary(c, value);
    case 'd': {
      const auto number = c.wide ? static_cast<int64_t>(value) : static_cast<int32_t>(value);
      return print("%" + spec + "lld", static_cast<long long>(number));
    }
    default:
      return print("%" + spec + "ll" + c.letter, static_cast<unsigned long long>(value));
  }
}

std::string conversion(const std::smatch& match, Reader& arguments) {
  Conversion c{match[1], match[2], match[3], match[4].length() > 0, *match[5].first};
  if (c.width == "*") c.width = std::to_string(arguments.number<int32_t>());
  if (c.precision == ".*") {
    const auto number = arguments.number<int32_t>();
    c.precision = number < 0 ? "" : "." + std::to_string(number);
  }
  if (c.letter == '%') return "%";
  if (c.letter == 's' && !c.wide) return print("%" + c.spec() + "s", arguments.text().c_str());
  if (c.letter == 'c')
    return print("%" + c.spec() + "c", static_cast<int>(arguments.number<char>()));
  if (std::strchr("feEgGF", c.letter))
    return print("%" + c.spec() + c.letter, arguments.number<double>());
  if (!std::strchr("duxXobp", c.letter)) {
    std::strchr("aA", c.letter) ? arguments.number<uint64_t>() : arguments.number<uint32_t>();
    return "<" + match.str() + ": no conversion of printf here>";
  }
  const bool long_word = c.wide && c.letter != 'p';
  return integer(c, long_word ? arguments.number<uint64_t>() : arguments.number<uint32_t>());
}

std::string message(Reader& reader) {
  static const auto* const pattern =
      new std::regex("%([-+ #0]*)(\\*|[0-9]*)(\\.\\*|\\.[0-9]*)?(l*)([^])");
  const std::string formats = reader.text();
  std::string out;
  auto plain = formats.cbegin();
  std::smatch match;
  while (std::regex_search(plain, formats.cend(), match, *pattern)) {
    out.append(plain, match[0].first);
    out += conversion(match, reader);
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
