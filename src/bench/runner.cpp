#include "bench/runner.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "bench/cell.hpp"
#include "bench/crew.hpp"
#include "bench/memory_check.hpp"
#include "bench/progress.hpp"
#include "bench/resources.hpp"
#include "bench/turns.hpp"

namespace uzram::bench {
namespace {

// Long enough that caches the other targets have emptied are full again soon; short enough that what
// slows the machine down for a while meets all targets.
constexpr std::uint64_t kStretchBytes = std::uint64_t{32} << 20;
constexpr double kStretchSeconds = 0.05;

std::uint32_t stretches_of(const Phase& phase) noexcept {
  double stretches = phase.runtime_s / kStretchSeconds;
  if (phase.runtime_s <= 0) {
    // Several jobs end a stretch at different moments; longer ones make that matter less.
    const std::uint64_t shortest = kStretchBytes * std::max<std::uint64_t>(1, phase.jobs / 2);
    const std::uint64_t bytes = phase.job_bytes * phase.loops * phase.jobs;
    stretches = static_cast<double>(bytes) / static_cast<double>(shortest);
  }
  return static_cast<std::uint32_t>(std::clamp(stretches, 1.0, double{kMostStretches}));
}

// The targets of a group during one round.
struct Opened {
  std::unique_ptr<Target> target;
  std::unique_ptr<Contents> contents;
  std::unique_ptr<Crew> crew;
  double elapsed_s = 0;
  Usage usage;
};

class Runner {
 public:
  Runner(const Plan& plan, const std::atomic<bool>& stop, int progress_fd)
      : plan_(plan), stop_(stop), progress_(steps_of(plan), progress_fd) {
    for (const Group& group : plan.groups) {
      cells_.emplace_back(group.phases.size());
      for (auto& cells : cells_.back()) {
        cells.resize(group.targets.size());
      }
    }
  }

  Result<void> run() {
    for (round_ = 0; round_ < plan_.rounds; ++round_) {
      for (group_ = 0; group_ < plan_.groups.size(); ++group_) {
        if (auto done = run_group(plan_.groups[group_]); !done) {
          return done;
        }
        if (stop_.load()) {
          return {};
        }
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<Row> rows() const {
    std::vector<Row> rows;
    for (std::size_t group = 0; group < plan_.groups.size(); ++group) {
      for (std::size_t phase = 0; phase < plan_.groups[group].phases.size(); ++phase) {
        if (plan_.groups[group].phases[phase].timed) {
          add_rows(plan_.groups[group], phase, cells_[group][phase], rows);
        }
      }
    }
    return rows;
  }

  // What the run found out about its targets, for people.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }

 private:
  static std::size_t steps_of(const Plan& plan) {
    std::size_t steps = 0;
    for (const Group& group : plan.groups) {
      steps += group.phases.size();
    }
    return steps * plan.rounds;
  }

  static void add_rows(const Group& group, std::size_t phase, const std::vector<Cell>& cells,
                       std::vector<Row>& rows) {
    const Cell* codec = nullptr;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (group.targets[i].kind == TargetKind::codec && codec == nullptr) {
        codec = &cells[i];
      }
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!cells[i].empty() && (i != 0 || !group.first_is_repeated)) {
        const Cell* const first = group.lacks_first ? nullptr : &cells.front();
        rows.push_back(
            cells[i].row(group.phases[phase], group.targets[i], *group.data, first, codec));
      }
    }
  }

  Result<void> open_targets(const Group& group, std::vector<Opened>& opened) {
    for (const TargetConfig& config : group.targets) {
      TargetNeeds needs{group.size_bytes, group.data, 1};
      for (const Phase& phase : group.phases) {
        needs.iodepth = std::max(needs.iodepth, phase_for(config, phase).iodepth);
      }
      auto target = open_target(config, needs);
      if (!target) {
        return std::move(target).error();
      }
      opened.emplace_back().target = *std::move(target);
      if (opened.back().target->info().zeroed) {
        add_note(config.label +
                 " does not discard: it was zeroed before each use, and reads of "
                 "holes find zeroes");
      }
      if (keeps_contents(group, 0)) {
        opened.back().contents =
            std::make_unique<Contents>(group.data, group.size_bytes / kDataPage);
      }
    }
    return {};
  }

  void add_note(const std::string& text) {
    if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) {
      notes_.push_back(text);
    }
  }

