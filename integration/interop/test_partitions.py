"""Values of partition columns: as directories that other readers parse, and as
columns of the files with --fill-partitions."""

import datetime
import decimal
import os

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import bylog
import digest
import mount
from mount import versions

VALUES = [
    "A/A", "B B", "R&D", "ID$", "you%2Fthere", "2023-06-07 13:00:00", "a b+c", "a=b", "a?b%c", "+ =%0", "/%20%f",
    "😈", "Zürich", "..", ".", "#1", "a:b", "[x]{y}", "back\\slash", "quote'\"", "tab\there", "x" * 80, "null", "%", "%zz", "~",
]  # fmt: skip

# Spark refuses blanks and = in the name of a partition column.
ODD = {"delta-rs": "c1+c2/c3 %=é", "Spark": "c1+c2/c3%é"}


def by_directories(name, snapshot, column):
    """(id, value) pairs that a reader finds by parsing directories itself."""
    files = f"{snapshot}/**/*.parquet"
    match name:
        case "DuckDB":
            t = duckdb.execute(
                "SELECT * FROM read_parquet(?, hive_partitioning=true, hive_types_autocast=false)", [files]
            ).to_arrow_table()
        case "pyarrow":
            hive = pyarrow.dataset.HivePartitioning(pa.schema([(column, pa.string())]))
            t = pyarrow.dataset.dataset(snapshot, format="parquet", partitioning=hive).to_table()
        case "Polars":
            t = polars.read_parquet(files, hive_partitioning=True, try_parse_hive_dates=False).to_arrow()
    return sorted(zip(t["id"].to_pylist(), map(str_or_none, t[column].to_pylist())))


def as_duckdb_parses(rows):
    """DuckDB takes the word null in the name of a directory for a null."""
    return [(i, None if value == "null" else value) for i, value in rows]


def str_or_none(value):
    return None if value is None else str(value)


def in_files(snapshot, column):
    """The same from the files alone."""
    source = f"read_parquet('{snapshot}/**/*.parquet', hive_partitioning=false)"
    quoted = '"' + column.replace('"', '""') + '"'
    return sorted(duckdb.sql(f"SELECT id, {quoted} FROM {source}").fetchall(), key=str)


def write_with_delta_rs(spark, table, column, values):
    rows = pa.table({"id": range(len(values)), column: pa.array(values, pa.string())})
    write_deltalake(str(table), rows, partition_by=[column])


def write_with_spark(spark, table, column, values):
    schema = f"id BIGINT, `{column}` STRING"
    frame = spark.createDataFrame(list(enumerate(values)), schema).repartition(1)
    frame.write.format("delta").partitionBy(column).save(str(table))


WRITERS = {"delta-rs": write_with_delta_rs, "Spark": write_with_spark}


@pytest.mark.parametrize("name", ["plain", "odd"])
@pytest.mark.parametrize("writer", WRITERS)
def test_partition_values_with_special_characters_are_exact(spark, mounted, table, writer, name):
    column = ODD[writer] if name == "odd" else "p"
    WRITERS[writer](spark, table, column, VALUES)
    expected = list(enumerate(VALUES))
    snapshot = mounted(table) / "@v0"
    assert len(os.listdir(snapshot)) == len(VALUES)
    assert in_files(mounted(table, "--fill-partitions") / "@v0", column) == sorted(expected, key=str)
    if column == "p":
        for reader in ("pyarrow", "Polars"):
            assert by_directories(reader, snapshot, column) == expected, reader
        assert by_directories("DuckDB", snapshot, column) == as_duckdb_parses(expected)


@pytest.mark.parametrize("writer", WRITERS)
def test_null_partition_is_null_and_its_text_is_not(spark, mounted, table, writer):
    """An empty string is null too, as the protocol has it; the word is a word."""
    WRITERS[writer](spark, table, "p", ["null", None, "None", "a"])
    snapshot = mounted(table) / "@v0"
    assert sorted(os.listdir(snapshot)) == sorted(["p=null", "p=__HIVE_DEFAULT_PARTITION__", "p=None", "p=a"])
    expected = [(0, "null"), (1, None), (2, "None"), (3, "a")]
    assert in_files(mounted(table, "--fill-partitions") / "@v0", "p") == sorted(expected, key=str)
    assert by_directories("DuckDB", snapshot, "p") == as_duckdb_parses(expected)
    assert by_directories("Polars", snapshot, "p") == expected


