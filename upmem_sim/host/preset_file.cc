// A measured system as a JSON file: what upmem_sim/transfer_file.py reads, for a host without
// Python.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "program.h"
#include "system_model.h"

namespace upmem::host {
namespace {

// Growth with DPUs below the smallest number measured, as TABLES of transfer_file.py says.
constexpr double kBelowIn = 0.46, kBelowOut = 0.53, kBelowWram = 1.0;
constexpr int kRounds = 200;
constexpr int kMaxDepth = 32;

[[noreturn]] void fail(const std::string& what) { throw Failure{DPU_ERR_ALLOCATION, what}; }

// A JSON value: an object, an array, a number, or something else as text.
struct Value {
  std::map<std::string, Value, std::less<>> members;
  std::vector<Value> items;
  double number = NAN;
  std::string text;
};

class Reader {
 public:
  explicit Reader(std::string text) : text_(std::move(text)) {}

  Value whole() {
    Value value = read(0);
    skip();
    if (at_ != text_.size()) fail("more after its end");
    return value;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char wanted) {
    skip();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void need(char wanted) {
    if (!take(wanted)) fail(std::string("no '") + wanted + "' at byte " + std::to_string(at_));
  }

  std::string quoted() {
    need('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') ++at_;  // what is escaped is in no name that is looked for
      if (at_ < text_.size()) out += text_[at_++];
    }
    need('"');
    return out;
  }

  Value read(int depth) {
    if (depth > kMaxDepth) fail("nested too deeply");
    Value value;
    skip();
    const char first = at_ < text_.size() ? text_[at_] : 0;
    if (take('{')) {
      for (bool more = !take('}'); more; more = !take('}')) {
        if (!value.members.empty()) need(',');
        std::string key = quoted();
        need(':');
        value.members.insert_or_assign(std::move(key), read(depth + 1));
      }
    } else if (take('[')) {
      for (bool more = !take(']'); more; more = !take(']')) {
        if (!value.items.empty()) need(',');
        value.items.push_back(read(depth + 1));
      }
    } else if (first == '"') {
      value.text = quoted();
    } else {
      const size_t begin = at_;
      while (at_ < text_.size() &&
             (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
              std::string_view("+-.").find(text_[at_]) != std::string_view::npos))
        ++at_;
      value.text = text_.substr(begin, at_ - begin);
      char* end = nullptr;
      const double number = std::strtod(value.text.c_str(), &end);
      if (end != value.text.c_str() && !*end)
        value.number = number;
      else if (value.text != "true" && value.text != "false" && value.text != "null")
        fail("no value at byte " + std::to_string(begin));
    }
    return value;
  }

  std::string text_;
  size_t at_ = 0;
};

const Value& member(const Value& value, std::string_view name) {
  const auto found = value.members.find(name);
  if (found == value.members.end()) fail("no \"" + std::string(name) + "\"");
  return found->second;
}

double number(const Value& value, std::string_view name) {
  const double found = member(value, name).number;
  if (!std::isfinite(found)) fail("\"" + std::string(name) + "\" is not a number");
  return found;
}

// Numbers above 0.
std::vector<double> row(const Value& value) {
  std::vector<double> out;
  for (const Value& item : value.items) {
    if (!(item.number > 0)) fail("a table holds something that is not a number above 0");
    out.push_back(item.number);
  }
  return out;
}

Cost table(const Value& all, std::string_view name, double below) {
  const Value& value = member(all, name);
  Table out{row(member(value, "bytes")), row(member(value, "dpus")), {}, below};
  const std::vector<Value>& rows = member(value, "seconds").items;
  bool whole = rows.size() == out.bytes.size() && rows.size() >= 2 && out.dpus.size() >= 2;
  for (const Value& line : rows) {
    whole &= line.items.size() == out.dpus.size();
    for (double seconds : row(line)) out.seconds.push_back(std::log(seconds));
  }
  whole &= std::is_sorted(out.bytes.begin(), out.bytes.end());
  whole &= std::is_sorted(out.dpus.begin(), out.dpus.end());
  if (!whole) fail("\"" + std::string(name) + "\" is not a table with growing bytes and DPUs");
  out.seconds = monotone(std::move(out.seconds), out.dpus.size());
  for (double& seconds : out.seconds) seconds = std::exp(seconds);
  return Cost(std::move(out));
}

// Nearest non-decreasing sequence (pool adjacent violators), in place.
void rise(std::vector<double>& values) {
  std::vector<std::pair<double, size_t>> pools;  // mean, how many
  for (double value : values) {
    pools.push_back({value, 1});
    while (pools.size() > 1 && pools[pools.size() - 2].first > pools.back().first) {
      const auto [mean, size] = pools.back();
      pools.pop_back();
      auto& [before, count] = pools.back();
      const size_t total = count + size;
      before = (before * static_cast<double>(count) + mean * static_cast<double>(size)) /
               static_cast<double>(total);
      count = total;
    }
  }
  size_t at = 0;
  for (const auto& [mean, size] : pools)
    for (size_t i = 0; i < size; ++i) values[at++] = mean;
}

// Projects every line of a table: `lines` of `length`, whose elements are `step` apart.
void project(std::vector<double>& table, size_t lines, size_t length, size_t next, size_t step) {
  std::vector<double> line(length);
  for (size_t i = 0; i < lines; ++i) {
    for (size_t k = 0; k < length; ++k) line[k] = table[i * next + k * step];
    rise(line);
    for (size_t k = 0; k < length; ++k) table[i * next + k * step] = line[k];
  }
}

}  // namespace

std::vector<double> monotone(std::vector<double> table, size_t columns) {
  const size_t size = table.size(), rows = size / columns;
  std::vector<double> row_rest(size), column_rest(size), before(size);
  for (int round = 0; round < kRounds; ++round) {  // Dykstra's alternating projections
    for (size_t i = 0; i < size; ++i) before[i] = table[i] += row_rest[i];
    project(table, rows, columns, columns, 1);
    for (size_t i = 0; i < size; ++i) row_rest[i] = before[i] - table[i];
    for (size_t i = 0; i < size; ++i) before[i] = table[i] += column_rest[i];
    project(table, columns, rows, 1, columns);
    for (size_t i = 0; i < size; ++i) column_rest[i] = before[i] - table[i];
  }
  for (size_t i = columns; i < size; ++i) table[i] = std::max(table[i], table[i - columns]);
  for (size_t i = 0; i < size; ++i)
    if (i % columns) table[i] = std::max(table[i], table[i - 1]);
  return table;
}

TransferPreset read_preset(const std::string& path) {
  try {
    std::ifstream file(path);
    if (!file) fail("cannot be read");
    const Value all = Reader(std::string(std::istreambuf_iterator<char>(file), {})).whole();
    return {member(all, "name").text,
            table(all, "to_mram", kBelowIn),
            table(all, "from_mram", kBelowOut),
            table(all, "to_wram", kBelowWram),
            table(all, "from_wram", kBelowWram),
            number(all, "broadcast_gain"),
            number(all, "launch_ms"),
            number(all, "launch_per_rank_ms")};
  } catch (const Failure& failure) {
    fail("DPU_SIM_PRESET=" + path + ": " + failure.text);
  }
}

}  // namespace upmem::host
