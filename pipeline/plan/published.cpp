#include "plan/published.h"

#include <fmt/format.h>

#include "plan/reader.h"

namespace preval {

PublishedFigures parse_published(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where);
  ObjectReader in(json, where);
  const int format = in.integer("preval_published", not_negative);
  if (in.has("preval_published") && format != 1) {
    in.fail("preval_published", fmt::format("format {} of published figures is not known", format),
            "this preval reads format 1");
  }
  PublishedFigures figures;
  figures.model = in.text("model");
  figures.source = in.text("source");
  in.object("subsets", [&](ObjectReader& subsets) {
    subsets.each([&](const std::string& name, ObjectReader& item) {
      PublishedFigure& figure = figures.subsets[name];
      figure.n = item.integer("n", at_least_one);
      figure.accuracy = item.number("accuracy", share);
      figure.ece = item.number_if("ece", share);
      figure.brier = item.number_if("brier", not_negative);
      figure.dataset_sha256 = item.digest("dataset_sha256");
    });
  });
  in.finish();
  return figures;
}

}  // namespace preval