  Result<void> run_group(const Group& group) {
    std::vector<Opened> opened;
    if (auto done = open_targets(group, opened); !done) {
      return done;
    }
    for (std::size_t phase = 0; phase < group.phases.size() && !stop_.load(); ++phase) {
      progress_.step("round " + std::to_string(round_ + 1) + "/" + std::to_string(plan_.rounds) +
                     "  " + group.data->name() + " " + group.phases[phase].op + ", " +
                     std::to_string(group.phases[phase].jobs) + " jobs");
      if (auto done = run_phase(group, phase, opened); !done) {
        return done;
      }
    }
    return {};
  }

  Result<void> run_phase(const Group& group, std::size_t index, std::vector<Opened>& opened) {
    Phase phase = group.phases[index];
    phase.seed = round_;
    if (phase.pause_s > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(phase.pause_s));
    }
    // Of a phase whose passes are repeated the crews know one.
    const Phase whole = phase;
    if (phase.refill) {
      phase.loops = 1;
      phase.runtime_s = 0;
    }
    for (std::size_t i = 0; i < opened.size(); ++i) {
      if (!keeps_contents(group, index)) {
        opened[i].contents.reset();
      }
      auto crew = Crew::make(phase_for(group.targets[i], phase), *opened[i].target, group.data,
                             opened[i].contents.get(), stop_);
      if (!crew) {
        return name_target(group.targets[i], std::move(crew).error());
      }
      opened[i].crew = *std::move(crew);
      opened[i].elapsed_s = 0;
      opened[i].usage = {};
    }
    Turns turns(opened.size(), round_);
    if (auto done = phase.refill ? run_passes(group, index, whole, turns, opened)
                                 : run_stretches(group, stretches_of(phase), turns, opened);
        !done) {
      return done;
    }
    for (std::size_t i = 0; i < opened.size(); ++i) {
      if (phase.timed && !stop_.load()) {
        cells_[group_][index][i].add_round(opened[i].elapsed_s, *opened[i].crew, opened[i].usage,
                                           *opened[i].target);
      }
      if (const std::string note = opened[i].crew->note(); !note.empty()) {
        add_note(group.targets[i].label + ": " + note);
      }
      opened[i].crew.reset();
    }
    return {};
  }

  static Result<void> run_stretches(const Group& group, std::uint32_t stretches, Turns& turns,
                                    std::vector<Opened>& opened) {
    for (std::uint32_t stretch = 0; stretch < stretches; ++stretch, turns.next_stretch()) {
      for (const std::size_t i : turns.order()) {
        if (auto done = run_stretch(opened[i], stretch, stretches); !done) {
          return name_target(group.targets[i], std::move(done).error());
        }
      }
    }
    return {};
  }

  // As often as the phase's loops say, or until each target has worked for its runtime.
  Result<void> run_passes(const Group& group, std::size_t index, const Phase& phase, Turns& turns,
                          std::vector<Opened>& opened) {
    Phase pass = phase;
    pass.loops = 1;
    pass.runtime_s = 0;
    const auto goes_on = [&](std::uint32_t passes) {
      return phase.runtime_s <= 0
                 ? passes < phase.loops
                 : std::any_of(opened.begin(), opened.end(),
                               [&](const auto& each) { return each.elapsed_s < phase.runtime_s; });
    };
    for (std::uint32_t passes = 0; goes_on(passes) && !stop_.load(); ++passes) {
      // For the first pass, the phase before this one has filled it.
      for (const std::size_t i : passes == 0 ? std::vector<std::size_t>{} : turns.order()) {
        if (auto filled = refill(group, group.phases[index - 1], opened[i]); !filled) {
          return name_target(group.targets[i], std::move(filled).error());
        }
      }
      if (phase.beside_discard) {
        for (const std::size_t i : turns.order()) {
          if (auto done = run_beside_discard(group.size_bytes, opened[i]); !done) {
            return name_target(group.targets[i], std::move(done).error());
          }
        }
        turns.next_stretch();
      } else if (auto done = run_stretches(group, stretches_of(pass), turns, opened); !done) {
        return done;
      }
    }
    return {};
  }

