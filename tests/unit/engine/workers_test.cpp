#include "engine/workers.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/process_wide.hpp"

namespace uzram::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLongNs = 1'000'000'000;

// Counts how often each unit is done, and by whom.
class Counting final : public Divisible {
 public:
  explicit Counting(std::uint32_t units) : times_(std::make_unique<std::atomic<int>[]>(units)) {}

  void run(std::uint32_t begin, std::uint32_t end) noexcept override {
    for (std::uint32_t unit = begin; unit < end; ++unit) {
      if (before_) {
        before_(unit);
      }
      times_[unit].fetch_add(1, std::memory_order_relaxed);
    }
    const MutexLock lock(mutex_);
    threads_.insert(std::this_thread::get_id());
  }

  void before_each(std::function<void(std::uint32_t)> call) { before_ = std::move(call); }
  [[nodiscard]] bool each_done_once(std::uint32_t units) const {
    return std::all_of(times_.get(), times_.get() + units,
                       [](const auto& times) { return times.load() == 1; });
  }
  [[nodiscard]] std::size_t threads() {
    const MutexLock lock(mutex_);
    return threads_.size();
  }

 private:
  std::unique_ptr<std::atomic<int>[]> times_;
  std::function<void(std::uint32_t)> before_;
  Mutex mutex_;
  std::set<std::thread::id> threads_ UZRAM_GUARDED_BY(mutex_);
};

class EagerWorkers : public ::testing::Test {
 protected:
  void SetUp() override {
    workers_.set_eager(true);
    ASSERT_TRUE(workers_.start(3));
  }
  Workers workers_;
};

// Has unit 0 wait, for a limited time, until `done` holds.
template <typename Condition>
std::function<void(std::uint32_t)> unit_0_waits_for(Condition done) {
  return [done](std::uint32_t unit) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (unit == 0 && !done() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(100us);
    }
  };
}

TEST(Workers, short_work_is_left_to_its_owner) {
  Workers workers;
  ASSERT_TRUE(workers.start(2));
  Counting work(64);
  EXPECT_FALSE(workers.run(work, 64, 100, 2));
  EXPECT_TRUE(work.each_done_once(64));
  EXPECT_EQ(work.threads(), 1U);
}

TEST_F(EagerWorkers, take_the_tail_while_the_owner_is_at_the_head) {
  Counting work(100);
  std::atomic<int> others{0};
  const auto owner = std::this_thread::get_id();
  work.before_each([&, wait = unit_0_waits_for([&] { return others.load() > 0; })](auto unit) {
    if (std::this_thread::get_id() != owner) {
      others.fetch_add(1);
      EXPECT_GT(unit, 0U);
    }
    wait(unit);
  });
  EXPECT_TRUE(workers_.run(work, 100, kLongNs, 2));
  EXPECT_GT(others.load(), 0);
  EXPECT_TRUE(work.each_done_once(100));
}

TEST_F(EagerWorkers, no_more_of_them_help_than_are_asked_for) {
  for (int round = 0; round < 20; ++round) {
    Counting work(40);
    work.before_each([](auto) { std::this_thread::sleep_for(50us); });
    workers_.run(work, 40, kLongNs, 1);
    EXPECT_TRUE(work.each_done_once(40));
    EXPECT_LE(work.threads(), 2U);
  }
}

TEST_F(EagerWorkers, without_helpers_the_owner_does_it_all) {
  Counting work(40);
  EXPECT_FALSE(workers_.run(work, 40, kLongNs, 0));
  EXPECT_EQ(work.threads(), 1U);
}

TEST_F(EagerWorkers, every_unit_is_done_once_for_many_owners_at_once) {
  std::vector<std::thread> owners;
  std::atomic<int> wrong{0};
  for (int owner = 0; owner < 6; ++owner) {
    owners.emplace_back([&, owner] {
      for (std::uint32_t round = 0; round < 1500; ++round) {
        const std::uint32_t units = 1 + (round * 7 + static_cast<std::uint32_t>(owner)) % 90;
        Counting work(units);
        workers_.run(work, units, kLongNs, 1 + round % 3);
        wrong.fetch_add(work.each_done_once(units) ? 0 : 1);
      }
    });
  }
  for (auto& owner : owners) {
    owner.join();
  }
  EXPECT_EQ(wrong.load(), 0);
}

TEST_F(EagerWorkers, the_greatest_number_of_units_is_no_trouble) {
  Counting work(Workers::kMaxUnits);
  workers_.run(work, Workers::kMaxUnits, kLongNs, 3);
  EXPECT_TRUE(work.each_done_once(Workers::kMaxUnits));
}

class Dividing final : public Chore {
 public:
  explicit Dividing(Workers& workers) : workers_(workers) {}
  void run() noexcept override {
    Counting work(50);
    workers_.run(work, 50, kLongNs, 2);
    right_.fetch_add(work.each_done_once(50) ? 1 : 0);
    left_.fetch_sub(1);
    left_.notify_all();
  }
  void await() {
    for (int left = left_.load(); left != 0; left = left_.load()) {
      left_.wait(left);
    }
  }
  [[nodiscard]] int right() const { return right_.load(); }
  static constexpr int kTimes = 500;

 private:
  Workers& workers_;
  std::atomic<int> left_{kTimes};
  std::atomic<int> right_{0};
};

TEST_F(EagerWorkers, chores_are_run_and_may_have_work_shared) {
  workers_.reserve(Dividing::kTimes);
  Dividing chore(workers_);
  for (int i = 0; i < Dividing::kTimes; ++i) {
    workers_.summon(chore);
  }
  chore.await();
  EXPECT_EQ(chore.right(), Dividing::kTimes);
}

TEST(Workers, are_the_same_for_all_users_and_end_with_the_last) {
  std::weak_ptr<Workers> gone;
  {
    const std::shared_ptr<Workers> one = process_wide<Workers>();
    EXPECT_EQ(one, process_wide<Workers>());
    ASSERT_TRUE(one->start(2));
    gone = one;
  }
  EXPECT_TRUE(gone.expired());
  EXPECT_GE(process_wide<Workers>()->parallelism(), 1U);
}

}  // namespace
}  // namespace uzram::engine
