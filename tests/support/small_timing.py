"""A small library and pipeline: two registers, two inverters between them, a memory, with linear delays.

Delays and slews are linear in slew and load, so that tables give them exactly: see `DELAY`.
"""

from __future__ import annotations

SLEWS, LOADS = (0.0, 100.0), (0.0, 50.0)  # ps and fF


def table(constant: float, per_slew: float, per_load: float) -> str:
    """Returns the values over `SLEWS` × `LOADS`."""
    rows = [", ".join(f"{constant + per_slew * slew + per_load * load:g}" for load in LOADS) for slew in SLEWS]
    return "values (" + ", \\\n".join(f'"{row}"' for row in rows) + ");"


# Constant (ps), per ps of slew, per fF of load; for delays. Slews are 10 + load.
DELAY = {"INV": (5.0, 0.1, 0.5), "BUF": (8.0, 0.0, 0.2), "DFF": (20.0, 0.0, 1.0), "RAM": (100.0, 0.0, 0.0)}
SETUP = 15.0


def arc(cell: str, related: str, sense: str, timing_type: str = "") -> str:
    delay, slew = table(*DELAY[cell]), table(10.0, 0.0, 1.0)
    kind = f"timing_type : {timing_type};" if timing_type else ""
    tables = "".join(
        f"cell_{edge} (grid) {{ {delay} }} {edge}_transition (grid) {{ {slew} }} " for edge in ("rise", "fall")
    )
    return f'timing () {{ related_pin : "{related}"; timing_sense : {sense}; {kind} {tables} }}'


def check(related: str) -> str:
    limits = "".join(f'{edge}_constraint (scalar) {{ values ("{SETUP:g}"); }} ' for edge in ("rise", "fall"))
    return f'timing () {{ related_pin : "{related}"; timing_type : setup_rising; {limits} }}'


LIBERTY = f"""
library (hand) {{ /* slews from 0 to 100% */
  delay_model : table_lookup; time_unit : "1ps"; capacitive_load_unit (1, ff);
  slew_lower_threshold_pct_rise : 0; slew_upper_threshold_pct_rise : 100;
  slew_lower_threshold_pct_fall : 0; slew_upper_threshold_pct_fall : 100;
  input_threshold_pct_rise : 50; input_threshold_pct_fall : 50;
  output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;
  lu_table_template (grid) {{
    variable_1 : input_net_transition; variable_2 : total_output_net_capacitance;
    index_1 ("{SLEWS[0]:g}, {SLEWS[1]:g}"); index_2 ("{LOADS[0]:g}, {LOADS[1]:g}");
  }}
  type (two) {{ base_type : array; data_type : bit; bit_width : 2; bit_from : 1; bit_to : 0; downto : true; }}
  cell (INV) {{
    pin (A) {{ direction : input; capacitance : 2; internal_power () {{ rise_power (x) {{ values ("1"); }} }} }}
    pin (Y) {{ direction : output; function : "!A"; {arc("INV", "A", "negative_unate")} }}
  }}
  cell (BUF) {{
    pin (A) {{ direction : input; capacitance : 1; }}
    pin (Y) {{ direction : output; {arc("BUF", "A", "positive_unate")} }}
  }}
  cell (DFF) {{
    ff (IQ, IQN) {{ clocked_on : "CK"; next_state : "D"; }}
    pin (CK) {{ direction : input; capacitance : 1; clock : true; }}
    pin (D) {{ direction : input; capacitance : 3; {check("CK")} }}
    pin (Q) {{ direction : output; {arc("DFF", "CK", "non_unate", "rising_edge")} }}
  }}
  cell (RAM) {{
    pin (CK) {{ direction : input; capacitance : 1; clock : true; }}
    bus (D) {{ bus_type : two; direction : input; capacitance : 4; {check("CK")} }}
    bus (Q) {{ bus_type : two; direction : output; {arc("RAM", "CK", "non_unate", "rising_edge")} }}
  }}
}}
"""

