#include "soft/soft_placer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "cost/legality.hpp"
#include "soft/analytic.hpp"
#include "soft/force_directed.hpp"

namespace placement {

const std::vector<std::string>& soft_placer_names() {
  static const std::vector<std::string> names = {"force_directed", "analytic", "analytic_fast"};
  return names;
}

namespace {

bool inside(const KeepOut& off, double x, double y) {
  return off.kind == KeepOutKind::blockage && std::abs(x - off.x) < off.width / 2 - kLengthTolerance &&
         std::abs(y - off.y) < off.height / 2 - kLengthTolerance;
}

// Another placer's result, but a centre on a blockage moves to the nearest of its edges at which the soft macro lies in
// the canvas and its centre on no other blockage; if there is none, it does not move.
class OffBlockages final : public SoftPlacer {
 public:
  OffBlockages(std::unique_ptr<SoftPlacer> placer, std::shared_ptr<const Design> design)
      : placer_(std::move(placer)), design_(std::move(design)) {}

  void place(double* x, double* y, const std::int8_t* orientation) override {
    placer_->place(x, y, orientation);
    for (int node = 0; node < design_->nodes(); ++node) {
      if (design_->kind_of(node) != Kind::soft || design_->fixed[node]) continue;
      for (const KeepOut& off : design_->constraints.keep_outs) {
        if (!inside(off, x[node], y[node])) continue;
        leave(off, design_->width_of(node, orientation[node]), design_->height_of(node, orientation[node]), x + node,
              y + node);
        break;
      }
    }
  }

 private:
  void leave(const KeepOut& off, double width, double height, double* x, double* y) const {
    const std::array<std::pair<double, double>, 4> edges = {{{off.x - off.width / 2, *y},
                                                             {off.x + off.width / 2, *y},
                                                             {*x, off.y - off.height / 2},
                                                             {*x, off.y + off.height / 2}}};
    const double from_x = *x, from_y = *y;
    double nearest = -1;
    for (const auto& [to_x, to_y] : edges) {
      const double distance = std::abs(to_x - from_x) + std::abs(to_y - from_y);
      if ((nearest >= 0 && distance >= nearest) || !free(to_x, to_y, width, height)) continue;
      nearest = distance;
      *x = to_x;
      *y = to_y;
    }
  }

  bool free(double x, double y, double width, double height) const {
    const Canvas& canvas = design_->canvas;
    if (reaches_beyond(x, width, canvas.width) || reaches_beyond(y, height, canvas.height)) return false;
    const auto& all = design_->constraints.keep_outs;
    return std::none_of(all.begin(), all.end(), [x, y](const KeepOut& off) { return inside(off, x, y); });
  }

  std::unique_ptr<SoftPlacer> placer_;
  std::shared_ptr<const Design> design_;
};

std::unique_ptr<SoftPlacer> plain_soft_placer(const std::string& name, std::shared_ptr<const Design> design) {
  if (name == "force_directed") return std::make_unique<ForceDirected>(std::move(design));
  if (name == "analytic") return std::make_unique<Analytic>(std::move(design));
  if (name == "analytic_fast") return std::make_unique<Analytic>(std::move(design), fast_analytic_options());
  std::string choices;
  for (const std::string& known : soft_placer_names()) choices += (choices.empty() ? "" : ", ") + known;
  throw std::invalid_argument("unknown soft-macro placer '" + name + "'; choose one of: " + choices);
}

}  // namespace

std::unique_ptr<SoftPlacer> make_soft_placer(const std::string& name, std::shared_ptr<const Design> design) {
  auto placer = plain_soft_placer(name, design);
  const auto& all = design->constraints.keep_outs;
  const auto blocks = [](const KeepOut& off) { return off.kind == KeepOutKind::blockage; };
  if (std::none_of(all.begin(), all.end(), blocks)) return placer;
  return std::make_unique<OffBlockages>(std::move(placer), std::move(design));
}

}  // namespace placement
