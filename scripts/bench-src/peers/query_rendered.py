"""query_rendered.py ENGINE PATH COLUMNS: aggregates one column or all of a table
(ENGINE delta_scan, delta-rs or polars) or of the files of a directory (duckdb).
The count reported is the sum of the column amount in hundredths, -1 if the engine
refuses the table."""

import sys

import peer

AGGREGATES = {
    "one": "SELECT sum(amount) AS amount FROM {}",
    "all": "SELECT sum(amount) AS amount, sum(id) AS id, sum(store) AS store, max(name) AS name, max(day) AS day FROM {}",
}


def duckdb_glob(path, columns):
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_external_file_cache = false")
    return timed(lambda: connection.execute(AGGREGATES[columns].format(f"read_parquet('{path}/*.parquet')")).fetchone()[0])


def delta_scan(path, columns):
    import duck

    connection = duck.connect()
    return timed(lambda: connection.execute(AGGREGATES[columns].format(f"delta_scan('{path}')")).fetchone()[0])


def delta_rs(path, columns):
    from deltalake import DeltaTable, QueryBuilder

    def query():
        builder = QueryBuilder().register("t", DeltaTable(path))
        return builder.execute(AGGREGATES[columns].format("t")).read_all()["amount"][0].as_py()

    return timed(query)


def polars(path, columns):
    import polars as pl

    def query():
        frame = pl.scan_delta(path)
        wanted = [pl.col("amount").sum()]
        if columns == "all":
            wanted += [pl.col("id").sum(), pl.col("store").sum(), pl.col("name").max(), pl.col("day").max()]
        return frame.select(wanted).collect()["amount"][0]

    return timed(query)


def timed(query):
    start = peer.clock()
    total = query()
    peer.report(start, -1 if total is None else round(total * 100))


engine, path, columns = sys.argv[1:]
try:
    {"duckdb": duckdb_glob, "delta_scan": delta_scan, "delta-rs": delta_rs, "polars": polars}[engine](path, columns)
except Exception as refusal:  # Whatever an engine raises is its way of refusing.
    print(f"{engine}: {refusal}", file=sys.stderr)
    peer.report(peer.clock(), -1)
