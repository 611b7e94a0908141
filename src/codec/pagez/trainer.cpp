#include "codec/pagez/trainer.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "codec/pagez/classes.hpp"

namespace uzram::codec::pagez {

namespace {

struct Counted {
  double count = 0;
  std::uint32_t symbol = 0;
};

void rank(std::vector<Counted>& symbols) {
  std::sort(symbols.begin(), symbols.end(), [](const Counted& a, const Counted& b) {
    return a.count != b.count ? a.count > b.count : a.symbol < b.symbol;
  });
}

std::vector<double> counts_of(const std::vector<Counted>& symbols) {
  std::vector<double> counts;
  counts.reserve(symbols.size());
  for (const Counted& symbol : symbols) {
    counts.push_back(symbol.count);
  }
  return counts;
}

// Gives the samples numbers below `codes` in the order of what `measure` says of them.
template <typename Samples>
std::vector<std::uint32_t> divided_by(
    const Samples& samples, std::uint32_t codes,
    const std::function<double(const typename Samples::value_type&)>& measure) {
  std::vector<double> measured;
  measured.reserve(samples.size());
  for (const auto& sample : samples) {
    measured.push_back(measure(sample));
  }
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return measured[a] < measured[b]; });
  std::vector<std::uint32_t> numbers(samples.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    numbers[order[at]] = static_cast<std::uint32_t>(at * codes / order.size());
  }
  return numbers;
}

double mean(std::uint64_t sum, std::size_t count) {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

// Tokens that were not seen, or hardly, are ranked by how likely their parts are.
class TokenParts {
 public:
  explicit TokenParts(const std::vector<double>& counts) {
    for (std::uint32_t id = 0; id < kTokenIds; ++id) {
      Token token;
      if (counts[id] > 0 && token_of(id, token) && is_ordinary(token)) {
        total_ += counts[id];
        literals_[token.literals] += counts[id];
        match_[token.match] += counts[id];
        source_[static_cast<std::size_t>(token.source)] += counts[id];
      }
    }
  }
  // How often one would expect it, were its parts independent.
  [[nodiscard]] double expected(const Token& token) const {
    if (!is_ordinary(token)) {
      return kSeldom / kTrust;
    }
    return total_ * (literals_[token.literals] + 1) / (total_ + 16) * (match_[token.match] + 1) /
           (total_ + 61) * (source_[static_cast<std::size_t>(token.source)] + 1) /
           (total_ + kSources);
  }
  // Of the expectation, against what was counted.
  static constexpr double kTrust = 0.02;

 private:
  static constexpr double kSeldom = 0.01;
  static bool is_ordinary(const Token& token) {
    return token.match >= kMinMatch && token.match <= kMaxMatch;
  }

  double total_ = 0;
  std::array<double, kMaxLiterals + 1> literals_{};
  std::array<double, kMaxMatch + 1> match_{};
  std::array<double, kSources> source_{};
};

}  // namespace

Trainer::Trainer(unsigned page_bits, TrainSettings settings)
    : page_bits_(page_bits),
      settings_(settings),
      room_(std::make_unique<EncodeRoom>(1U << page_bits)) {}

void Trainer::add(std::span<const std::byte> page, double weight) {
  if (std::memcmp(page.data(), page.data() + sizeof(std::uint64_t),
                  page.size() - sizeof(std::uint64_t)) == 0) {
    return;
  }
  best_kernel().match(Level::normal, *room_, reinterpret_cast<const std::uint8_t*>(page.data()),
                      page_bits_);
  const Sequences& found = room_->sequences;
  Sample sample;
  sample.weight = weight;
  sample.tokens.assign(found.tokens(), found.tokens() + found.token_count());
  sample.literals.assign(found.literals(), found.literals() + found.literal_count());
  sample.differences.assign(found.differences(), found.differences() + found.literal_count());
  for (std::uint32_t at = 0; at < found.offset_count(); ++at) {
    sample.offset_bits += static_cast<std::uint32_t>(std::popcount(found.offsets()[at].mask));
  }
  memory_bytes_ += sizeof sample + sample.tokens.size() * sizeof(TokenId) + sample.literals.size() +
                   sample.differences.size();
  samples_.push_back(std::move(sample));
}

Trainer::Shares Trainer::first_division() const {
  Shares shares;
  shares.token_code = divided_by(samples_, settings_.token_codes, [](const Sample& sample) {
    return mean(sample.offset_bits, sample.tokens.size());
  });
  const std::uint32_t half = settings_.literal_codes / 2;
  shares.literal_code = divided_by(samples_, half, [](const Sample& sample) {
    return mean(std::accumulate(sample.literals.begin(), sample.literals.end(), std::uint64_t{0}),
                sample.literals.size());
  });
  for (std::size_t at = 1; at < samples_.size(); at += 2) {
    shares.literal_code[at] += half;
  }
  return shares;
}

