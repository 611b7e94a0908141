// The async experiment: who does the work, the submitter (nowait), workers (async) or both (auto).
//
// The six tests for 1 to 10 jobs, as in the streams experiment; one writer with many requests in
// flight; and a copied tree: the files below a folder, one after the other, written by one job with
// many requests in flight and a flush at the end, as writeback does it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/size.hpp"
#include "bench/suite_parts.hpp"
#include "codec/codec.hpp"

namespace uzram::bench {
namespace {

constexpr Defaults kDefaults = {"engine", "2G", "1-10", "4K", "1", "2", "0"};
constexpr std::uint32_t kWriterDepth = 32;
constexpr std::uint64_t kTreeBlock = std::uint64_t{128} << 10;
constexpr std::string_view kTree = "/usr/include";

// The files below `folder` in the order of their names, each filled up to whole pages, up to
// `limit` bytes.
Result<std::shared_ptr<const DataSet>> read_tree(const std::string& folder, std::uint64_t limit) {
  std::vector<std::filesystem::path> files;
  std::error_code problem;
  const std::filesystem::recursive_directory_iterator end;
  for (std::filesystem::recursive_directory_iterator entry(
           folder, std::filesystem::directory_options::skip_permission_denied, problem);
       !problem && entry != end; entry.increment(problem)) {
    std::error_code gone;
    if (entry->is_regular_file(gone) && !entry->is_symlink(gone)) {
      files.push_back(entry->path());
    }
  }
  if (problem) {
    return system_error("--tree \"" + folder + "\"", problem.value());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::byte> bytes;
  for (const std::filesystem::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> piece(kTreeBlock);
    while (file && bytes.size() < limit) {
      file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      const auto got =
          std::as_bytes(std::span(piece)).first(static_cast<std::size_t>(file.gcount()));
      bytes.insert(bytes.end(), got.begin(), got.end());
    }
    bytes.resize(static_cast<std::size_t>(round_up(bytes.size(), kDataPage)));
  }
  if (bytes.size() < kTreeBlock) {
    return Error{Errc::invalid_argument, 0,
                 "--tree \"" + folder + "\": expected a folder with at least 128K in files"};
  }
  bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), limit)));
  return DataSet::make("tree", bytes);
}

Phase write_phase(const Settings& settings, std::uint64_t size_bytes, std::uint64_t block_size) {
  Phase phase;
  phase.op = "write";
  phase.access = Access::write;
  phase.block_size = block_size;
  phase.iodepth = std::max(settings.iodepth, kWriterDepth);
  phase.job_bytes = size_bytes / block_size * block_size;
  phase.latency = settings.latency;
  return phase;
}

// With --verify: reads what the last of `phases` has left, not timed.
void add_verify(const Settings& settings, std::vector<Phase>& phases) {
  if (!settings.verify) {
    return;
  }
  Phase phase = phases.back();
  phase.op = "verify";
  phase.access = Access::read;
  phase.loops = 1;
  phase.runtime_s = 0;
  phase.flush = false;
  phase.verify = true;
  phase.timed = false;
  phases.push_back(phase);
}

// Appends the writer at queue depth for each data set, and the tree, to the six tests; for each list
// of targets that the six tests have.
Result<void> add_writers(const Settings& settings, const SuiteOptions& options, Plan& plan) {
  const std::uint64_t size_bytes = plan.groups.front().size_bytes;
  auto tree = read_tree(options.tree, size_bytes);
  if (!tree) {
    return std::move(tree).error();
  }
  const std::size_t six_tests_groups = plan.groups.size();
  for (std::size_t i = 0; i < six_tests_groups; ++i) {
    Group group = plan.groups[i];
    if (group.phases.front().jobs != settings.jobs.front()) {
      continue;
    }
    const std::uint64_t block_size = group.phases.front().block_size;
    Phase fill = write_phase(settings, group.size_bytes, block_size);
    fill.op = "fill";
    Phase write = write_phase(settings, group.size_bytes, block_size);
    write.state = "stored";
    write.loops = settings.loops;
    write.runtime_s = settings.runtime_s;
    write.generation = 1;
    group.phases = {fill, write};
    add_verify(settings, group.phases);
    plan.groups.push_back(group);
    if (group.data == plan.groups.front().data && block_size == settings.block_sizes.front()) {
      Phase copy = write_phase(settings, group.size_bytes, kTreeBlock);
      copy.op = "treecopy";
      copy.job_bytes = (*tree)->pages() * kDataPage / kTreeBlock * kTreeBlock;
      copy.flush = true;
      group.data = *tree;
      group.phases = {copy};
      add_verify(settings, group.phases);
      plan.groups.push_back(std::move(group));
    }
  }
  return {};
}

}  // namespace

Result<Plan> plan_async(const SuiteOptions& given) {
  SuiteOptions options = given;
  if (options.modes.empty()) {
    options.modes = "nowait,async,auto";
  }
  if (options.tree.empty()) {
    options.tree = kTree;
  }
  auto settings = read_settings(options, kDefaults);
  if (!settings) {
    return std::move(settings).error();
  }
  auto data = data_of_experiment(options);
  auto algorithms = read_algorithms(options, experiment_algorithm());
  auto modes = parse_words("--mode", options.modes);
  if (const Error* const error = first_error(data, algorithms, modes)) {
    return *error;
  }
  auto variants = with_variants(settings->targets, "mode", *modes);
  if (!variants) {
    return std::move(variants).error();
  }
  auto plan = make_groups(*settings, options, *data, *algorithms, *variants, six_tests);
  if (!plan) {
    return plan;
  }
  if (auto added = add_writers(*settings, options, *plan); !added) {
    return std::move(added).error();
  }
  return plan;
}

}  // namespace uzram::bench
