// Requests: what a front end or an embedding program asks of a device.
//
// Role: step 1 of the data path. A Request is filled by the submitter, handed to a Queue in a
// batch, and comes back from the same Queue with `status` set.
// Units: bytes; offset and length are multiples of kSectorSize.
// Ownership: the Request and its buffer belong to the submitter and must stay until the Request
// has been reaped.
#pragma once

#include <cstddef>
#include <cstdint>

#include "uzram/error.hpp"

namespace uzram {

class Queue;

// The smallest address a device knows.
inline constexpr std::uint32_t kSectorSize = 512;

enum class Op : std::uint8_t {
  read,          // fill buffer; what was never written reads as zeroes
  write,         // store buffer
  discard,       // drop the whole pages inside the range; partial pages at its ends are left alone
  write_zeroes,  // the range reads as zeroes; whole pages are freed, partial ones patched
  allocate_zeroes,  // as write_zeroes, but every page of the range stays allocated
  flush,            // offset, length and buffer are ignored
};

struct Request {
  Op op = Op::read;
  // Set by the device when the request completes.
  Errc status = Errc::ok;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  // read: written to; write: only read; others: unused.
  std::byte* buffer = nullptr;
  // The submitter's own; the device does not look at it.
  std::uint64_t user_data = 0;
  // Used by the Queue between submit and reap.
  std::uint64_t done = 0;
  Request* next = nullptr;
  Queue* queue = nullptr;
};

}  // namespace uzram
