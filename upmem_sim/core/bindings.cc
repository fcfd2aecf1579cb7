// Python face of the native core.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "isa.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  using namespace upmem;
  m.attr("OPS") = nb::cast(std::vector<std::string>(kOpNames, kOpNames + OP_COUNT));
  m.attr("OP_KINDS") = nb::cast(std::vector<std::string>(kOpKindNames, kOpKindNames + OP_COUNT));
  m.attr("OP_CLASSES") = nb::cast(std::vector<uint32_t>(kOpClasses, kOpClasses + OP_COUNT));
  m.attr("CONDITIONS") =
      nb::cast(std::vector<std::string>(kConditionNames, kConditionNames + CC_COUNT));
  m.attr("CONDITION_CLASSES") =
      nb::cast(std::vector<uint32_t>(kConditionClasses, kConditionClasses + CC_COUNT));
}
