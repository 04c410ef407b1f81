"""list_delta_rs.py TABLE VERSION DATE: the files of a partition, by delta-rs."""

import sys

import peer
from deltalake import DeltaTable

table, version, date = sys.argv[1], int(sys.argv[2]), sys.argv[3]
start = peer.clock()
t = DeltaTable(table, version=None if version < 0 else version)
files = t.file_uris(file_pruning_predicate=[("date", "=", date)])
peer.report(start, len(files))
