"""The data-frame libraries and DuckDB writing Parquet into current/: one commit
a file, the rows read back, nothing left behind; and a file that is refused makes
the tool itself fail."""

import os

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from mount import fails, leftovers, versions

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
DATA = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]}, schema=SCHEMA)
MORE = pa.table({"id": [4, 5], "name": ["d", "e"]}, schema=SCHEMA)
# A number that is not one: does not fit, and nothing may convert it.
WRONG = pa.table({"id": ["one", "two"], "name": ["a", "b"]})


def duckdb_copy(table, path):
    with duckdb.connect() as c:
        c.register("t", table)
        c.execute(f"COPY t TO '{path}' (FORMAT parquet)")


def pandas_pyarrow(table, path):
    table.to_pandas().to_parquet(path, engine="pyarrow", index=False)


def polars_write(table, path):
    polars.from_arrow(table).write_parquet(path)


def polars_sink(table, path):
    polars.from_arrow(table).lazy().sink_parquet(path)


def pyarrow_write_table(table, path):
    pq.write_table(table, path)


def pyarrow_handle(table, path):
    with open(path, "wb") as f:
        pq.write_table(table, f)


WRITERS = [duckdb_copy, pandas_pyarrow, polars_write, polars_sink, pyarrow_write_table, pyarrow_handle]


def names(f):
    return f.__name__


def ids(table, version=None):
    return sorted(DeltaTable(str(table), version=version).to_pyarrow_table()["id"].to_pylist())


@pytest.fixture
def live(mounted, table):
    DeltaTable.create(str(table), schema=SCHEMA)
    return mounted(table)


@pytest.mark.parametrize("write", WRITERS, ids=names)
def test_new_file_is_one_commit(live, table, write):
    write(DATA, str(live.current / "x.parquet"))
    assert versions(table) == [0, 1]
    assert live.latest() == 1
    assert os.listdir(live.current) == ["x.parquet"]
    assert ids(table) == [1, 2, 3]
    assert duckdb.sql(f"SELECT count(*), count(name) FROM '{live.current}/*.parquet'").fetchall() == [(3, 2)]
    live.close()
    assert leftovers(table) == []


@pytest.mark.parametrize("write", WRITERS, ids=names)
def test_existing_file_is_replaced_in_one_commit(live, table, write):
    write(DATA, str(live.current / "x.parquet"))
    write(MORE, str(live.current / "x.parquet"))
    assert versions(table) == [0, 1, 2]
    assert (ids(table, 1), ids(table, 2)) == ([1, 2, 3], [4, 5])
    assert duckdb.sql(f"SELECT sum(id) FROM '{live / '@v1'}/*.parquet'").fetchall() == [(6,)]
    assert duckdb.sql(f"SELECT sum(id) FROM '{live.current}/*.parquet'").fetchall() == [(9,)]
    live.close()
    assert leftovers(table) == []


@pytest.mark.parametrize("write", WRITERS, ids=names)
def test_refused_file_fails_the_tool(live, table, write):
    fails(lambda: write(WRONG, str(live.current / "bad.parquet")))
    assert versions(table) == [0]
    reasons = live.failures()
    assert any("bad.parquet" in f["name"] and "id" in f["reason"] for f in reasons), reasons
    assert os.listdir(live.current) == []
    kept = os.listdir(live / ".stage" / "rejected")
    assert any("bad.parquet" in k for k in kept), kept


@pytest.mark.parametrize("write", WRITERS, ids=names)
def test_refused_replacement_keeps_the_old_file(live, table, write):
    write(DATA, str(live.current / "x.parquet"))
    fails(lambda: write(WRONG, str(live.current / "x.parquet")))
    assert duckdb.sql(f"SELECT sum(id) FROM '{live / '@v1'}/x.parquet'").fetchall() == [(6,)]
    assert versions(table) == [0, 1]
    assert duckdb.sql(f"SELECT sum(id) FROM '{live.current}/x.parquet'").fetchall() == [(6,)]


def test_pyarrow_dataset_of_one_file_is_one_commit(live, table):
    pyarrow.dataset.write_dataset(DATA, live.current, format="parquet", existing_data_behavior="overwrite_or_ignore")
    assert versions(table) == [0, 1]
    assert ids(table) == [1, 2, 3]


def hive(mounted, table):
    schema = SCHEMA.append(pa.field("day", pa.string()))
    DeltaTable.create(str(table), schema=schema, partition_by=["day"])
    days = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"], "day": ["mon", "tue", "tue"]}, schema=schema)
    return mounted(table), days


def days_of(table):
    return sorted((r["id"], r["day"]) for r in DeltaTable(str(table)).to_pyarrow_table().to_pylist())


def test_pyarrow_hive_dataset_commits_each_file(mounted, table):
    m, days = hive(mounted, table)
    pyarrow.dataset.write_dataset(
        days,
        m.current,
        format="parquet",
        partitioning=["day"],
        partitioning_flavor="hive",
        existing_data_behavior="overwrite_or_ignore",
    )
    assert versions(table) in ([0, 1], [0, 1, 2])  # files closed at once may share a commit
    assert days_of(table) == [(1, "mon"), (2, "tue"), (3, "tue")]


def test_duckdb_hive_copy_commits_each_file(mounted, table):
    m, days = hive(mounted, table)
    with duckdb.connect() as c:
        c.register("t", days)
        c.execute(f"COPY t TO '{m.current}' (FORMAT parquet, PARTITION_BY (day), OVERWRITE_OR_IGNORE)")
    assert versions(table) in ([0, 1], [0, 1, 2])  # files closed at once may share a commit
    assert days_of(table) == [(1, "mon"), (2, "tue"), (3, "tue")]


def test_pandas_hive_dataset_commits_each_file(mounted, table):
    m, days = hive(mounted, table)
    days.to_pandas().to_parquet(
        m.current, engine="pyarrow", index=False, partition_cols=["day"], existing_data_behavior="overwrite_or_ignore"
    )
    assert versions(table) in ([0, 1], [0, 1, 2])  # files closed at once may share a commit
    assert days_of(table) == [(1, "mon"), (2, "tue"), (3, "tue")]


def test_reader_sees_a_name_anew_at_once(live):
    """pandas and Polars reading a name again get the new bytes."""
    path = str(live.current / "x.parquet")
    for n in range(5):
        pq.write_table(pa.table({"id": [n] * 3, "name": ["v"] * 3}, schema=SCHEMA), path)
        assert pandas.read_parquet(path)["id"].tolist() == [n] * 3
        assert polars.read_parquet(path)["id"].to_list() == [n] * 3
        assert live.latest() == n + 1
