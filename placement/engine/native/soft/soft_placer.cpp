#include "soft/soft_placer.hpp"

#include <stdexcept>
#include <utility>

#include "soft/analytic.hpp"
#include "soft/force_directed.hpp"

namespace placement {

const std::vector<std::string>& soft_placer_names() {
  static const std::vector<std::string> names = {"force_directed", "analytic", "analytic_fast"};
  return names;
}

std::unique_ptr<SoftPlacer> make_soft_placer(const std::string& name, std::shared_ptr<const Design> design) {
  if (name == "force_directed") return std::make_unique<ForceDirected>(std::move(design));
  if (name == "analytic") return std::make_unique<Analytic>(std::move(design));
  if (name == "analytic_fast") return std::make_unique<Analytic>(std::move(design), fast_analytic_options());
  std::string choices;
  for (const std::string& known : soft_placer_names()) choices += (choices.empty() ? "" : ", ") + known;
  throw std::invalid_argument("soft-macro placer '" + name + "' is not known; choose one of: " + choices);
}

}  // namespace placement
