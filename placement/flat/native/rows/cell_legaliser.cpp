#include "cell_legaliser.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace placement::flat::rows {
namespace {

constexpr double kTolerance = 1e-4;  // tolerance in µm for equal coordinates, and in sites for whole numbers of them
constexpr double kFar = std::numeric_limits<double>::infinity();

// Adjacent cells of a run; positions in sites from the run's first.
struct Cluster {
  double cells;   // number of cells
  double target;  // sum over the cells of the cluster's first site that would leave the cell at its original position
  std::int32_t begin, sites;
};

// A run and its cells from left to right.
struct Segment {
  Run run;
  double x;  // of its first site, µm
  std::int32_t used = 0;
  std::vector<Cluster> clusters;
  std::vector<std::int32_t> cells;
};

std::int32_t sites_of(double width, const Row& row) {
  return std::max(1, static_cast<std::int32_t>(std::ceil(width / row.site - kTolerance)));
}

class Legaliser {
 public:
  Legaliser(const std::vector<Row>& rows, const Levels& levels, const std::vector<Run>& runs, const std::vector<Cell>& cells)
      : rows_(rows), levels_(levels), cells_(cells), of_level_(static_cast<std::size_t>(levels.count())), places_(cells.size()) {
    for (const Run& run : runs) {
      const Row& row = row_of(run);
      of_level_[static_cast<std::size_t>(levels.of(run.row))].push_back({run, row.x + row.site * run.first, 0, {}, {}});
      height_ = std::max(height_, row.height);
    }
  }

