// Training: tables of its own for a device's codec, from the pages that it gets.
//
// Role: off the data path, between Sampling (the pages) and TrainableCodec (the tables). The
// housekeeper gathers samples until there are kSampleBytes of them. A thread makes tables for three
// quarters of them and sees what they save on the last quarter. If that is at least kLeastSaving the
// housekeeper keeps their recipe in the table file, and then publishes them. The next attempt begins
// when kPatience times as many pages have been compressed; it ends with the last generation.
// Ownership: a device owns its Training, and that its thread, which is started for the first attempt
// and runs when its CPU has nothing else to do.
// Units: bytes, pages.
// Errors: none. Where there is no memory or no thread, an attempt is given up.
// Threads: stats and set_wanted from any; everything else by the housekeeper but learn(), which is
// the thread's. Thread and housekeeper share no lock, so that neither waits for the other: what they
// hand over belongs to the thread while the state is `learning`.
// Cost: kSampleBytes, and while the thread works what TrainableCodec::training_bytes says; published
// tables stay. All of it counts in metadata_bytes, recipes in table_bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "codec/trainable.hpp"
#include "engine/housekeeper.hpp"
#include "engine/page_table.hpp"
#include "engine/room.hpp"
#include "engine/streams.hpp"

namespace uzram::engine {

class Training final : private Housekeeper::Client, private Sampling::Taker {
 public:
  static constexpr std::size_t kSampleBytes = std::size_t{4} << 20;
  static constexpr double kLeastSaving = 0.015;
  static constexpr std::uint64_t kPatience = 4;

  // `streams` and `table` outlive it. REQUIRES: the streams are of a trainable set; the table has
  // room for the recipes of its codec. Errors: bad_alloc.
  Training(StreamSet& streams, PageTable& table, Room& room, std::uint32_t page_size_bytes);
  // REQUIRES: no page is being compressed.
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // Without it nothing is sampled and no attempt is begun; generations stay in use.
  void set_wanted(bool wanted) noexcept;
  [[nodiscard]] bool wanted() const noexcept { return wanted_.load(std::memory_order_relaxed); }

  struct Stats {
    // Generations in use beside the program's.
    std::uint32_t generations = 0;
    // Of the bytes of the last quarter, by the last generation when it was published.
    std::optional<double> saving;
    // Of the CPU, by the thread.
    std::chrono::nanoseconds cpu_time{};
    // Attempts that have ended.
    std::uint32_t attempts = 0;
    bool is_learning = false;
    std::uint64_t memory_bytes = 0;
  };
  [[nodiscard]] Stats stats() const noexcept;

  // For tests: few samples, which come often, no patience, and a thread like others. REQUIRES: nothing
  // has been compressed yet.
  void set_eager(double least_saving) noexcept;

 private:
  enum class State : std::uint8_t { resting, gathering, learning, learnt };
  struct Rules {
    std::size_t sample_bytes = kSampleBytes;
    double least_saving = kLeastSaving;
    std::uint64_t patience = kPatience;
    // How often slots are emptied.
    std::chrono::nanoseconds pause = std::chrono::milliseconds(5);
    bool only_when_idle = true;
  };
  // What an attempt has come to; no tables when it failed.
  struct Outcome {
    std::unique_ptr<codec::TrainedTables> tables;
    double saving = 0;
  };

  void pages_came() noexcept override;
  std::chrono::nanoseconds tidy() noexcept override;
  // All pages that have been compressed.
  [[nodiscard]] std::uint64_t pages() noexcept;
  void begin_gathering() noexcept;
  // Errors: bad_alloc.
  void gather();
  // False: no memory, or no thread.
  [[nodiscard]] bool begin_learning();
  void conclude() noexcept;
  void publish() noexcept;
  void rest(std::uint64_t until_pages) noexcept;
  [[nodiscard]] std::chrono::nanoseconds look_again(std::uint64_t pages) noexcept;

  void serve() noexcept;
  [[nodiscard]] Outcome learn() const;
  // Bytes that the pages would take; `tables` as in TrainableCodec::compress_with.
  [[nodiscard]] std::uint64_t stored_bytes(codec::TrainableCodec::Pages pages,
                                           const codec::TrainedTables* tables,
                                           codec::Workspace& workspace) const;

  StreamSet& streams_;
  codec::TrainableCodec& codec_;
  PageTable& table_;
  Room& room_;
  const std::uint32_t page_size_bytes_;
  Rules rules_;
  std::atomic<bool> wanted_{true};
  std::atomic<State> state_{State::resting};
  // When the next attempt begins, and what was seen when it was last looked.
  std::uint64_t begin_at_pages_ = 0;
  std::uint64_t seen_pages_ = 0;
  std::uint32_t quiet_looks_ = 0;
  // tidy() is not called before pages come.
  std::atomic<bool> asleep_{true};

  std::vector<std::unique_ptr<std::byte[]>> samples_;
  Outcome outcome_;
  // Leave for what the thread takes, while it takes it.
  std::unique_ptr<Room::Grant> grant_;

  std::atomic<std::uint32_t> attempts_{0};
  std::atomic<double> saving_{0};
  std::atomic<std::int64_t> cpu_time_ns_{0};
  std::atomic<std::uint64_t> samples_bytes_{0};
  std::atomic<std::uint64_t> learning_bytes_{0};
  std::atomic<std::uint64_t> tables_bytes_{0};

  std::atomic<bool> stopping_{false};
  // A futex word: changes when the thread has something to do.
  std::atomic<std::uint32_t> calls_{0};
  std::thread thread_;
  const std::shared_ptr<Housekeeper> keeper_;
};

}  // namespace uzram::engine
