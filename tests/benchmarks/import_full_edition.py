"""The full edition from files of the upstreams' layouts and size (63K rows), against bare pyarrow.parquet.write_table of its tables.

    python tests/benchmarks/import_full_edition.py

Ours is reading, checking against what the upstreams must hold, building typed rows, ``schema.check_table`` and writing as we write.
The upstreams' files are written by another process, so that the peak memory is the import's.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

import pyarrow.parquet as pq
from measure import Row, seconds, table

sys.path.append(str(Path(__file__).parent.parent))
import upstreams

from t2i_parity.dataset_builder import full
from t2i_parity.dataset_builder.registry import Entry
from t2i_parity.dataset_builder.schema import CONFIGS, check_table
from t2i_parity.dataset_builder.sources import SOURCES
from t2i_parity.dataset_builder.storage import Folder, parquet_bytes

RATIO_AT_MOST = 15.0
PEAK_AT_MOST_MB = 1_500


def run(root: Path, repeats: int) -> tuple[Row, int]:
    """The comparison over the edition's files below ``root``, and the peak memory of the import in MB."""
    places = {folder.name: str(folder) for folder in root.iterdir()}
    with tempfile.TemporaryDirectory() as out:
        folder = Folder(out)

        def ours() -> None:
            for name, rows in full.tables(places).items():
                check_table(rows, CONFIGS[name].all_columns, where=name)
                folder.write(parquet_bytes(rows), f"{name}.parquet")

        ours()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "linux" else 1024**2)
        tables = full.tables(places)

        def bare() -> None:
            for name, rows in tables.items():
                pq.write_table(rows, Path(out) / f"bare-{name}.parquet")

        ours_s, bare_s = seconds([ours, bare], repeats)
    what = f"import, check and write {sum(map(len, tables.values())):,} rows"
    return Row(what, ours_s, "pyarrow.parquet.write_table", bare_s, RATIO_AT_MOST), peak


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=300, help="meanings a dimension, the upstreams' own number by default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5, help="the best of so many (default: %(default)s)")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.write:
        upstreams.edition(given.write, given.size)
        return
    small = {name: Entry(name, source, source.title) for name, source in upstreams.sources(given.size).items()}
    with tempfile.TemporaryDirectory() as root, patch.dict(SOURCES.declared, small):
        subprocess.run([sys.executable, __file__, "--write", root, "--size", str(given.size)], check=True)
        row, peak = run(Path(root), given.repeats)
    print(table([row]))
    print(f"peak memory: {peak:,} MB, at most {PEAK_AT_MOST_MB:,} {'holds' if peak <= PEAK_AT_MOST_MB else 'MISSED'}")


if __name__ == "__main__":
    main()
