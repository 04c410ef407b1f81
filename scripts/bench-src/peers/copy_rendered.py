"""copy_rendered.py FROM TO: writes the rows of each Parquet file of a directory
into a plain one of the same name."""

import pathlib
import sys

import duckdb
import peer

source, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
start = peer.clock()
connection = duckdb.connect()
connection.execute("SET enable_external_file_cache = false")
files = sorted(source.glob("*.parquet"))
for file in files:
    connection.execute(f"COPY (FROM read_parquet('{file}')) TO '{target / file.name}' (FORMAT parquet, COMPRESSION snappy)")
peer.report(start, len(files))
