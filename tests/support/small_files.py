"""A small netlist with its placement file, as text that tests read, modify and damage."""

from __future__ import annotations

NETLIST = """\
node {
  name: "__metadata__"
  attr { key: "soft_macro_area_bloating_ratio" value { f: 2.0 } }
}
node {
  name: "clk"
  input: "ram/clk"
  attr { key: "type" value { placeholder: "PORT" } }
  attr { key: "x" value { f: 0.5 } }
  attr { key: "y" value { f: 2 } }
}
node {
  name: "ram"
  attr { key: "type" value { placeholder: "MACRO" } }
  attr { key: "width" value { f: 4.0 } }
  attr { key: "height" value { f: 6.0 } }
  attr { key: "orientation" value { placeholder: "FN" } }
}
node {
  name: "ram/clk"
  attr { key: "type" value { placeholder: "MACRO_PIN" } }
  attr { key: "macro_name" value { placeholder: "ram" } }
  attr { key: "x_offset" value { f: -2.0 } }
  attr { key: "y_offset" value { f: 1.5 } }
}
node {
  name: "Grp_1"
  attr { key: "type" value { placeholder: "macro" } }
  attr { key: "width" value { f: 2.0 } }
  attr { key: "height" value { f: 1.0 } }
}
node {
  name: "Grp_1/out"
  input: "ram/clk"
  input: "clk"
  attr { key: "type" value { placeholder: "macro_pin" } }
  attr { key: "macro_name" value { placeholder: "Grp_1" } }
  attr { key: "weight" value { i: 3 } }
}
"""

PLACEMENT = """\
# Placement file for Circuit Training
# Columns : 5  Rows : 4
# Width : 20.5  Height : 16.25
# Routes per micron, hor : 10.5  ver : 11.5
# Routes used by macros, hor : 5.5  ver : 6.5
# Smoothing factor : 2
# Overlap threshold : 0.004
#
# node_index x y orientation fixed
0 0.5 2 - 1
1 10.1 8.25 S 0
3 4 4 N 0
"""
