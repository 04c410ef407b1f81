"""list_duckdb.py TABLE VERSION DATE: plans a scan of a partition in DuckDB, for
which its delta extension finds the files."""

import sys

import duck
import peer

table, version, date = sys.argv[1], int(sys.argv[2]), sys.argv[3]
connection = duck.connect()
start = peer.clock()
at = "" if version < 0 else f", version = {version}"
connection.execute(f"EXPLAIN SELECT id FROM delta_scan('{table}'{at}) WHERE date = '{date}'").fetchall()
peer.report(start, -1)