PINS = {
    "INV": {"A": "INPUT", "Y": "OUTPUT"},
    "BUF": {"A": "INPUT", "Y": "OUTPUT"},
    "DFF": {"CK": "INPUT", "D": "INPUT", "Q": "OUTPUT"},
    "RAM": {"CK": "INPUT", "D[0]": "INPUT", "D[1]": "INPUT", "Q[0]": "OUTPUT", "Q[1]": "OUTPUT"},
}


def _macro(name: str, pins: dict[str, str]) -> str:
    kind, width, height = ("BLOCK", 10, 6) if name == "RAM" else ("CORE", 1, 2)
    middle = f"{width / 2 - 0.1:g} {height / 2 - 0.1:g} {width / 2 + 0.1:g} {height / 2 + 0.1:g}"
    ports = "".join(
        f"PIN {pin} DIRECTION {direction} ; PORT LAYER M1 ; RECT {middle} ; END END {pin}\n"
        for pin, direction in pins.items()
    )
    return f"MACRO {name}\nCLASS {kind} ;\nSIZE {width} BY {height} ;\nSYMMETRY X Y ;\n{ports}END {name}\n"


# Every pin is in the middle of its cell.
LEF = (
    'VERSION 5.8 ;\nBUSBITCHARS "[]" ;\nUNITS\nDATABASE MICRONS 1000 ;\nEND UNITS\n'
    "LAYER M1\nTYPE ROUTING ;\nDIRECTION HORIZONTAL ;\nPITCH 0.2 ;\nWIDTH 0.1 ;\n"
    "RESISTANCE RPERSQ 0.2 ;\nCAPACITANCE CPERSQDIST 0.0005 ;\nEDGECAPACITANCE 0.000025 ;\nEND M1\n"
    "SITE core\nSIZE 0.5 BY 2 ;\nCLASS CORE ;\nEND core\n" + "".join(map(_macro, PINS, PINS.values())) + "END LIBRARY\n"
)

VERILOG = """
module chip (input clk, input in, output out);
  wire [1:0] data; wire a, b, c;
  DFF first (.CK(clk), .D(in), .Q(a));
  INV one (.A(a), .Y(b)); INV two (.A(b), .Y(c));
  DFF second (.CK(clk), .D(c), .Q(out));
  RAM ram (.CK(clk), .D({a, c}), .Q(data));
  DFF third (.CK(clk), .D(data[0]), .Q());
endmodule
"""

# µm, lower left corners of the cells.
PLACES = {"first": (0, 0), "one": (10, 0), "two": (10, 8), "second": (30, 8), "ram": (0, 20), "third": (4.5, 2)}
DEF = """VERSION 5.8 ; DIVIDERCHAR "/" ; BUSBITCHARS "[]" ; DESIGN chip ; UNITS DISTANCE MICRONS 1000 ;
DIEAREA ( 0 0 ) ( 40000 30000 ) ;
""" + "".join(f"ROW r{row} core 0 {2000 * row} N DO 80 BY 1 STEP 500 0 ;\n" for row in range(15)) + """\
COMPONENTS 6 ;
""" + "".join(
    f"- {name} {'RAM' if name == 'ram' else 'INV' if name in ('one', 'two') else 'DFF'} "
    f"+ PLACED ( {1000 * x:g} {1000 * y:g} ) N ;\n"
    for name, (x, y) in PLACES.items()
) + """END COMPONENTS
PINS 3 ;
- clk + NET clk + DIRECTION INPUT + USE SIGNAL + LAYER M1 ( 0 0 ) ( 0 0 ) + FIXED ( 0 0 ) N ;
- in + NET in + DIRECTION INPUT + USE SIGNAL + LAYER M1 ( 0 0 ) ( 0 0 ) + FIXED ( 0 1000 ) N ;
- out + NET out + DIRECTION OUTPUT + USE SIGNAL + LAYER M1 ( 0 0 ) ( 0 0 ) + FIXED ( 40000 9000 ) N ;
END PINS
END DESIGN
"""  # fmt: skip

SDC = """
set period 200
create_clock -name clock -period $period [get_ports clk]
set_clock_uncertainty 5 [get_clocks clock]
set_input_delay -clock clock [expr 0.25 * $period] [get_ports in]
set_output_delay 30 -clock clock [all_outputs]
"""
