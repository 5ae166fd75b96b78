// Constants shared by the chip cost (engine) and the full evaluation (Python).
#pragma once

namespace placement {

// Share of the free area that cells may fill: the default of OpenROAD's placer.
inline constexpr double kTargetDensity = 0.7;

// Share of a soft macro's area that its cells need: clusters are drawn at half utilisation (Circuit Training).
inline constexpr double kCellShare = 0.5;

}  // namespace placement
