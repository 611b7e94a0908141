#include "bench/crew.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/cpu.hpp"

namespace uzram::bench {

// A member's thread: opens its port, because some ports belong to the thread that opened them, and
// works a stretch whenever the turn changes.
void Crew::work(Member& member, std::uint32_t index, const std::shared_ptr<const DataSet>& data,
                Contents* contents, const std::atomic<bool>& stop) {
  // CPUs differ, as their neighbours on the host do: the same job of every target has the same one,
  // as long as there is one for each.
  if (phase_.jobs <= usable_cpus()) {
    bind_to_cpu_slot(index);
  }
  auto port = target_.open_port(phase_.iodepth);
  if (port) {
    member.port = *std::move(port);
    auto job = Job::make(phase_, index, data, *member.port, contents, stop);
    if (job) {
      member.job = *std::move(job);
      member.counters = std::make_unique<os::PerfCounters>();
    } else {
      member.error = std::move(job).error();
      member.failed = true;
    }
  } else {
    member.error = std::move(port).error();
    member.failed = true;
  }
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    if (--at_work_ == 0) {
      end_.notify_one();
    }
    begin_.wait(lock, [&] { return dismissed_ || turn_ != seen; });
    if (dismissed_) {
      break;
    }
    seen = turn_;
    Stretch stretch = stretch_;
    lock.unlock();
    member.counters->start();
    member.job->run(stretch);
    member.counters->stop();
    lock.lock();
  }
  lock.unlock();
  member.job.reset();
  member.port.reset();
}

Result<std::unique_ptr<Crew>> Crew::make(const Phase& phase, Target& target,
                                         const std::shared_ptr<const DataSet>& data,
                                         Contents* contents, const std::atomic<bool>& stop) {
  auto crew = std::unique_ptr<Crew>(new Crew(phase, target));
  crew->at_work_ = phase.jobs;
  for (std::uint32_t index = 0; index < phase.jobs; ++index) {
    crew->members_.push_back(std::make_unique<Member>());
    Member& member = *crew->members_.back();
    try {
      member.thread = std::thread([&crew = *crew, &member, index, data, contents, &stop] {
        crew.work(member, index, data, contents, stop);
      });
    } catch (const std::system_error& refused) {
      {
        const std::lock_guard lock(crew->mutex_);
        crew->at_work_ -= phase.jobs - index;
      }
      crew->members_.pop_back();
      return system_error("cannot start thread " + std::to_string(index + 1) + " of " +
                              std::to_string(phase.jobs) + "; take fewer --jobs",
                          refused.code().value());
    }
  }
  crew->wait_for_all();
  for (const auto& member : crew->members_) {
    if (member->failed) {
      return member->error;
    }
  }
  return crew;
}

Crew::~Crew() {
  wait_for_all();
  {
    const std::lock_guard lock(mutex_);
    dismissed_ = true;
  }
  begin_.notify_all();
  for (const auto& member : members_) {
    member->thread.join();
  }
}

void Crew::start_all(const Stretch& stretch) {
  {
    const std::lock_guard lock(mutex_);
    stretch_ = stretch;
    at_work_ = members_.size();
    ++turn_;
  }
  begin_.notify_all();
}

void Crew::wait_for_all() {
  std::unique_lock lock(mutex_);
  end_.wait(lock, [this] { return at_work_ == 0; });
}

Stretch Crew::stretch_of(std::uint64_t blocks, std::uint32_t index,
                         std::uint32_t count) const noexcept {
  Stretch stretch;
  stretch.flush = phase_.flush && index + 1 == count;
  if (phase_.runtime_s > 0) {
    stretch.time_ns = static_cast<std::uint64_t>(phase_.runtime_s * 1e9 / count);
  } else {
    const std::uint64_t total = blocks * phase_.loops;
    stretch.requests = total * (index + 1) / count - total * index / count;
  }
  return stretch;
}

Result<double> Crew::run(std::uint32_t index, std::uint32_t count) {
  return run(stretch_of(members_.front()->job->blocks(), index, count));
}

Result<double> Crew::run_until(const std::atomic<bool>& end) {
  Stretch stretch;
  stretch.until = &end;
  return run(stretch);
}

Result<double> Crew::run(const Stretch& stretch) {
  start_all(stretch);
  wait_for_all();
  std::uint64_t start = ~std::uint64_t{0};
  std::uint64_t end = 0;
  for (const auto& member : members_) {
    if (!member->job->failure().empty()) {
      return Error{Errc::system, 0, member->job->failure()};
    }
    start = std::min(start, member->job->counts().start_ns);
    end = std::max(end, member->job->counts().end_ns);
  }
  return static_cast<double>(end - start) / 1e9;
}

JobCounts Crew::counts() const {
  JobCounts sum;
  for (const auto& member : members_) {
    sum.requests += member->job->counts().requests;
    sum.read_bytes += member->job->counts().read_bytes;
    sum.write_bytes += member->job->counts().write_bytes;
  }
  return sum;
}

void Crew::merge_latencies(LatencyHistogram& latency, LatencyHistogram& submit) const {
  for (const auto& member : members_) {
    if (member->job->latency() != nullptr) {
      latency.merge(*member->job->latency());
      submit.merge(*member->job->submit_latency());
    }
  }
}

std::string Crew::note() const {
  for (const auto& member : members_) {
    if (std::string note = member->port->note(); !note.empty()) {
      return note;
    }
  }
  return {};
}

Counters Crew::counters() const {
  std::vector<Counters> of_members;
  for (const auto& member : members_) {
    of_members.push_back(member->counters->counts());
  }
  return sum_of_counters(of_members);
}

Counters sum_of_counters(const std::vector<Counters>& of_threads) {
  Counters sums;
  std::map<std::string, std::size_t> counted;
  for (const Counters& counters : of_threads) {
    for (const auto& [name, count] : counters) {
      sums[name] += count;
      ++counted[name];
    }
  }
  std::erase_if(sums, [&](const auto& sum) { return counted[sum.first] != of_threads.size(); });
  return sums;
}

}  // namespace uzram::bench
