// Targets priced by the proxy cost. The prices are some proposals old and without the steps of small nets' routes.
#pragma once

#include <cstdint>
#include <vector>

#include "cost/incremental_proxy.hpp"
#include "search/target_drawer.hpp"
#include "soft/analytic_maps.hpp"
#include "soft/analytic_window.hpp"

namespace placement {

class ProxyTargets : public TargetDrawer {
 public:
  ProxyTargets(const ProxyIncrementalCost& cost, std::vector<std::int32_t> soft);

  void reset() override;
  // Between two calls, density follows moves and routes do not.
  void refresh() override;
  void moved(const NodeMove& to) override;
  // Anywhere in a gcell that is drawn.
  bool draw(int soft, double temperature, Random& random, double* x, double* y) override;

 private:
  SoftBox box_of(const NodeMove& at) const;

  const ProxyIncrementalCost& proxy_;
  std::vector<SoftBox> boxes_;  // [N] of macros
  PriceMaps maps_;
  PricedWindow window_;
};

}  // namespace placement
