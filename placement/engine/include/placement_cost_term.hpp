// A user-defined cost term in a separate library: derive from placement_term::CostTerm, and register it once with
// PLACEMENT_COST_TERM(YourClass, "its name"). Only this file is needed; docs/how-to/own-cost-term.md has an example.
// The interface between the library and the engine is plain C, so any C++17 compiler will do.
#pragma once

#include <cstdint>
#include <limits>

extern "C" {

// A design's arrays, valid for the lifetime of the term. N nodes, P pins, E nets, L pins of nets.
struct placement_design {
  std::int32_t nodes, pins, nets, columns, rows;
  double canvas_width, canvas_height;             // µm
  const std::int8_t* kind;                        // [N] 0 hard macro, 1 soft macro, 2 port, 3 standard cell
  const double *node_width, *node_height;         // [N] µm, in orientation N
  const std::int32_t* pin_node;                   // [P]
  const double *pin_dx, *pin_dy;                  // [P] µm from the node's centre, in orientation N
  const double* net_weight;                       // [E]
  const std::int32_t *net_start, *net_pins;       // [E + 1], [L]; the first pin of a net drives it
};

// The library's functions for the engine. `evaluate` is called from one thread at a time for each `made`.
struct placement_cost_term {
  std::int32_t version;                           // PLACEMENT_COST_TERM_VERSION
  const char* name;
  void* (*make)(const placement_design* design);  // null: unusable on this design
  // x, y [N]: centres, µm; orientation [N]: N, FN, S, FS, E, FE, W, FW as 0 to 7. NaN: failure.
  double (*evaluate)(void* made, const double* x, const double* y, const std::int8_t* orientation);
  void (*destroy)(void* made);
};

}  // extern "C"

#define PLACEMENT_COST_TERM_VERSION 1

namespace placement_term {

class CostTerm {
 public:
  virtual ~CostTerm() = default;
  // Returns the term for a placement of all nodes; centres in µm.
  virtual double operator()(const double* x, const double* y, const std::int8_t* orientation) = 0;
};

// The C functions of a class derived from CostTerm.
template <typename Term>
struct Functions {
  static void* make(const placement_design* design) {
    try {
      return static_cast<CostTerm*>(new Term(*design));
    } catch (...) {
      return nullptr;
    }
  }
  static double evaluate(void* made, const double* x, const double* y, const std::int8_t* orientation) {
    try {
      return (*static_cast<CostTerm*>(made))(x, y, orientation);
    } catch (...) {
      return std::numeric_limits<double>::quiet_NaN();
    }
  }
  static void destroy(void* made) { delete static_cast<CostTerm*>(made); }
};

}  // namespace placement_term

#define PLACEMENT_COST_TERM(Term, term_name)                                                                  \
  extern "C" __attribute__((visibility("default"))) const placement_cost_term* placement_cost_term_exported() { \
    using Functions = placement_term::Functions<Term>;                                                        \
    static const placement_cost_term exported = {PLACEMENT_COST_TERM_VERSION, term_name, &Functions::make,    \
                                                 &Functions::evaluate, &Functions::destroy};                  \
    return &exported;                                                                                         \
  }
