#include "bus.h"

#include <algorithm>
#include <limits>

#include "settings.h"

namespace upmem::host {
namespace {

constexpr size_t kSpans = 256;  // that are remembered for calls of other threads

double start_of(const Track& track) { return std::max(track.next.front().asked, track.free); }

void end(Track& track, double time) {
  track.free = time;
  track.next.pop_front();
}

// All that stands before the next transfer needs nobody else.
void skip_other_work(Track& track) {
  while (!track.next.empty() && track.next.front().dpus == 0)
    end(track, start_of(track) + track.next.front().seconds);
}

}  // namespace

double Sending::seconds(uint32_t dpus) const {
  const TransferPreset& system = preset();
  if (!mram) return (in ? system.wram_in : system.wram_out).seconds(bytes, dpus);
  const double sent = broadcast ? bytes / system.broadcast_gain : bytes;
  return (in ? system.in : system.out).seconds(sent, dpus);
}

void Bus::open(Tracks tracks) {
  tracks_ = std::move(tracks);
  restart();
}

void Bus::restart() {
  const std::lock_guard lock(mutex_);
  for (Track* track : tracks_) *track = {};
  past_.clear();
  now_ = 0;
}

void Bus::add(Track& track, const Work& work) {
  const std::lock_guard lock(mutex_);
  track.next.push_back(work);
}

double Bus::settle(const Tracks& wanted) {
  const std::lock_guard lock(mutex_);
  return settle_locked(wanted);
}

double Bus::pass(const Tracks& tracks, Work work) {
  const std::lock_guard lock(mutex_);
  work.asked = std::max(work.asked, settle_locked(tracks));
  tracks[0]->next.push_back(work);
  const double time = settle_locked({tracks[0]});
  for (Track* track : tracks) track->free = time;
  return time;
}

double Bus::settle_locked(const Tracks& wanted) {
  for (;;) {
    for (Track* track : tracks_) skip_other_work(*track);
    const auto done = [](const Track* track) { return track->next.empty(); };
    if (std::all_of(wanted.begin(), wanted.end(), done)) break;
    advance();
  }
  double time = 0;
  for (const Track* track : wanted) time = std::max(time, track->free);
  return time;
}

// To the next time at which a transfer begins or ends.
void Bus::advance() {
  Tracks active;
  double until = std::numeric_limits<double>::infinity();
  uint32_t dpus = 0;
  for (Track* track : tracks_) {
    if (track->next.empty()) continue;
    const double start = start_of(*track);
    if (!track->next.front().begun && start < now_) return catch_up(*track, start);
    if (start > now_) {
      until = std::min(until, start);
      continue;
    }
    track->next.front().begun = true;
    active.push_back(track);
    dpus += track->next.front().dpus;
  }
  std::vector<double> ends;
  for (const Track* track : active) {
    const Work& work = track->next.front();
    ends.push_back(now_ + work.left * work.sending.seconds(dpus));
    until = std::min(until, ends.back());
  }
  Span span{now_, until, {}};
  for (size_t i = 0; i < active.size(); ++i) {
    Work& work = active[i]->next.front();
    const double rate = 1 / work.sending.seconds(dpus);
    span.shares.push_back({work.sending, work.dpus, rate});
    work.left -= (until - now_) * rate;
    if (ends[i] <= until) end(*active[i], until);
  }
  now_ = until;
  if (active.empty()) return;
  past_.push_back(std::move(span));
  if (past_.size() > kSpans) past_.pop_front();
}

// A transfer of a thread whose time is behind what is settled: what the others left of the bus is
// its own, so that together they never exceed it.
void Bus::catch_up(Track& track, double start) {
  Work& work = track.next.front();
  std::deque<Span> past;
  const auto live = [&](double from, double to, const std::vector<Share>& shares) {
    uint32_t dpus = work.dpus;
    for (const Share& share : shares) dpus += share.dpus;
    double free = dpus;
    for (const Share& share : shares) free -= share.dpus * share.rate * share.sending.seconds(dpus);
    const double rate = std::clamp(free / (work.dpus * work.sending.seconds(dpus)), 0.0,
                                   1 / work.sending.seconds(work.dpus));
    const bool ends = work.left <= rate * (to - from);
    const double until = ends ? from + work.left / rate : to;
    past.push_back({from, until, shares});
    past.back().shares.push_back({work.sending, work.dpus, rate});
    if (until < to && !shares.empty()) past.push_back({until, to, shares});
    work.left = ends ? 0 : work.left - rate * (to - from);
    start = until;
  };
  for (const Span& span : past_) {
    if (work.left > 0 && start < span.begin) live(start, span.begin, {});
    if (work.left <= 0 || span.end <= start) {
      past.push_back(span);
      continue;
    }
    if (span.begin < start) past.push_back({span.begin, start, span.shares});
    live(start, span.end, span.shares);
  }
  if (work.left > 0 && start < now_) live(start, now_, {});
  past_ = std::move(past);
  while (past_.size() > kSpans) past_.pop_front();
  if (work.left > 0)
    work.begun = true;
  else
    end(track, start);
}

}  // namespace upmem::host
