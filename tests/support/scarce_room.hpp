// A room guard of a made-up machine, whose available memory a test sets.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include <unistd.h>

#include "engine/room.hpp"

namespace uzram::test {

class ScarceRoom {
 public:
  explicit ScarceRoom(std::uint64_t available_bytes) {
    std::string pattern = "/tmp/uzram-test-proc-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    set_available(available_bytes);
    auto headroom = os::MemoryHeadroom::open({directory_});
    room_ = std::make_unique<engine::Room>(headroom ? std::move(*headroom) : nullptr);
    opened_ = headroom.has_value();
  }
  ~ScarceRoom() {
    ::unlink((directory_ + "/meminfo").c_str());
    ::rmdir(directory_.c_str());
  }
  ScarceRoom(const ScarceRoom&) = delete;
  ScarceRoom& operator=(const ScarceRoom&) = delete;

  // Beyond the margin that MemoryHeadroom keeps of a machine of 1 GiB (64 MiB).
  void set_available(std::uint64_t bytes) {
    constexpr std::uint64_t kMargin = std::uint64_t{64} << 20;
    std::ofstream(directory_ + "/meminfo")
        << "MemTotal: 1048576 kB\nMemAvailable: " << (bytes + kMargin) / 1024 << " kB\n";
  }
  [[nodiscard]] bool opened() const { return opened_; }
  [[nodiscard]] engine::Room& room() { return *room_; }

 private:
  std::string directory_;
  bool opened_ = false;
  std::unique_ptr<engine::Room> room_;
};

}  // namespace uzram::test
