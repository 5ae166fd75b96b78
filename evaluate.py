"""Evaluates a placement or a trained policy: `python evaluate.py design=ariane133_ng45 placement=file.plc json=true`.

With `checkpoint=RUN`, the folder of a training run, it draws placements from the trained policy and keeps the best.
`search=refine` improves either by annealing; `placers=random,greedy,anneal` compares placers at equal time.
It hands over to the commands `evaluate`, `sample`, `search`, `legalise` and `compare` of `macro-placement`.
"""

from __future__ import annotations

import sys

from placement.cli.evaluate import main

if __name__ == "__main__":
    if status := main(sys.argv[1:], program=sys.argv[0]):
        sys.exit(status)
