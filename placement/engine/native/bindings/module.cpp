#include "bindings/bindings.hpp"

NB_MODULE(_native, m) {
  m.doc() = "The placement engine. Use it through the typed faces in placement.engine.";
  placement::bind_design(m);
  placement::bind_cost(m);
  placement::bind_search(m);
  placement::bind_state(m);
  placement::bind_pool(m);
  placement::bind_rendering(m);
  placement::bind_xla(m);
}
