// Threads that simulate DPUs: as many as there are processors, whoever asks.
#pragma once
#include <cstddef>
#include <functional>

namespace upmem::host {

// Calls f(0) to f(count - 1) on them and waits. Not to be called from within f.
void run_parallel(size_t count, const std::function<void(size_t)>& f);

}  // namespace upmem::host
