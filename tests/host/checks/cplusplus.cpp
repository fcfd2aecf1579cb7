// The C++ interface. argv: program.
#include <atomic>
#include <dpu>
#include <iostream>
#include <numeric>
#include <sstream>

using namespace dpu;

static int failures = 0;
#define EXPECT(condition) \
  if (!(condition)) failures++, std::cout << __LINE__ << ": not so: " #condition "\n"

int main(int, char **argv) {
  DpuSet set = DpuSet::allocate(70);
  DpuProgram program = set.load(argv[1]);
  EXPECT(set.dpus().size() == 70 && set.ranks().size() == 2);
  EXPECT(program.get("sum").size() == 8);

  std::vector<std::vector<uint64_t>> values(70, std::vector<uint64_t>(256)), sums(70, {0});
  for (size_t i = 0; i < 70; i++) std::iota(values[i].begin(), values[i].end(), i);
  set.copy("values", values);
  set.exec();
  set.copy(sums, "sum");
  for (size_t i = 0; i < 70; i++) EXPECT(sums[i][0] == 255 * 128 + 256 * i + 5);

  DpuSetAsync later = set.async();
  std::atomic<unsigned> calls{0};
  const std::vector<uint64_t> ones(256, 1), zero(1, 0);  // in use until sync()
  later.copy(program.get("values"), ones);
  later.copy("sum", zero);
  later.exec();
  later.call([&](DpuSet &part, unsigned) { calls += part.dpus().size(); });
  later.copy(sums, 8, "sum");
  later.sync();
  for (size_t i = 0; i < 70; i++) EXPECT(sums[i][0] == 256 + 5);
  EXPECT(calls == 70);

  DpuSet &one = *set.dpus()[69];
  one.copy("mode", std::vector<uint32_t>{2});
  one.exec();
  std::ostringstream log;
  one.log(log);
  EXPECT(log.str().find("=== DPU#0x10005 ===\n-3|") == 0);

  try {
    set.copy("nothing", std::vector<uint32_t>{2});
    EXPECT(false);
  } catch (const DpuError &error) {
    EXPECT(std::string(error.what()) == "undefined symbol");
  }
  return failures;
}
