#include "cli/sample.hpp"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include <sys/stat.h>

#include "base/log.hpp"
#include "base/option_value.hpp"
#include "base/size.hpp"
#include "cli/output.hpp"
#include "os/descriptor_limit.hpp"

namespace uzram::cli {
namespace {

constexpr std::size_t kListedProcesses = 8;

// A positive number and nothing else.
template <typename Number>
Result<Number> parse_positive(const std::string& option, const std::string& text,
                              const std::string& expected) {
  Number value = 0;
  if (!take_number(text, value) || value <= 0) {
    return refuse_option(option, text, expected);
  }
  return value;
}

Result<std::uint64_t> parse_pages(const SampleArguments& arguments) {
  if (arguments.pages) {
    return parse_positive<std::uint64_t>("--pages", *arguments.pages,
                                         "a number of pages, 1 or more");
  }
  if (!arguments.size) {
    return bench::kSamplePages;
  }
  const auto size = parse_size("--size", *arguments.size);
  if (!size) {
    return size.error();
  }
  if (*size == 0) {
    return Error{Errc::invalid_argument, 0,
                 "--size \"" + *arguments.size + "\": expected at least one page of 4096 bytes"};
  }
  return (*size - 1) / bench::kDataPage + 1;
}

Error exists_already(const std::string& path) {
  return {Errc::exists, EEXIST,
          "--out \"" + path + "\": exists already; give another name, or --force to replace it"};
}

Result<bench::Sample> sample_to_file(const SampleOptions& options) {
  // Before the work, which would be for nothing.
  struct stat status {};
  if (!options.force && ::lstat(options.out.path.c_str(), &status) == 0) {
    return exists_already(options.out.path);
  }
  os::raise_descriptor_limit();
  auto sample = bench::take_sample(options.request);
  if (!sample) {
    return sample;
  }
  if (const auto written = bench::write_page_file(options.out, sample->bytes, options.force);
      !written) {
    return written.error().code == Errc::exists ? exists_already(options.out.path)
                                                : written.error();
  }
  return sample;
}

}  // namespace

Result<SampleOptions> parse_sample_options(const SampleArguments& arguments) {
  SampleOptions options;
  for (const std::string& text : arguments.pids) {
    const auto pid = parse_positive<pid_t>("--pid", text, "the number of a process");
    if (!pid) {
      return pid.error();
    }
    options.request.pids.push_back(*pid);
  }
  const auto pages = parse_pages(arguments);
  if (!pages) {
    return pages.error();
  }
  options.request.pages = *pages;
  auto out = bench::page_file(arguments.out);
  if (!out) {
    return Error{Errc::invalid_argument, 0, "--out " + out.error().message};
  }
  options.out = *std::move(out);
  options.force = arguments.force;
  return options;
}

std::string format_sample(const std::string& path, const bench::Sample& sample) {
  std::vector<bench::SampledProcess> processes = sample.processes;
  std::stable_sort(processes.begin(), processes.end(),
                   [](const auto& a, const auto& b) { return a.pages > b.pages; });
  std::string text = path + ": " + std::to_string(sample.bytes.size() / bench::kDataPage) +
                     " pages (" + format_size(sample.bytes.size()) + ") of";
  const std::size_t listed = std::min(processes.size(), kListedProcesses);
  for (std::size_t place = 0; place < listed; ++place) {
    const bench::SampledProcess& process = processes.at(place);
    text += (place == 0 ? " " : ", ") + process.name + " (pid " + std::to_string(process.pid) +
            "): " + std::to_string(process.pages);
  }
  if (listed < processes.size()) {
    const std::uint64_t rest = std::accumulate(
        processes.begin() + static_cast<std::ptrdiff_t>(listed), processes.end(), std::uint64_t{0},
        [](std::uint64_t sum, const auto& process) { return sum + process.pages; });
    text += ", " + std::to_string(processes.size() - listed) + " more: " + std::to_string(rest);
  }
  return text + "\n";
}

int run_sample(const SampleOptions& options) {
  const auto sample = sample_to_file(options);
  if (!sample) {
    log(LogLevel::error, sample.error().message);
    return 1;
  }
  log(LogLevel::warning, "\"" + options.out.path +
                             "\" may hold passwords, keys and other secrets of these processes; "
                             "look after it as after their memory");
  if (!write_output(format_sample(options.out.path, *sample))) {
    log(LogLevel::error, system_error("standard output", errno).message);
    return 1;
  }
  return 0;
}

}  // namespace uzram::cli
