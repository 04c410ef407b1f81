"""Files of many writers under one schema: a snapshot is one table in each reader,
whatever physical types, hints and statistics its files carry."""

import datetime
import decimal
import os
import subprocess
import sys

import duckdb as duckdb_module
import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

import bylog

UTC = datetime.timezone.utc
# Across a change of clocks, before 1970, and before 1900.
MOMENTS = [
    datetime.datetime(2024, 3, 31, 1, 30),
    datetime.datetime(2024, 10, 27, 1, 30, 0, 123456),
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999000),
    datetime.datetime(1890, 1, 1, 12, 0, 1),
    None,
]
ZONES = ["UTC", "Asia/Tokyo", "America/Los_Angeles"]


def micros(t):
    return None if t is None else (t.replace(tzinfo=UTC) - datetime.datetime(1970, 1, 1, tzinfo=UTC)) // datetime.timedelta(microseconds=1)


def exact(unit):
    """The moments that a unit can hold; others are cut to it."""
    return [t if t is None or unit != "ms" else t.replace(microsecond=t.microsecond // 1000 * 1000) for t in MOMENTS]


def timestamps(path, kind):
    """A file of (id, at, local): an instant and a time without zone, in a physical type."""
    unit = {"millis": "ms", "nanos": "ns"}.get(kind, "us")
    values = [None if t is None else micros(t) * {"ms": 1, "us": 1000, "ns": 1000}[unit] // (1000 if unit != "ns" else 1) for t in exact(unit)]
    columns = {
        "id": pa.array(range(len(values)), pa.int64()),
        "at": pa.array(values, pa.timestamp(unit, None if kind in ("INT96", "without zone") else "UTC")),
        "local": pa.array(values, pa.timestamp(unit)),
    }
    pq.write_table(pa.table(columns), path, use_deprecated_int96_timestamps=kind == "INT96")


KINDS = ["micros", "INT96", "millis", "nanos", "without zone"]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A table of a file of each kind, its rows in the order of ids."""
    path = tmp_path_factory.mktemp("mixed") / "table"
    t = bylog.Table(path, [("id", "long"), ("at", "timestamp"), ("local", "timestamp_ntz")], protocol=bylog.features("timestampNtz"))
    for kind in KINDS:
        timestamps(path / f"{kind}.parquet", kind)
    t.add(*(f"{kind}.parquet" for kind in KINDS))
    return path


def wanted():
    return sorted(
        ((i, micros(t), micros(t)) for kind in KINDS for i, t in enumerate(exact("ms" if kind == "millis" else "us"))), key=str
    )


def read_by_duckdb(snapshot, zone):
    with duckdb_module.connect() as c:
        c.execute(f"SET TimeZone = '{zone}'")
        c.execute("SET enable_external_file_cache = false")
        source = f"read_parquet('{snapshot}/*.parquet')"
        assert [str(t) for t in c.sql(f"SELECT * FROM {source} LIMIT 0").types] == ["BIGINT", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP"]
        return c.sql(f"SELECT id, epoch_us(\"at\"), epoch_us(local) FROM {source}").fetchall()


FRAMES = """
import sys, pandas, polars, pyarrow.dataset
import pyarrow as pa
where = sys.argv[1]
for name, table in {
    "pyarrow": pyarrow.dataset.dataset(where, format="parquet").to_table(),
    "pandas": pa.Table.from_pandas(pandas.read_parquet(where, dtype_backend="pyarrow")),
    "Polars": polars.read_parquet(where + "/*.parquet").to_arrow(),
}.items():
    assert table.schema.field("at").type == pa.timestamp("us", "UTC"), (name, table.schema)
    assert table.schema.field("local").type == pa.timestamp("us"), (name, table.schema)
    columns = [table[c].cast(pa.int64()).to_pylist() for c in ("id", "at", "local")]
    print(name, sorted(zip(*columns), key=str))
"""


@pytest.mark.parametrize("zone", ZONES)
def test_mixed_timestamp_encodings_read_the_same_in_any_session_zone(mounted, mixed, spark, zone):
    snapshot = mounted(mixed) / "@v1"
    assert sorted(read_by_duckdb(snapshot, zone), key=str) == wanted()
    frames = subprocess.run(
        [sys.executable, "-c", FRAMES, str(snapshot)], env=os.environ | {"TZ": zone}, capture_output=True, text=True, check=True
    )
    assert frames.stdout.splitlines() == [f"{name} {wanted()}" for name in ("pyarrow", "pandas", "Polars")]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = spark.read.parquet(str(snapshot))
        assert [t for _, t in frame.dtypes] == ["bigint", "timestamp", "timestamp_ntz"]
        # A time without zone is told by its text: its clock may not exist in the zone.
        texts = frame.selectExpr("id", "unix_micros(at)", "date_format(local, 'yyyy-MM-dd HH:mm:ss.SSSSSS')").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    told = sorted(((i, a, None if text is None else micros(datetime.datetime.fromisoformat(text))) for i, a, text in texts), key=str)
    assert told == wanted()


WORDS = ["red", "green", None, "red"]
NUMBERS = [1, None, 3, 4]
DAYS = [datetime.date(2024, 5, i + 1) for i in range(4)]
INSTANTS = [datetime.datetime(2024, 5, 1, i, 0, 0, 5, tzinfo=UTC) for i in range(4)]


def hinted_by_pandas(path):
    """Categoricals, an index that is no column of the table, and another order."""
    frame = pandas.DataFrame({"at": INSTANTS, "word": pandas.Categorical(WORDS), "n": pandas.array(NUMBERS, dtype="Int64"), "day": DAYS})
    frame.index = pandas.Index([10, 20, 30, 40], name="the index")
    frame.to_parquet(path)


def hinted_by_polars(path):
    frame = polars.DataFrame({"word": WORDS, "n": NUMBERS, "day": DAYS, "at": INSTANTS}, schema_overrides={"word": polars.Categorical})
    frame.with_columns(polars.col("at").cast(polars.Datetime("ns", "Europe/Paris"))).write_parquet(path)


def hinted_by_duckdb(path):
    with duckdb_module.connect() as c:
        rows = pa.table({"word": WORDS, "n": pa.array(NUMBERS, pa.int64()), "day": DAYS, "at": pa.array(INSTANTS, pa.timestamp("us", "UTC"))})
        c.register("t", rows)
        c.execute("CREATE TYPE colour AS ENUM ('red', 'green')")
        c.execute(f"COPY (SELECT word::colour AS word, n, day, \"at\" FROM t) TO '{path}' (FORMAT parquet)")


def hinted_by_pyarrow(path):
    """Large strings, a dictionary, and a zone in the hint of the instant."""
    rows = {
        "word": pa.array(WORDS, pa.large_string()).dictionary_encode(),
        "n": pa.array(NUMBERS, pa.int64()),
        "day": pa.array(DAYS, pa.date32()),
        "at": pa.array(INSTANTS, pa.timestamp("us", "America/New_York")),
    }
    pq.write_table(pa.table(rows), path)


@pytest.fixture(scope="module")
def by_many(tmp_path_factory, spark):
    path = tmp_path_factory.mktemp("many") / "table"
    t = bylog.Table(path, [("word", "string"), ("n", "long"), ("day", "date"), ("at", "timestamp")])
    for write in (hinted_by_pandas, hinted_by_polars, hinted_by_duckdb, hinted_by_pyarrow):
        write(path / f"{write.__name__}.parquet")
    rows = list(zip(WORDS, NUMBERS, DAYS, INSTANTS))
    spark.createDataFrame(rows, "word STRING, n BIGINT, day DATE, at TIMESTAMP").repartition(1).write.parquet(str(path / "spark"))
    (part,) = (path / "spark").glob("*.parquet")
    part.rename(path / "hinted_by_spark.parquet")
    t.add(*(f"hinted_by_{w}.parquet" for w in ("pandas", "polars", "duckdb", "pyarrow", "spark")))
    return path


PLAIN = pa.schema([("word", pa.string()), ("n", pa.int64()), ("day", pa.date32()), ("at", pa.timestamp("us", "UTC"))])

GLOBS = {
    "DuckDB": lambda where: duckdb_module.sql(f"FROM read_parquet('{where}/*.parquet')").to_arrow_table(),
    "pyarrow dataset": lambda where: pyarrow.dataset.dataset(where, format="parquet").to_table(),
    "pyarrow table": lambda where: pq.read_table(where),
    "pandas": lambda where: pa.Table.from_pandas(pandas.read_parquet(where, dtype_backend="pyarrow"), preserve_index=False),
    "Polars": lambda where: polars.read_parquet(f"{where}/*.parquet").to_arrow(),
    "Polars scan": lambda where: polars.scan_parquet(f"{where}/*.parquet").collect().to_arrow(),
}


@pytest.mark.parametrize("reader", GLOBS)
def test_files_of_many_writers_are_one_table_in_each_reader(mounted, by_many, reader):
    where = str(mounted(by_many) / "@v1")
    for name in os.listdir(where):
        check_plain(pq.read_table(f"{where}/{name}"), 1, name)
    check_plain(GLOBS[reader](where), 5, reader)


def test_files_of_many_writers_are_one_table_in_spark(mounted, by_many, spark):
    frame = spark.read.parquet(str(mounted(by_many) / "@v1"))
    assert frame.dtypes == [("word", "string"), ("n", "bigint"), ("day", "date"), ("at", "timestamp")]
    check_plain(frame.toArrow(), 5, "Spark")


def check_plain(table, times, what):
    assert table.schema.names == PLAIN.names, what
    plain = table.cast(PLAIN)
    for field in table.schema:
        assert not pa.types.is_dictionary(field.type), (what, field)
    rows = sorted(map(tuple, (r.values() for r in plain.to_pylist())), key=str)
    assert rows == sorted(list(zip(WORDS, NUMBERS, DAYS, INSTANTS)) * times, key=str), what


# The rows at both ends of each column are deleted, and all of a row group.
N = 3000
COLUMNS = {
    "i": ("integer", pa.int32(), lambda i: i),
    "l": ("long", pa.int64(), lambda i: -i * 10**12),
    "d": ("double", pa.float64(), lambda i: i / 4),
    "s": ("string", pa.string(), lambda i: f"{i:06}"),
    "dec": ("decimal(20,2)", pa.decimal128(20, 2), lambda i: decimal.Decimal(i) / 4),
    "day": ("date", pa.date32(), lambda i: datetime.date(2000, 1, 1) + datetime.timedelta(days=i)),
    "at": ("timestamp", pa.timestamp("us", "UTC"), lambda i: datetime.datetime(2000, 1, 1, tzinfo=UTC) + datetime.timedelta(hours=i)),
}
DELETED = [0, 1, 2, *range(1000, 2000), 2500, 2998, 2999]
LEFT = [i for i in range(N) if i not in set(DELETED)]


@pytest.fixture(scope="module")
def extremes(tmp_path_factory):
    path = tmp_path_factory.mktemp("extremes") / "table"
    t = bylog.Table(path, [(n, t) for n, (t, _, _) in COLUMNS.items()], protocol=bylog.features("deletionVectors"))
    rows = {n: pa.array([make(i) for i in range(N)], t) for n, (_, t, make) in COLUMNS.items()}
    pq.write_table(pa.table(rows), path / "f.parquet", row_group_size=1000, write_page_index=True)
    t.add("f.parquet", deleted=DELETED)
    return path


def answer(column):
    values = sorted(COLUMNS[column][2](i) for i in LEFT)
    return len(LEFT), len(LEFT), values[0], values[-1]


AGGREGATES = 'SELECT count(*), count("{c}"), min("{c}"), max("{c}") FROM {t}'


def asked_of_polars(where, column):
    c = polars.col(column)
    (row,) = polars.scan_parquet(f"{where}/*.parquet").select(polars.len(), c.count().alias("n"), c.min().alias("min"), c.max().alias("max")).collect().rows()
    return row


def asked_of_pyarrow(where, column):
    files = pyarrow.dataset.dataset(where, format="parquet")
    low, high = (pc.min_max(files.to_table(columns=[column])[column])[k].as_py() for k in ("min", "max"))
    return files.count_rows(), files.count_rows(filter=pc.field(column) <= high), low, high


def asked_of_duckdb(duck, source, column):
    (row,) = duck.sql(AGGREGATES.format(c=column, t=source)).to_arrow_table().to_pylist()
    return tuple(row.values())


def asked_of_delta_rs(where, column):
    sql = AGGREGATES.format(c=column, t="t")
    (row,) = pa.table(QueryBuilder().register("t", DeltaTable(where)).execute(sql)).to_pylist()
    return tuple(row.values())


ASKED = {
    "DuckDB": lambda duck, where, c: asked_of_duckdb(duck, f"read_parquet('{where}/*.parquet')", c),
    "delta_scan": lambda duck, where, c: asked_of_duckdb(duck, f"delta_scan('{where}')", c),
    "Polars": lambda duck, where, c: asked_of_polars(where, c),
    "pyarrow": lambda duck, where, c: asked_of_pyarrow(where, c),
    "delta-rs": lambda duck, where, c: asked_of_delta_rs(where, c),
}


@pytest.mark.parametrize("engine", ASKED)
def test_min_max_and_count_are_right_where_the_extremes_were_deleted(duck, mounted, extremes, engine):
    where = str(mounted(extremes) / "@v1")
    for column in COLUMNS:
        assert plain(ASKED[engine](duck, where, column)) == answer(column), column
        # The deleted extreme is found by no filter, the one that is left is.
        files = pyarrow.dataset.dataset(where, format="parquet")
        _, t, make = COLUMNS[column]
        for value, rows in ((make(0), 0), (answer(column)[2], 1), (answer(column)[3], 1), (make(N - 1), 0)):
            assert files.count_rows(filter=pc.field(column) == pa.scalar(value, t)) == rows, (column, value)


def plain(row):
    return tuple(v.astimezone(UTC) if isinstance(v, datetime.datetime) else v for v in row)


def asked_of_spark(frame, column):
    (row,) = frame.selectExpr("count(*)", f"count({column})", f"min({column})", f"max({column})").collect()
    return tuple(v.replace(tzinfo=UTC) if isinstance(v, datetime.datetime) else v for v in row)


@pytest.mark.parametrize("source", ["parquet", "delta"])
def test_min_max_and_count_are_right_in_spark_where_the_extremes_were_deleted(spark, mounted, extremes, source):
    from pyspark.sql.functions import lit

    frame = spark.read.format(source).load(str(mounted(extremes) / "@v1"))
    for column in COLUMNS:
        assert asked_of_spark(frame, column) == answer(column), column
        _, _, low, high = (lit(v) for v in answer(column))
        c = frame[column]
        assert frame.where((c < low) | (c > high)).count() == 0 and frame.where((c == low) | (c == high)).count() == 2, column


def test_spark_takes_no_minimum_from_the_footer_of_a_file_with_deleted_rows(spark, mounted, extremes):
    """Where it is told to answer from footers it refuses, for want of a count of nulls."""
    settings = {"spark.sql.parquet.aggregatePushdown": "true", "spark.sql.sources.useV1SourceList": ""}
    before = {k: spark.conf.get(k) for k in settings}
    try:
        for k, v in settings.items():
            spark.conf.set(k, v)
        frame = spark.read.parquet(str(mounted(extremes) / "@v1"))
        refused = {column for column in COLUMNS if not answers(frame, column)}
    finally:
        for k, v in before.items():
            spark.conf.set(k, v)
    # It never takes those of texts and instants from there.
    assert {"i", "l", "d"} <= refused, refused


def answers(frame, column):
    """Whether Spark answers, which must be right, or refuses to answer from footers."""
    try:
        got = asked_of_spark(frame, column)
    except Exception as e:
        assert "aggregatePushdown to false" in str(e)
        return False
    assert got == answer(column), column
    return True
