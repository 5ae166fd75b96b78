"""A user-defined export format: `--format examples.json_format.JSON` (docs/how-to/add-a-format.md)."""

import json

from placement.netlist.export import Export, ExportFormat


def write(export: Export) -> str:
    """Returns macro → lower left corner in µm and orientation, in the coordinates of the user's files."""
    places = {
        place.name: [place.x / export.units, place.y / export.units, place.orientation.name]
        for place in export.locations
    }
    return json.dumps(places, indent=1)


JSON = ExportFormat(write)
