"""The rows of a table version as each engine reads them, as comparable values."""

import datetime
import decimal
import math


def plain(value):
    """A value as every engine can say it: UTC without zone, lists, dicts, floats."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, decimal.Decimal):
        return value.normalize()
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def ordered(rows):
    """Rows (dicts by column) in an order that does not depend on the engine."""
    out = [{k: plain(v) for k, v in sorted(row.items())} for row in rows]
    return sorted(out, key=repr)


def with_delta_rs(table, version):
    from deltalake import DeltaTable

    return ordered(DeltaTable(str(table), version=version).to_pyarrow_table().to_pylist())


def with_polars(table, version):
    import polars

    return ordered(polars.read_delta(str(table), version=version).to_dicts())


def with_duckdb(duck, table, version):
    relation = duck.sql(f"SELECT * FROM delta_scan('{table}', version={version})")
    return ordered(relation.to_arrow_table().to_pylist())


def with_spark(spark, table, version):
    frame = spark.read.format("delta").option("versionAsOf", version).load(str(table))
    return ordered(row.asDict(recursive=True) for row in frame.collect())


def with_mount(duck, snapshot, partition_types=None):
    """The rows of a snapshot directory, read as plain hive-partitioned Parquet."""
    types = ", ".join(f"'{k}': {v}" for k, v in (partition_types or {}).items())
    hive = f"hive_partitioning=true, hive_types={{{types}}}" if types else "hive_partitioning=false"
    relation = duck.sql(f"SELECT * FROM read_parquet('{snapshot}/**/*.parquet', union_by_name=true, {hive})")
    return ordered(relation.to_arrow_table().to_pylist())