TokenCode Trainer::token_code_for(const Shares& shares, std::uint32_t code) const {
  std::vector<double> counts(kTokenIds);
  for (std::size_t at = 0; at < samples_.size(); ++at) {
    if (shares.token_code[at] == code) {
      for (const TokenId id : samples_[at].tokens) {
        counts[id] += samples_[at].weight;
      }
    }
  }
  const TokenParts parts(counts);
  std::vector<Counted> all;
  std::uint32_t others = settings_.symbols;
  for (std::uint32_t id = 0; id < kTokenIds; ++id) {
    Token token;
    if (token_of(id, token)) {
      all.push_back({counts[id] + TokenParts::kTrust * parts.expected(token), id});
      others -= is_basic(token) ? 1 : 0;
    }
  }
  rank(all);
  TokenCode made;
  std::vector<Counted> kept;
  for (const Counted& symbol : all) {
    Token token;
    static_cast<void>(token_of(symbol.symbol, token));
    if (is_basic(token) || others > 0) {
      others -= is_basic(token) ? 0 : 1;
      kept.push_back(symbol);
      made.symbols.push_back(static_cast<TokenId>(symbol.symbol));
    }
  }
  const auto widths = best_widths(counts_of(kept), kTokenClasses, kMaxTokenWidth);
  std::copy(widths.begin(), widths.end(), made.width.begin());
  return made;
}

LiteralCode Trainer::literal_code_for(const Shares& shares, std::uint32_t code) const {
  const bool differences = code >= settings_.literal_codes / 2;
  std::vector<Counted> bytes(256);
  double total = 0;
  for (std::size_t at = 0; at < samples_.size(); ++at) {
    if (shares.literal_code[at] == code) {
      const Sample& sample = samples_[at];
      for (const std::uint8_t byte : differences ? sample.differences : sample.literals) {
        bytes[byte].count += sample.weight;
        total += sample.weight;
      }
    }
  }
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    bytes[byte].symbol = byte;
    bytes[byte].count += total * 2e-5 + 0.01;
  }
  rank(bytes);
  LiteralCode made;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    made.symbols[at] = static_cast<std::uint8_t>(bytes[at].symbol);
  }
  const std::vector<double> counts = counts_of(bytes);
  double least = 0;
  for (unsigned bits = kMinLiteralClassBits; bits <= kMaxLiteralClassBits; ++bits) {
    const auto widths = best_widths(counts, 1U << bits, kMaxLiteralWidth);
    const double cost = rank_bits(counts, widths) + bits * total;
    if (made.class_bits == 0 || cost < least) {
      least = cost;
      made.class_bits = static_cast<std::uint8_t>(bits);
      made.width.fill(0);
      std::copy(widths.begin(), widths.end(), made.width.begin());
    }
  }
  return made;
}

std::optional<Recipe> Trainer::recipe_for(const Shares& shares,
                                          const std::atomic<bool>& stop) const {
  Recipe recipe;
  for (std::uint32_t code = 0; code < settings_.token_codes; ++code) {
    if (stop.load(std::memory_order_relaxed)) {
      return std::nullopt;
    }
    recipe.tokens.push_back(token_code_for(shares, code));
  }
  for (std::uint32_t code = 0; code < settings_.literal_codes; ++code) {
    if (stop.load(std::memory_order_relaxed)) {
      return std::nullopt;
    }
    recipe.literals.push_back(literal_code_for(shares, code));
  }
  return recipe;
}

bool Trainer::divide(const Tables& tables, Shares& shares, const std::atomic<bool>& stop) const {
  const std::uint32_t half = tables.first_difference_code();
  for (std::size_t at = 0; at < samples_.size(); ++at) {
    if (stop.load(std::memory_order_relaxed)) {
      return false;
    }
    const Sample& sample = samples_[at];
    std::array<std::uint64_t, kMaxTokenCodes> token_bits{};
    for (const TokenId id : sample.tokens) {
      const auto& bits = tables.token_bits(id);
      std::transform(bits.begin(), bits.end(), token_bits.begin(), token_bits.begin(),
                     std::plus<>());
    }
    shares.token_code[at] = static_cast<std::uint32_t>(
        std::min_element(token_bits.begin(), token_bits.end()) - token_bits.begin());
    std::vector<std::uint64_t> literal_bits(tables.literal_codes());
    for (std::size_t byte = 0; byte < sample.literals.size(); ++byte) {
      const auto& plain = tables.literal_bits(sample.literals[byte]);
      const auto& difference = tables.difference_bits(sample.differences[byte]);
      for (std::uint32_t code = 0; code < half; ++code) {
        literal_bits[code] += plain[code];
        literal_bits[half + code] += difference[code];
      }
    }
    shares.literal_code[at] = static_cast<std::uint32_t>(
        std::min_element(literal_bits.begin(), literal_bits.end()) - literal_bits.begin());
  }
  return true;
}

Recipe Trainer::train() const {
  const std::atomic<bool> never{false};
  return *train(never);
}

std::optional<Recipe> Trainer::train(const std::atomic<bool>& stop) const {
  Shares shares = first_division();
  std::optional<Recipe> recipe = recipe_for(shares, stop);
  for (std::uint32_t round = 1; recipe && round < settings_.rounds; ++round) {
    const auto tables = Tables::make(*recipe, page_bits_);
    if (!tables) {
      break;
    }
    if (!divide(**tables, shares, stop)) {
      return std::nullopt;
    }
    recipe = recipe_for(shares, stop);
  }
  return recipe;
}

}  // namespace uzram::codec::pagez
