// The memory bus in simulated time. Transfers of different ranks that overlap take together as
// long as one transfer to all their DPUs: measured rates of N ranks stay far below N times that of
// one, and a push to N ranks is itself N pushes side by side.
#pragma once
#include <deque>
#include <mutex>
#include <vector>

namespace upmem::host {

// What one call copies, but for the number of DPUs that take part.
struct Sending {
  bool mram, in, broadcast;  // `in`: to the DPUs
  double bytes;              // of each
  double seconds(uint32_t dpus) const;
};

// What a rank does next: a transfer, or something that leaves the bus alone.
struct Work {
  double asked;     // begins no earlier
  double seconds;   // if it is no transfer
  Sending sending;  // if it is one,
  uint32_t dpus;    // of so many; 0: none
  double left = 1;  // part of the transfer that is still to do
  bool begun = false;
};

// A rank's own time.
struct Track {
  double free = 0;        // end of what is settled
  std::deque<Work> next;  // asked for, in order
};
using Tracks = std::vector<Track*>;

// One for each allocation. When work ends is settled as late as possible, when somebody waits for
// it: by then all that was asked for beside it is known, whichever thread came first.
class Bus {
 public:
  void open(Tracks tracks);
  void add(Track& track, const Work& work);
  // Settles all work of these tracks, and of others what it depends on. When the last of it ends.
  double settle(const Tracks& wanted);
  // Settles these tracks, then does `work` on all of them as one. When it ends.
  double pass(const Tracks& tracks, Work work);
  // All of the tracks begin again.
  void restart();

 private:
  // A transfer's part in a span of time.
  struct Share {
    Sending sending;
    uint32_t dpus;
    double rate;  // parts of the transfer a second
  };
  struct Span {
    double begin, end;
    std::vector<Share> shares;
  };

  double settle_locked(const Tracks& wanted);
  void advance();
  void catch_up(Track& track, double start);

  std::mutex mutex_;
  Tracks tracks_;
  double now_ = 0;         // transfers are settled up to here
  std::deque<Span> past_;  // the last spans with transfers
};

}  // namespace upmem::host
