#include "base/cpu.hpp"

#include <cstdint>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>

namespace uzram {
namespace {

TEST(Cpu, usable_cpus_are_those_of_the_affinity_mask) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(usable_cpus(), static_cast<std::uint32_t>(CPU_COUNT(&before)));
  int first = 0;
  while (!CPU_ISSET(first, &before)) {
    ++first;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cpus(), 1U);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Cpu, each_usable_cpu_has_a_slot_of_its_own) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const std::uint32_t count = usable_cpus();
  ASSERT_LT(current_cpu_slot(), count);
  std::uint32_t expected = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) {
      continue;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(current_cpu_slot(), expected++);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Cpu, a_thread_is_bound_to_the_cpu_of_a_slot) {
  // Threads of their own: the binding ends with them.
  for (std::uint32_t slot = 0; slot < usable_cpus(); ++slot) {
    std::thread([slot] {
      EXPECT_TRUE(bind_to_cpu_slot(slot));
      EXPECT_EQ(current_cpu_slot(), slot);
    }).join();
  }
  std::thread([] { EXPECT_FALSE(bind_to_cpu_slot(usable_cpus())); }).join();
}

TEST(Cpu, a_thread_avoids_the_cpu_of_a_slot_unless_it_is_the_only_one) {
  for (std::uint32_t slot = 0; slot < usable_cpus(); ++slot) {
    std::thread([slot] {
      bind_to_cpu_slot(slot);
      avoid_cpu_slot(slot);
      EXPECT_EQ(current_cpu_slot() == slot, usable_cpus() == 1);
      avoid_cpu_slot(usable_cpus());
      cpu_set_t set;
      ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
      EXPECT_EQ(CPU_COUNT(&set), static_cast<int>(usable_cpus()));
    }).join();
  }
}

TEST(Cpu, a_polite_thread_is_scheduled_as_batch) {
  std::thread([] {
    never_preempt_on_wakeup();
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
  }).join();
}

}  // namespace
}  // namespace uzram
