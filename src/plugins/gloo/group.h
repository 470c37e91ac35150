// group.h - connections of Gloo among some ranks, made from addresses that the core has exchanged.
// Throws what Gloo throws; table.cc turns it into values. One call at a time; abort() any thread.
#pragma once

#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace hvd_gloo {

class Group {
 public:
  Group(std::shared_ptr<gloo::transport::Device> device, int rank, int size,
        std::chrono::milliseconds time_limit);
  // After a healthy end: waits until every peer has all it needs of us, a few seconds at most.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  std::vector<char> address_for(int peer) const;
  void connect(const void* const* addresses, const size_t* lengths);
  void abort(const std::string& why);

  // Around each call. A peer that closes its end while we still take in what it has sent makes
  // Gloo fail, though all bytes are there. So everybody tells everybody that it is through, and
  // waits for that before the next call, or before it closes.
  void begin();
  void finish();

  const std::shared_ptr<gloo::Context>& context() const { return context_; }
  uint32_t next_tag() { return ++tag_; }
  bool is_alone() const { return size_ == 1; }

 private:
  class Context;
  void settle(std::chrono::milliseconds time_limit);

  const int rank_, size_;
  const std::chrono::milliseconds time_limit_;
  std::shared_ptr<gloo::transport::Context> transport_;
  std::shared_ptr<gloo::Context> context_;
  uint32_t tag_ = 0;
  // Set by abort(), and by a call that did not come to its end.
  std::atomic<bool> is_broken_{false};
  bool is_connected_ = false;
  bool owes_settling_ = false;
  std::vector<char> told_, heard_;  // one byte per peer
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> telling_, hearing_;
};

}  // namespace hvd_gloo
