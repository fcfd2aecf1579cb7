// Python face of the native core. Everything with a unit or a message lives in dpu.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "calls.h"
#include "machine.h"
#include "runner.h"
#include "watch.h"

namespace nb = nanobind;

namespace upmem {
namespace {

using Bytes = nb::ndarray<uint8_t, nb::numpy, nb::ndim<1>>;
using Counts = nb::ndarray<const uint64_t, nb::numpy, nb::ndim<1>>;

std::vector<Row> rows_of(const nb::bytes& data, uint32_t room) {
  const size_t count = data.size() / sizeof(Row);
  if (data.size() % sizeof(Row) || count > room)
    throw std::invalid_argument("program of " + std::to_string(data.size()) + " bytes, limit " +
                                std::to_string(room) + " rows of 16 bytes");
  std::vector<Row> rows(count);
  if (count) std::memcpy(rows.data(), data.c_str(), data.size());
  return rows;
}

Params params_of(const std::map<std::string, uint64_t>& values) {
  Params params;
  if (values.size() != std::size(kParamFields))
    throw std::invalid_argument("parameters: " + std::to_string(values.size()) + " given, " +
                                std::to_string(std::size(kParamFields)) + " needed");
  for (const ParamField& field : kParamFields) params.*field.member = values.at(field.name);
  return params;
}

// Instructions that ldmai fetched, decoded by the caller, take their place.
void set_rows(Machine& m, const nb::bytes& data) {
  const auto rows = rows_of(data, kIramInstructions - m.iram.index);
  auto own = std::make_shared<Code>(*m.code);  // other DPUs keep theirs
  own->replace(m.iram.index, rows.data(), static_cast<uint32_t>(rows.size()));
  m.code = std::move(own);
  m.iram.count = 0;
}

Tasklet& tasklet_at(Machine& m, uint32_t index) {
  if (index >= kMaxTasklets) throw nb::index_error();
  return m.tasklets[index];
}

nb::dict tasklet_state(Machine& m, uint32_t index) {
  const Tasklet& t = tasklet_at(m, index);
  nb::dict d;
  d["registers"] = std::vector<uint32_t>(t.r, t.r + 24);
  d["pc"] = t.pc % kIramInstructions;
  d["zero"] = t.z == 0;
  d["carry"] = t.cf;
  d["running"] = (m.running >> index & 1) != 0;
  d["booted"] = t.booted;
  d["ended"] = t.ended;
  d["ready"] = t.ready;
  return d;
}

nb::dict tasklet_counters(Machine& m, uint32_t index) {
  const Tasklet& t = tasklet_at(m, index);
  nb::dict d;
  d["issued"] = t.issued;
  d["retries"] = t.retries;
  d["dmas"] = t.dmas;
  d["stops"] = t.stops;
  d["dma"] = t.dma_wait;
  d["asleep"] = t.asleep;
  d["idle"] = t.idle;
  d["stopped_at"] = t.stopped_at;
  d["booted"] = t.booted;
  d["ended"] = t.ended;
  d["running"] = (m.running >> index & 1) != 0;
  return d;
}

nb::dict dma_counters(const Machine& m) {
  nb::dict d;
  d["reads"] = m.dma.reads;
  d["writes"] = m.dma.writes;
  d["read_bytes"] = m.dma.read_bytes;
  d["write_bytes"] = m.dma.write_bytes;
  d["busy_cycles"] = m.dma.busy / kFraction;
  d["sizes"] = std::vector<uint64_t>(m.dma.sizes.begin(), m.dma.sizes.end());
  return d;
}

nb::tuple fault_of(const Machine& m) {
  const Fault& f = m.fault;
  return nb::make_tuple(static_cast<int>(f.kind), f.tasklet, f.pc, f.address, f.size, f.other);
}

void set_register(Machine& m, uint32_t index, uint32_t reg, uint32_t value) {
  if (reg >= 24) throw nb::index_error();
  tasklet_at(m, index).r[reg] = value;
}

std::tuple<int, uint64_t> next_issue(const Machine& m) {
  uint64_t at = 0;
  const int t = m.next_issue(at);
  return {t, at};
}

Exit step(Machine& m) {
  uint64_t at = 0;
  return m.next_issue(at) < 0 ? m.run_plain(m.cycle) : m.run_plain(at + 1);
}

Watch& watched(Machine& m) {
  if (!m.watch) throw std::invalid_argument("nothing was asked to be recorded");
  return *m.watch;
}

void watch(Machine& m, uint32_t bits) {
  if (!bits) return m.watch.reset();
  // What is known about the memories stays from run to run.
  if (!m.watch || m.watch->bits != bits) m.watch = std::make_unique<Watch>(bits, m);
}

uint8_t* known(const std::unique_ptr<Validity>& memory) {
  if (!memory) throw std::invalid_argument("reads of uninitialised memory are not checked");
  return memory->data();
}

void set_stack(Machine& m, uint32_t index, uint32_t low, uint32_t bytes) {
  Tasklet& t = tasklet_at(m, index);
  t.stack_low = low;
  t.stack_bytes = bytes;
}

// The timeline as bytes: an array of SPAN in dpu.py.
nb::bytes spans(Machine& m) {
  Watch& w = watched(m);
  w.finish(m);
  return nb::bytes(w.spans.data(), w.spans.size() * sizeof(Span));
}

void define_machine(nb::module_& module) {
  nb::class_<Machine>(module, "Machine")
      .def("__init__",
           [](Machine* self, std::shared_ptr<Code> code,
              const std::map<std::string, uint64_t>& params) {
             new (self) Machine(std::move(code), params_of(params));
           })
      .def_prop_ro("wram",
                   [](nb::handle self) {
                     auto& m = nb::cast<Machine&>(self);
                     return Bytes(m.wram, {m.params.wram_bytes}, self);
                   })
      .def_prop_ro("mram",
                   [](nb::handle self) {
                     auto& m = nb::cast<Machine&>(self);
                     return Bytes(m.mram, {m.params.mram_bytes}, self);
                   })
      .def("start", &Machine::start)
      .def("step", &step)
      .def(
          "advance",
          [](Machine& m, uint64_t until, bool plain, bool interleaved) {
            if (plain) return m.run_plain(until);
            return interleaved ? m.run_interleaved(until) : m.run_fast(until);
          },
          nb::arg("until"), nb::arg("plain") = false, nb::arg("interleaved") = false)
      .def("next_issue", &next_issue)
      .def("tasklet", &tasklet_state)
      .def("lined_caller",
           [](Machine& m, uint32_t index, int32_t pc, std::vector<bool> lined) {
             tasklet_at(m, index);
             lined.resize(m.code->size);
             return lined_caller(m, index, pc, lined);
           })
      .def("counters", &tasklet_counters)
      .def("set_register", &set_register)
      .def("set_rows", &set_rows)
      .def_prop_ro("iram_index", [](const Machine& m) { return m.iram.index; })
      .def_prop_ro("iram_words",
                   [](const Machine& m) {
                     return std::vector<uint64_t>(m.iram.words.begin(),
                                                  m.iram.words.begin() + m.iram.count);
                   })
      .def_prop_ro("atomic",
                   [](nb::handle self) {
                     auto& m = nb::cast<Machine&>(self);
                     return Bytes(m.atomic.data(), {m.atomic.size()}, self);
                   })
      .def_prop_ro("cycle", [](const Machine& m) { return m.cycle; })
      .def_prop_ro("instructions", &Machine::instructions)
      .def_prop_ro("dma", &dma_counters)
      .def_prop_ro("fault", &fault_of)
      .def("watch", &watch)
      .def_prop_ro("wram_valid",
                   [](nb::handle self) {
                     auto& m = nb::cast<Machine&>(self);
                     return Bytes(known(watched(m).wram_valid), {m.params.wram_bytes}, self);
                   })
      .def_prop_ro("mram_valid",
                   [](nb::handle self) {
                     auto& m = nb::cast<Machine&>(self);
                     return Bytes(known(watched(m).mram_valid), {m.params.mram_bytes}, self);
                   })
      .def("set_stack", &set_stack)
      .def_prop_ro("spans", &spans)
      .def_prop_ro("histogram", [](nb::handle self) {
        auto& m = nb::cast<Machine&>(self);
        const auto& counts = watched(m).histogram;
        return Counts(counts.data(), {counts.size()}, self);
      });
}

}  // namespace
}  // namespace upmem

