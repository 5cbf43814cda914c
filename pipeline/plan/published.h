#pragma once
// Figures that somebody else published for a model, restated with their source. They are set beside
// own figures only where the records are byte for byte the same, which is what dataset_sha256 is
// for.
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace preval {

struct PublishedFigure {
  int n = 0;            ///< records
  double accuracy = 0;  ///< fraction, as many digits as were printed
  std::optional<double> ece, brier;
  std::string dataset_sha256;  ///< of the records that it was measured on
};

struct PublishedFigures {
  std::string model, source;
  std::map<std::string, PublishedFigure> subsets;
};

/// A published file (prereg/FORMAT.md, "Published figures"). Errors (usage) name file and JSON
/// pointer.
PublishedFigures parse_published(std::string_view text, const std::string& where);

}  // namespace preval
