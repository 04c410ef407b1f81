"""read_delta_rs.py TABLE VERSION CHECKPOINT: prints the number of rows of a
version and a hash over them, sorted, as delta-rs reads them; with CHECKPOINT
"true" it then makes a checkpoint of the newest version."""

import hashlib
import json
import os
import sys
import time

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

path, version, checkpoint = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "true"


def opened(version=None):
    """Opens the table. A listing of a directory that grows may show a commit and
    not the one before it, which delta-rs takes for a gap."""
    for _ in range(10):
        try:
            return DeltaTable(path, version=version)
        except DeltaError as e:
            if "found gap" not in str(e):
                raise
            time.sleep(0.1)
    return DeltaTable(path, version=version)


rows = opened(version).to_pyarrow_table(columns=["id", "name"])
rows = sorted(zip(rows["id"].to_pylist(), rows["name"].to_pylist()))
digest = hashlib.sha256()
for number, name in rows:
    digest.update(f"{number} {name}\n".encode())
if checkpoint:
    opened().create_checkpoint()
print(json.dumps({"rows": len(rows), "print": digest.hexdigest()}), flush=True)
os._exit(0)  # the threads of pyarrow and delta-rs do not always end well
