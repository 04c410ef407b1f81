"""append_delta_rs.py TABLE DATE: appends of 1,000 rows by delta-rs, which holds
the table; reports their median."""

import datetime
import statistics
import sys

import peer
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

APPENDS = 10

table, date = DeltaTable(sys.argv[1]), datetime.date.fromisoformat(sys.argv[2])
rows = pa.table({
    "id": pa.array(range(1000), pa.int64()),
    "ts": pa.nulls(1000, pa.timestamp("us", tz="UTC")),
    "amount": pa.nulls(1000, pa.float64()),
    "name": pa.array([f"name-{i}" for i in range(1000)]),
    "date": pa.array([date] * 1000, pa.date32()),
})
times = []
for _ in range(APPENDS):
    start = peer.clock()
    write_deltalake(table, rows, mode="append")
    times.append(peer.clock() - start)
peer.report(peer.clock() - statistics.median(times), APPENDS)
