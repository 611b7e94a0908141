// Executor: who does the work of a batch.
//
// Role: between step 1 and step 2 of the data path. This is the mode `nowait`: the submitter does
// everything before submit returns. While a request is worked on, the entry of the one after the
// next and the object of the next are being loaded.
// Threads: as Queue.
#include <cstddef>
#include <span>

#include "uzram/device.hpp"

#include "engine/device_impl.hpp"

namespace uzram {

bool Device::Impl::first_page(const Request& request, engine::PageIndex& page) const noexcept {
  page = request.offset >> page_shift;
  return (request.op == Op::read || request.op == Op::write) &&
         request.offset < options.disksize_bytes;
}

void Device::Impl::execute(Request& request) noexcept {
  const auto length = static_cast<std::size_t>(request.length);
  switch (request.op) {
    case Op::read:
      request.status = read(request.offset, {request.buffer, length});
      return;
    case Op::write:
      request.status = write(request.offset, {request.buffer, length});
      return;
    case Op::discard:
      request.status = discard(request.offset, request.length);
      return;
    case Op::write_zeroes:
      request.status = write_zeroes(request.offset, request.length, false);
      return;
    case Op::allocate_zeroes:
      request.status = write_zeroes(request.offset, request.length, true);
      return;
    case Op::flush:
      request.status = Errc::ok;
      return;
  }
  request.status = Errc::invalid_argument;
}

void Queue::submit(std::span<Request* const> batch) noexcept {
  Device::Impl& device = device_.impl();
  engine::PageIndex page = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (i + 2 < batch.size() && device.first_page(*batch[i + 2], page)) {
      device.store.prefetch_entry(page);
    }
    if (i + 1 < batch.size() && batch[i + 1]->op == Op::read &&
        device.first_page(*batch[i + 1], page)) {
      device.store.prefetch_object(page);
    }
    Request* const request = batch[i];
    device.execute(*request);
    request->next = nullptr;
    if (completed_tail_ != nullptr) {
      completed_tail_->next = request;
    } else {
      completed_head_ = request;
    }
    completed_tail_ = request;
  }
}

Request* Queue::reap() noexcept {
  Request* const request = completed_head_;
  if (request != nullptr) {
    completed_head_ = request->next;
    if (completed_head_ == nullptr) {
      completed_tail_ = nullptr;
    }
    request->next = nullptr;
  }
  return request;
}

}  // namespace uzram