  std::vector<Place> run() {
    std::vector<std::int32_t> order(cells_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto cell = [&](std::int32_t one) -> const Cell& { return cells_[static_cast<std::size_t>(one)]; };
    const auto tall = std::stable_partition(order.begin(), order.end(), [&](std::int32_t one) { return rows_needed(cell(one)) > 1; });
    std::stable_sort(order.begin(), tall, [&](std::int32_t a, std::int32_t b) {
      return cell(a).width * cell(a).height > cell(b).width * cell(b).height;
    });
    std::stable_sort(tall, order.end(), [&](std::int32_t a, std::int32_t b) { return cell(a).x < cell(b).x; });
    std::for_each(order.begin(), tall, [&](std::int32_t one) { place_tall(one); });
    std::for_each(tall, order.end(), [&](std::int32_t one) { place_in_row(one); });
    for (const auto& level : of_level_) {
      for (const Segment& segment : level) write(segment);
    }
    return std::move(places_);
  }

 private:
  using Level = std::vector<Segment>;

  const Row& row_of(const Run& run) const { return rows_[static_cast<std::size_t>(run.row)]; }
  std::int32_t rows_needed(const Cell& cell) const {
    return height_ > 0 ? static_cast<std::int32_t>(std::ceil(cell.height / height_ - kTolerance)) : 1;
  }
  double end_of(const Segment& segment) const { return segment.x + row_of(segment.run).site * segment.run.sites; }

  // Visits levels in order of their distance from `y`; `visit` receives a level and its distance, and returns the
  // distance beyond which no level matters.
  template <class Visit>
  void for_levels(double y, Visit&& visit) const {
    auto up = levels_.from(y), down = up - 1;
    double most = kFar;
    while (true) {
      const double above = up < levels_.count() ? levels_.y(up) - y : kFar;
      const double below = down >= 0 ? y - levels_.y(down) : kFar;
      if (std::min(above, below) >= most) return;
      most = above < below ? visit(up++, above) : visit(down--, below);
    }
  }

  // The site, from the segment's first, at which Abacus would put a cell appended to the segment; -1: it is full. The
  // last `joins` clusters merge into `cluster`.
  std::int32_t appended(const Segment& segment, double x, std::int32_t sites, Cluster* cluster, std::size_t* joins) const {
    const std::int32_t all = segment.run.sites;
    if (segment.used + sites > all) return -1;
    const double target = std::clamp((x - segment.x) / row_of(segment.run).site, 0.0, static_cast<double>(all - sites));
    Cluster now{1, target, static_cast<std::int32_t>(std::lround(target)), sites};
    std::size_t left = segment.clusters.size();
    while (left > 0) {
      const Cluster& before = segment.clusters[left - 1];
      if (before.begin + before.sites <= now.begin) break;
      now = {before.cells + now.cells, before.target + now.target - now.cells * before.sites, 0, before.sites + now.sites};
      const double best = std::clamp(now.target / now.cells, 0.0, static_cast<double>(all - now.sites));
      now.begin = static_cast<std::int32_t>(std::lround(best));
      --left;
    }
    *cluster = now;
    *joins = segment.clusters.size() - left;
    return now.begin + now.sites - sites;
  }

  // Puts a single-row cell at the end of the segment with the least displacement.
  void place_in_row(std::int32_t index) {
    const Cell& cell = cells_[static_cast<std::size_t>(index)];
    double best = kFar;
    Segment* chosen = nullptr;
    const auto consider = [&](Segment& segment, double aside) {
      Cluster cluster;
      std::size_t joins;
      const Row& row = row_of(segment.run);
      const auto site = appended(segment, cell.x, sites_of(cell.width, row), &cluster, &joins);
      if (site < 0) return;
      const double cost = aside + std::abs(segment.x + row.site * site - cell.x);
      if (cost < best) best = cost, chosen = &segment;
    };
    for_levels(cell.y, [&](std::int32_t number, double aside) {
      Level& level = of_level_[static_cast<std::size_t>(number)];
      const auto right = std::partition_point(level.begin(), level.end(), [&](const Segment& one) { return one.x <= cell.x; });
      for (auto one = right; one != level.begin();) {
        --one;
        if (aside + cell.x - end_of(*one) >= best) break;
        consider(*one, aside);
      }
      for (auto one = right; one != level.end() && aside + one->x - cell.x < best; ++one) consider(*one, aside);
      return best;
    });
    if (chosen == nullptr) return;
    Cluster cluster;
    std::size_t joins;
    const auto sites = sites_of(cell.width, row_of(chosen->run));
    appended(*chosen, cell.x, sites, &cluster, &joins);
    chosen->clusters.resize(chosen->clusters.size() - joins);
    chosen->clusters.push_back(cluster);
    chosen->cells.push_back(index);
    chosen->used += sites;
  }

  // Puts a multi-row cell on the nearest sites that are free in all its rows.
  void place_tall(std::int32_t index) {
    const Cell& cell = cells_[static_cast<std::size_t>(index)];
    const auto count = rows_needed(cell);
    double best = kFar;
    std::int32_t lowest = -1;
    Place found;
    for_levels(cell.y, [&](std::int32_t number, double aside) {
      for (const Segment& segment : of_level_[static_cast<std::size_t>(number)]) {
        const Row& row = row_of(segment.run);
        const auto sites = sites_of(cell.width, row);
        for (const auto& [low, high] : free_above(segment, number, count)) {
          const double first = std::ceil((low - row.x) / row.site - kTolerance);
          const double last = std::floor((high - row.x) / row.site + kTolerance) - sites;
          if (first > last) continue;
          const double x = row.x + row.site * std::clamp(std::round((cell.x - row.x) / row.site), first, last);
          const double cost = aside + std::abs(x - cell.x);
          if (cost < best) best = cost, lowest = number, found = {segment.run.row, x, row.y};
        }
      }
      return best;
    });
    if (lowest < 0) return;
    const Row& row = rows_[static_cast<std::size_t>(found.row)];
    const double end = found.x + row.site * sites_of(cell.width, row);
    for (auto level = lowest; level < lowest + count; ++level) take(of_level_[static_cast<std::size_t>(level)], found.x, end);
    places_[static_cast<std::size_t>(index)] = found;
  }

  // The parts of a segment, in µm from low to high, above which the other levels are free, too; `count` includes its
  // own.
  std::vector<std::pair<double, double>> free_above(const Segment& segment, std::int32_t level, std::int32_t count) const {
    std::vector<std::pair<double, double>> free{{segment.x, end_of(segment)}}, next;
    double top = row_of(segment.run).y + row_of(segment.run).height;
    for (auto above = level + 1; above < level + count && !free.empty(); ++above) {
      if (above >= levels_.count() || std::abs(levels_.y(above) - top) > kTolerance) return {};
      next.clear();
      for (const Segment& one : of_level_[static_cast<std::size_t>(above)]) {
        top = row_of(one.run).y + row_of(one.run).height;
        for (const auto& [low, high] : free) {
          const double from = std::max(low, one.x), to = std::min(high, end_of(one));
          if (from < to - kTolerance) next.emplace_back(from, to);
        }
      }
      free.swap(next);
    }
    return free;
  }

  // Removes the sites from `low` to `high`, µm, from a level's segments.
  void take(Level& level, double low, double high) {
    for (std::size_t i = 0; i < level.size(); ++i) {
      const Segment segment = level[i];
      if (segment.x >= high - kTolerance || end_of(segment) <= low + kTolerance) continue;
      const Row& row = row_of(segment.run);
      const auto sites = segment.run.sites;
      const auto from = static_cast<std::int32_t>(std::floor((low - segment.x) / row.site + kTolerance));
      const auto to = static_cast<std::int32_t>(std::ceil((high - segment.x) / row.site - kTolerance));
      level.erase(level.begin() + static_cast<std::ptrdiff_t>(i));
      const Run before{segment.run.row, segment.run.first, std::max(0, from)};
      const Run after{segment.run.row, segment.run.first + to, sites - to};
      for (const Run& rest : {after, before}) {
        if (rest.sites > 0) level.insert(level.begin() + static_cast<std::ptrdiff_t>(i), {rest, row.x + row.site * rest.first, 0, {}, {}});
      }
      if (before.sites <= 0 && after.sites <= 0) --i;  // the next segment has moved to this index
    }
  }

  // Writes the positions of a segment's cells.
  void write(const Segment& segment) {
    const Row& row = row_of(segment.run);
    std::size_t next = 0;
    for (const Cluster& cluster : segment.clusters) {
      auto site = cluster.begin;
      for (const auto end = cluster.begin + cluster.sites; site < end; ++next) {
        const auto index = static_cast<std::size_t>(segment.cells[next]);
        places_[index] = {segment.run.row, segment.x + row.site * site, row.y};
        site += sites_of(cells_[index].width, row);
      }
    }
  }

  const std::vector<Row>& rows_;
  const Levels& levels_;
  const std::vector<Cell>& cells_;
  std::vector<Level> of_level_;
  std::vector<Place> places_;
  double height_ = 0;  // of the rows, µm
};

}  // namespace

std::vector<Place> legalise(const std::vector<Row>& rows, const Levels& levels, const std::vector<Run>& runs,
                            const std::vector<Cell>& cells) {
  return Legaliser(rows, levels, runs, cells).run();
}

}  // namespace placement::flat::rows
