"""scan_duckdb.py SOURCE COLD: an aggregate over a source of rows, by DuckDB. With
COLD "true" it drops the page cache when DuckDB itself is ready."""

import os
import sys

import duck
import peer

AGGREGATE = "SELECT store, count(*), sum(amount), max(name) FROM {} GROUP BY store"

source, cold = sys.argv[1], sys.argv[2] == "true"
connection = duck.connect()
if cold:
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("3")
# Brings DuckDB's code in.
connection.execute(
    AGGREGATE.format("(SELECT range % 10 AS store, range AS amount, range::VARCHAR AS name FROM range(10000))")
).fetchall()
start = peer.clock()
groups = connection.execute(AGGREGATE.format(source)).fetchall()
peer.report(start, sum(group[1] for group in groups))