NB_MODULE(_core, m) {
  using namespace upmem;
  m.attr("OPS") = nb::cast(std::vector<std::string>(kOpNames, kOpNames + OP_COUNT));
  m.attr("OP_KINDS") = nb::cast(std::vector<std::string>(kOpKindNames, kOpKindNames + OP_COUNT));
  m.attr("OP_CLASSES") = nb::cast(std::vector<uint32_t>(kOpClasses, kOpClasses + OP_COUNT));
  m.attr("CONDITIONS") =
      nb::cast(std::vector<std::string>(kConditionNames, kConditionNames + CC_COUNT));
  m.attr("CONDITION_CLASSES") =
      nb::cast(std::vector<uint32_t>(kConditionClasses, kConditionClasses + CC_COUNT));
  nb::enum_<Exit>(m, "Exit")
      .value("BUDGET", Exit::BUDGET)
      .value("FINISHED", Exit::FINISHED)
      .value("FAULTED", Exit::FAULTED)
      .value("IRAM", Exit::IRAM);
  nb::class_<Code>(m, "Code").def("__init__", [](Code* self, const nb::bytes& data) {
    const auto rows = rows_of(data, kIramInstructions);
    new (self) Code(rows.data(), static_cast<uint32_t>(rows.size()));
  });
  define_machine(m);
  m.def("run", &run_machines, nb::arg("machines"), nb::arg("threads"), nb::arg("max_cycles"),
        nb::arg("plain") = false);
}
