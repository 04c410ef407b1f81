"""make_scanned.py DIR FILES ROWS: writes the data files of the table to scan.
Files from the 17th on are copies, as making them takes longer."""

import shutil
import sys

import duckdb
import peer

MADE = 16

directory, files, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
start = peer.clock()
connection = duckdb.connect()
for i in range(files):
    path = f"{directory}/part-{i:05}.parquet"
    if i >= MADE:
        shutil.copyfile(f"{directory}/part-{i % MADE:05}.parquet", path)
        continue
    connection.execute(f"""
        COPY (SELECT {i * rows} + range AS id, (hash(range + {i * rows}) % 1000)::INTEGER AS store,
                     (hash(range * 7 + {i}) % 100_000_000) / 100.0 AS amount,
                     'customer-' || (hash(range * 3 + {i}) % 100_000) AS name
              FROM range({rows}))
        TO '{path}' (FORMAT parquet, COMPRESSION snappy)""")
peer.report(start, files)
