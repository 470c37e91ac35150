// rendezvous_message.h - what the ranks of a host say to each other at their meeting, and what is
// to be thought of it. Written and read by processes of one host, so in its byte order. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "shm/rendezvous.h"

namespace hvd::shm {

struct Hello {
  uint64_t magic;
  uint32_t version;
  int32_t rank;
  int32_t size;
  int32_t reserved;
  uint64_t epoch;
};

struct Answer {
  uint64_t magic;
  uint32_t ok;
  int32_t code;  // of the status, if it is not
  uint64_t bytes;
  char text[256];
};

// Why this newcomer cannot join; nullopt when it can. `here`: who has come, by rank.
std::optional<std::string> refuse_hello(const Hello& hello, const Meeting& meeting,
                                        const std::vector<bool>& here);

Answer answer_of(const Status& status, uint64_t bytes);
// What rank 0 says with it.
Status status_of(const Answer& answer);

}  // namespace hvd::shm
