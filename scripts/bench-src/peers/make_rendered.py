"""make_rendered.py DIR FILES ROWS SHAPE: writes the data files of a table whose
files a mount does not serve as they lie. SHAPE "mapped" gives the column amount
another name and all columns field ids, "deleted" does not."""

import sys

import duckdb
import peer

directory, files, rows, shape = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
start = peer.clock()
connection = duckdb.connect()
amount, options = "amount", ""
if shape == "mapped":
    amount = "price"
    options = ", FIELD_IDS {id: 1, store: 2, price: 3, name: 4, day: 5}"
for i in range(files):
    connection.execute(f"""
        COPY (SELECT {i * rows} + range AS id, (hash(range + {i * rows}) % 1000)::INTEGER AS store,
                     (hash(range * 7 + {i}) % 100_000_000) / 100.0 AS {amount},
                     'customer-' || (hash(range * 3 + {i}) % 100_000) AS name,
                     DATE '2020-01-01' + (range % 1500)::INTEGER AS day
              FROM range({rows}))
        TO '{directory}/part-{i:05}.parquet' (FORMAT parquet, COMPRESSION snappy{options})""")
peer.report(start, files)
