"""What the mount writes is read alike by every engine, at every version."""

import datetime
import decimal
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import engines
from mount import leftovers, versions

DAY = datetime.date(2024, 5, 1)
NOON = datetime.datetime(2024, 5, 1, 12, 30, 15, 123456, tzinfo=datetime.timezone.utc)

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int16()),
        ("number", pa.int32()),
        ("ratio", pa.float64()),
        ("thin", pa.float32()),
        ("flag", pa.bool_()),
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("price", pa.decimal128(10, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.int64()), ("y", pa.string())])),
    ]
)


def rows(first, n):
    return pa.Table.from_pylist(
        [
            {
                "id": i,
                "small": i % 100,
                "number": -i,
                "ratio": i / 4,
                "thin": i / 2,
                "flag": i % 2 == 0,
                "name": f"name {i} é",
                "raw": bytes([i % 256, 0, 255]),
                "price": decimal.Decimal(i) / 4,
                "day": DAY + datetime.timedelta(days=i),
                "at": NOON + datetime.timedelta(hours=i),
                "tags": ["a", None, f"t{i}"],
                "place": {"x": i, "y": None},
            }
            for i in range(first, first + n)
        ]
        + [{"id": 1000 + first}],  # every other column is null
        schema=SCHEMA,
    )


def check_everywhere(duck, spark, table, m, partition_types=None):
    for version in versions(table):
        wanted = engines.with_delta_rs(table, version)
        assert engines.with_polars(table, version) == wanted, f"Polars, version {version}"
        assert engines.with_duckdb(duck, table, version) == wanted, f"DuckDB, version {version}"
        assert engines.with_spark(spark, table, version) == wanted, f"Spark, version {version}"
        if wanted:
            got = engines.with_mount(duck, m / f"@v{version}", partition_types)
            assert got == wanted, f"the mount, version {version}"
        else:
            assert os.listdir(m / f"@v{version}") == []


@pytest.mark.parametrize("maker", ["delta-rs", "spark"])
def test_appends_replacements_and_removals_read_alike(duck, spark, mounted, table, tmp_path, maker):
    if maker == "delta-rs":
        DeltaTable.create(str(table), schema=SCHEMA)
    else:
        pq.write_table(rows(0, 1).slice(0, 0), tmp_path / "empty.parquet")
        spark.read.parquet(str(tmp_path / "empty.parquet")).write.format("delta").save(str(table))
    m = mounted(table)
    start = versions(table)[-1]

    pq.write_table(rows(0, 5), tmp_path / "a.parquet")
    shutil.copy(tmp_path / "a.parquet", m.current)
    assert m.latest() == start + 1
    pq.write_table(rows(10, 3), tmp_path / "b.parquet", compression="zstd", row_group_size=2)
    shutil.copy(tmp_path / "b.parquet", m.current)
    pq.write_table(rows(20, 4), tmp_path / "a.parquet")
    shutil.copy(tmp_path / "a.parquet", m.current)  # replaces a.parquet
    os.unlink(m.current / "b.parquet")
    fd = os.open(m.current, os.O_RDONLY)
    os.fsync(fd)  # commits the removal
    os.close(fd)
    assert versions(table) == list(range(start + 5))
    assert m.latest() == start + 4

    counts = [DeltaTable(str(table), version=v).to_pyarrow_table().num_rows for v in range(start, start + 5)]
    assert counts == [0, 6, 10, 9, 5]
    check_everywhere(duck, spark, table, m)
    m.close()
    assert leftovers(table) == []


def test_partitioned_appends_read_alike(duck, spark, mounted, table, tmp_path):
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32()), ("city", pa.string())])
    DeltaTable.create(str(table), schema=schema, partition_by=["day", "city"])
    m = mounted(table)
    data = pa.table({"id": [1, 2], "name": ["x", None]}, schema=pa.schema([("id", pa.int64()), ("name", pa.string())]))
    cities = ["Oslo", "a b+c%d", "Zürich", "x=y&z", None]
    for i, city in enumerate(cities):
        name = "__HIVE_DEFAULT_PARTITION__" if city is None else escape(city)
        target = m.current / f"day=2024-05-0{i + 1}" / f"city={name}"
        os.makedirs(target)
        pq.write_table(data, target / "part.parquet")
    assert versions(table) == list(range(len(cities) + 1))
    got = DeltaTable(str(table)).to_pyarrow_table().to_pylist()
    assert {(r["day"].day, r["city"]) for r in got} == {(i + 1, c) for i, c in enumerate(cities)}
    check_everywhere(duck, spark, table, m, {"day": "DATE", "city": "VARCHAR"})


def escape(value):
    """The directory name part that hive writes for a value."""
    special = set("\"#%'*/:=?\\\x7f{[]^")
    return "".join(f"%{ord(c):02X}" if c in special or ord(c) < 32 else c for c in value)