def test_append_to_the_null_partition_is_null_in_the_log(mounted, table):
    write_with_delta_rs(None, table, "p", ["a"])
    m = mounted(table)
    for i, name in enumerate(("p=__HIVE_DEFAULT_PARTITION__", "p=")):
        os.makedirs(m.current / name, exist_ok=True)
        pq.write_table(pa.table({"id": [10 + i]}), m.current / name / f"x{i}.parquet")
    assert versions(table) == [0, 1, 2]
    for version in (1, 2):
        (add,) = [a for k, a in mount.actions(table, version) if k == "add"]
        assert add["partitionValues"] == {"p": None}
        assert add["path"].startswith("p=__HIVE_DEFAULT_PARTITION__/")
    rows = DeltaTable(str(table)).to_pyarrow_table().to_pylist()
    assert sorted((r["id"], r["p"]) for r in rows) == [(0, "a"), (10, None), (11, None)]


def log_of(table, schema, partitions, adds):
    """A table of a file for each of the partition values, of its number in "id"."""
    t = bylog.Table(table, schema, partitions)
    actions = []
    for i, values in enumerate(adds):
        pq.write_table(pa.table({"id": pa.array([i], pa.int64())}), table / f"f{i}.parquet")
        actions.append(t.action(f"f{i}.parquet", values))
    t.commit(*actions)


UTC = datetime.timezone.utc
INSTANTS = {
    "2021-09-08 11:11:11": datetime.datetime(2021, 9, 8, 11, 11, 11, tzinfo=UTC),
    "2021-09-08 11:11:11.123456": datetime.datetime(2021, 9, 8, 11, 11, 11, 123456, tzinfo=UTC),
    "2021-09-08T11:11:11.5Z": datetime.datetime(2021, 9, 8, 11, 11, 11, 500000, tzinfo=UTC),
    "1969-12-31T23:59:59.999999Z": datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "1582-10-04 00:00:00": datetime.datetime(1582, 10, 4, tzinfo=UTC),
    "9999-12-31 23:59:59.999999": datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
}


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_timestamps_as_partition_values_do_not_depend_on_the_zone_of_the_process(duck, mounted, table, zone):
    """Without a zone they are UTC, as everything that the mount writes."""
    adds = [{"at": text, "ntz": text.removesuffix("Z").replace("T", " ")} for text in INSTANTS] + [{"at": None, "ntz": ""}]
    log_of(table, [("id", "long"), ("at", "timestamp"), ("ntz", "timestamp_ntz")], ["at", "ntz"], adds)
    m = mounted(table, "--fill-partitions", zone=zone)
    source = f"read_parquet('{m.dir}/@v1/**/*.parquet', hive_partitioning=false)"
    assert [str(t) for _, t in digest.columns(duck, source)] == ["BIGINT", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP"]
    got = duck.sql(f'SELECT id, epoch_us("at"), ntz FROM {source} ORDER BY id').fetchall()
    want = [(i, micros(t), t.replace(tzinfo=None)) for i, t in enumerate(INSTANTS.values())]
    assert got == want + [(len(INSTANTS), None, None)]


def micros(t):
    return (t - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // datetime.timedelta(microseconds=1)


def test_directories_of_timestamps_do_not_depend_on_the_zone_of_the_process(mounted, table):
    log_of(table, [("id", "long"), ("at", "timestamp")], ["at"], [{"at": text} for text in INSTANTS])
    listings = [sorted(os.listdir(mounted(table, zone=zone) / "@v1")) for zone in ("UTC", "Asia/Tokyo")]
    assert listings[0] == listings[1] and len(listings[0]) == len(INSTANTS)


def test_partition_columns_of_every_type_are_filled_exactly(duck, mounted, table):
    columns = {
        "byte": ("-128", -128), "short": ("32767", 32767), "integer": ("-2147483648", -(2**31)), "long": ("9223372036854775807", 2**63 - 1),
        "float": ("1.5", 1.5), "double": ("-1.0E10", -1e10), "boolean": ("true", True), "string": ("a=b/c", "a=b/c"),
        "binary": ("\x00é", "\x00é".encode()), "date": ("1500-01-01", datetime.date(1500, 1, 1)),
        "decimal(5,2)": ("-1.50", decimal.Decimal("-1.50")), "decimal(38,10)": ("1234567890123456789012345678.0123456789", decimal.Decimal("1234567890123456789012345678.0123456789")),
    }  # fmt: skip
    schema = [("id", "long")] + [(f"c{i}", t) for i, t in enumerate(columns)]
    names = [n for n, _ in schema[1:]]
    log_of(table, schema, names, [dict(zip(names, (text for text, _ in columns.values()))), dict.fromkeys(names)])
    m = mounted(table, "--fill-partitions")
    got = duck.sql(f"SELECT * FROM read_parquet('{m.dir}/@v1/**/*.parquet', hive_partitioning=false) ORDER BY id").fetchall()
    assert got == [(0, *(v for _, v in columns.values())), (1, *[None] * len(columns))]