  // The crew works while another thread discards all of the device.
  static Result<void> run_beside_discard(std::uint64_t size_bytes, Opened& opened) {
    const Usage before = usage_now(*opened.target);
    std::atomic<bool> over{false};
    std::string failure;
    std::thread discarder([&] {
      if (auto port = opened.target->open_port(1); port) {
        Request request;
        request.op = Op::discard;
        request.length = size_bytes;
        (*port)->execute(request);
        failure = (*port)->failure();
      } else {
        failure = port.error().message;
      }
      over.store(true);
    });
    auto elapsed = opened.crew->run_until(over);
    discarder.join();
    if (!failure.empty()) {
      return Error{Errc::system, 0, "the discard of the whole device failed: " + failure};
    }
    return account(opened, before, std::move(elapsed));
  }

  Result<void> refill(const Group& group, const Phase& fill, Opened& opened) const {
    // One job writes it, so nothing is to be brought to one thread.
    auto crew = Crew::make(fill, *opened.target, group.data, opened.contents.get(), stop_);
    if (!crew) {
      return std::move(crew).error();
    }
    auto elapsed = (*crew)->run(0, 1);
    return elapsed ? Result<void>() : Result<void>(std::move(elapsed).error());
  }

  static Usage usage_now(const Target& target) {
    const std::optional<pid_t> server = target.server();
    return server ? own_usage() + usage_of(*server) : own_usage();
  }

  static Result<void> run_stretch(Opened& opened, std::uint32_t index, std::uint32_t count) {
    const Usage before = usage_now(*opened.target);
    return account(opened, before, opened.crew->run(index, count));
  }

  // Adds what a stretch took.
  static Result<void> account(Opened& opened, const Usage& before, Result<double> elapsed) {
    if (!elapsed) {
      return std::move(elapsed).error();
    }
    opened.elapsed_s += *elapsed;
    opened.usage = opened.usage + (usage_now(*opened.target) - before);
    return {};
  }

  static Error name_target(const TargetConfig& config, Error error) {
    error.message.insert(0, "target " + config.label + ": ");
    return error;
  }

  const Plan& plan_;
  const std::atomic<bool>& stop_;
  Progress progress_;
  std::uint32_t round_ = 0;
  std::size_t group_ = 0;
  std::vector<std::string> notes_;
  // By group, phase and target.
  std::vector<std::vector<std::vector<Cell>>> cells_;
};

}  // namespace

Result<ResultFile> run_plan(const Plan& plan, const std::atomic<bool>& stop, int progress_fd,
                            ResultFile* finished) {
  if (auto fits = check_memory(plan); !fits) {
    return std::move(fits).error();
  }
  ResultFile results;
  results.machine = describe_machine();
  results.suite = plan.suite;
  results.parameters = plan.parameters;
  results.notes = plan.notes;
  Runner runner(plan, stop, progress_fd);
  auto done = runner.run();
  results.notes.insert(results.notes.end(), runner.notes().begin(), runner.notes().end());
  if (!done) {
    if (finished != nullptr) {
      results.interrupted = true;
      results.notes.push_back("the run failed: " + done.error().message);
      results.rows = runner.rows();
      *finished = std::move(results);
    }
    return std::move(done).error();
  }
  results.interrupted = stop.load();
  results.rows = runner.rows();
  return results;
}

}  // namespace uzram::bench
