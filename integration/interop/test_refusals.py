"""What cannot be read or written right is refused, by name, and harms nothing else."""

import errno
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import bylog
import digest
import mount
import oracle
import readers
import test_tables
from mount import versions

SCHEMA = [("id", "long"), ("name", "string")]
ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"n{i}" for i in range(10)]})


def plain(table, **more):
    """A table of one file of ten rows, at version 1."""
    t = bylog.Table(table, SCHEMA, **more)
    pq.write_table(ROWS, table / "a.parquet")
    t.add("a.parquet")
    return t


def reasons(m):
    return json.dumps(m.failures()) + (m / ".delta" / "status.json").read_text()


PROTOCOLS = {
    "reader version 5": ({"minReaderVersion": 5, "minWriterVersion": 7}, "reader version 5"),
    "version 99": ({"minReaderVersion": 99, "minWriterVersion": 99}, "reader version 99"),
    "an unknown reader feature": (bylog.features("blahabl"), "blahabl"),
    "two unknown features": (bylog.features("deletionVectors", "frobnicate", "blahabl"), "frobnicate"),
    "catalogManaged": (bylog.features("catalogManaged", writer=("inCommitTimestamp",)), "catalogManaged"),
    "catalogOwned-preview": (bylog.features("catalogOwned-preview"), "catalogOwned-preview"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_unknown_reader_features_are_refused_by_name_and_older_versions_stay(mounted, table, protocol):
    needed, name = PROTOCOLS[protocol]
    plain(table).commit({"protocol": needed})
    m = mounted(table)
    with pytest.raises(OSError) as e:
        test_tables.read_all(m / "@v2")
    assert e.value.errno == errno.ENOTSUP
    assert name in reasons(m)
    assert pq.read_table(m / "@v1" / "a.parquet").num_rows == 10
    with pytest.raises(OSError):
        (m.current / "b.parquet").write_bytes(b"x")
    assert versions(table) == [0, 1, 2]


@pytest.mark.parametrize("feature", ["blahabl", "collations-preview", "somethingFromTheFuture"])
def test_unknown_writer_features_are_readable_and_writes_refused_by_name(mounted, table, feature):
    plain(table, protocol={"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", feature]})
    m = mounted(table)
    assert pq.read_table(m / "latest" / "a.parquet").num_rows == 10
    mount.fails(lambda: pq.write_table(ROWS, m.current / "b.parquet"))
    assert versions(table) == [0, 1]
    assert feature in reasons(m)


WITH_FILE = "delta-spark/table-with-dv-large"


def vectors(table, version):
    """The deletion vectors in files of a commit: (name of the data file, its file and offset)."""
    out = []
    for file in oracle.expected(oracle.named(WITH_FILE))["versions"][version]["files"]:
        if isinstance(file, dict) and file.get("dv") and file["dv"]["storageType"] == "u":
            out.append((file["decoded"], file["dv"]["file"], int(file["dv"]["id"].rpartition("@")[2])))
    return out


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]


def flip_bitmap(data, at):
    return flipped(data, at + 4 + 8)  # after the size, within the bitmap


def flip_checksum(data, at):
    size = int.from_bytes(data[at : at + 4], "big")
    return flipped(data, at + 4 + size)


HARM = {
    "a flipped bit in the bitmap": flip_bitmap,
    "a flipped bit in the checksum": flip_checksum,
    "another size": lambda data, at: flipped(data, at + 3),
    "a huge size": lambda data, at: flipped(data, at),
    "cut off": lambda data, at: data[: at + 10],
    "empty": lambda data, at: b"",
    "missing": None,
}


@pytest.mark.parametrize("harm", HARM)
def test_damaged_deletion_vector_refuses_its_file_and_no_other(duck, mounted, tmp_path, harm):
    row = oracle.named(WITH_FILE)
    table = oracle.copy(row, tmp_path / "table")
    latest = oracle.expected(row)["versions"][-1]
    found = vectors(table, -1)
    assert found
    name, file, offset = found[0]
    (place,) = [p for p in table.rglob(file)]
    if HARM[harm] is None:
        place.unlink()
    else:
        place.write_bytes(HARM[harm](place.read_bytes(), offset))
    m = mounted(table)
    snapshot = m / f"@v{latest['version']}"
    files = oracle.walk(snapshot)
    assert len(files) == latest["numFiles"]
    refused = []
    for f in files:
        try:
            pq.read_table(snapshot / f)
        except OSError:
            refused.append(os.path.basename(f))
    # Others of the same file of vectors may be harmed too; none without one.
    assert os.path.basename(name) in refused
    assert set(refused) <= {os.path.basename(n) for n, other, _ in found if other == file}
    told = [f for f in m.failures() if os.path.basename(name) in json.dumps(f)]
    assert told and any("deletion vector" in json.dumps(f).lower() for f in told), m.failures()
    with pytest.raises(OSError) as e:
        (snapshot / [f for f in files if f.endswith(os.path.basename(name))][0]).read_bytes()
    assert e.value.errno == errno.EIO


@pytest.mark.parametrize("lie", ["cardinality", "sizeInBytes", "offset", "pathOrInlineDv", "storageType"])
def test_deletion_vector_that_contradicts_the_log_refuses_its_file(mounted, table, lie):
    t = plain(table, protocol=bylog.features("deletionVectors"))
    action = t.action("a.parquet", deleted=[1, 2, 3])
    vector = action["add"]["deletionVector"]
    lies = {"cardinality": 4, "sizeInBytes": vector["sizeInBytes"] + 4, "offset": 4, "storageType": "x"}
    lies["pathOrInlineDv"] = vector["pathOrInlineDv"][:-5] + "00000"
    action["add"]["deletionVector"] = vector | {lie: lies[lie]}
    if lie == "pathOrInlineDv" or lie == "offset":
        action["add"]["deletionVector"]["cardinality"] = 2
    t.commit({"remove": {"path": "a.parquet", "deletionTimestamp": 1, "dataChange": True}}, action)
    m = mounted(table)
    with pytest.raises(OSError):
        test_tables.read_all(m / "@v2")
    assert m.failures()
    assert pq.read_table(m / "@v1" / "a.parquet").num_rows == 10


def test_positions_beyond_the_rows_of_the_file_refuse_it(mounted, table):
    t = plain(table, protocol=bylog.features("deletionVectors"))
    t.delete("a.parquet", [3, 10])
    m = mounted(table)
    with pytest.raises(OSError) as e:
        test_tables.read_all(m / "@v2")
    assert e.value.errno == errno.EIO
    assert m.failures()


def test_deleted_rows_are_invisible_to_every_reader_of_parquet(duck, mounted, table):
    """Also when all rows go, or those of a whole file but one."""
    t = plain(table, protocol=bylog.features("deletionVectors"))
    t.delete("a.parquet", [0, 9, 4])
    m = mounted(table, "--list-versions", "all")
    for version, left in ((1, range(10)), (2, [1, 2, 3, 5, 6, 7, 8])):
        for read in readers.ALL.values():
            source = read(duck, [str(m / f"@v{version}" / "a.parquet")])
            assert duck.sql(f"SELECT id, name FROM {source} ORDER BY id").fetchall() == [(i, f"n{i}") for i in left]
    for deleted in (range(10), range(9)):
        t = plain(table.parent / f"but {10 - len(deleted)}", protocol=bylog.features("deletionVectors"))
        t.delete("a.parquet", deleted)
        m = mounted(t.path)
        for read in readers.ALL.values():
            source = read(duck, [str(m / "@v2" / "a.parquet")])
            assert duck.sql(f"SELECT id FROM {source}").fetchall() == [(i,) for i in range(10) if i not in deleted]


MOMENT = 1_714_566_600_123_456
TIMES = {
    "microseconds in UTC": (pa.array([MOMENT], pa.timestamp("us", "UTC")), {}, True),
    "INT96": (pa.array([MOMENT], pa.timestamp("us", "UTC")), {"use_deprecated_int96_timestamps": True}, True),
    "microseconds without a zone": (pa.array([MOMENT], pa.timestamp("us")), {}, False),
    "nanoseconds": (pa.array([MOMENT * 1000 + 7], pa.timestamp("ns", "UTC")), {}, False),
    "nanoseconds without a zone": (pa.array([MOMENT * 1000], pa.timestamp("ns")), {}, False),
    "text": (pa.array(["2024-05-01 12:30:00"]), {}, False),
    "a date": (pa.array([19000], pa.date32()), {}, False),
}


@pytest.mark.parametrize("kind", TIMES)
def test_timestamps_that_are_instants_append_and_others_are_refused_by_column(duck, mounted, table, kind):
    """Nothing upgrades the table to times without zone, or keeps what no engine reads alike."""
    values, options, fits = TIMES[kind]
    bylog.Table(table, [("at", "timestamp")])
    m = mounted(table)
    write = lambda: pq.write_table(pa.table({"at": values}), m.current / "x.parquet", **options)  # noqa: E731
    if not fits:
        mount.fails(write)
        assert versions(table) == [0]
        told = [f for f in m.failures() if "x.parquet" in f["name"]]
        assert told and all("at" in json.dumps(f) and "timestamp" in json.dumps(f) for f in told), m.failures()
        return
    write()
    assert versions(table) == [0, 1]
    assert not [k for k, _ in mount.actions(table, 1) if k in ("protocol", "metaData")]
    for source in (f"read_parquet('{m / 'latest'}/*.parquet')", f"delta_scan('{table}')"):
        assert duck.sql(f"SELECT epoch_us(\"at\") FROM {source}").fetchall() == [(MOMENT,)]
    assert pa.table(DeltaTable(str(table)).to_pyarrow_table())["at"].cast(pa.int64()).to_pylist() == [MOMENT]


def mapped(name, physical, number, t="integer"):
    return {
        "name": name,
        "type": t,
        "nullable": True,
        "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical},
    }


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_found_by_their_physical_names_or_ids_never_by_their_logical_ones(duck, mounted, table, mode):
    """The physical name of each column is the logical name of another; one is
    missing in the file, and one is there under its logical name by chance."""
    t = bylog.Table(
        table,
        [],
        protocol={"minReaderVersion": 2, "minWriterVersion": 5},
        properties={"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "9"},
    )
    fields = [mapped("a", "b", 1), mapped("b", "c", 2), mapped("c", "a", 3), mapped("late", "col-late", 4), mapped("chance", "col-x", 5)]
    schema = {"type": "struct", "fields": fields}
    t.commit({"metaData": t.metadata | {"schemaString": json.dumps(schema)}})
    columns = [("a", 3), ("b", 1), ("c", 2), ("chance", 77)]
    by_id = pa.schema([pa.field(n, pa.int32(), metadata={"PARQUET:field_id": str(i)}) for n, i in columns])
    pq.write_table(pa.table([[30], [10], [20], [666]], schema=by_id), table / "f.parquet")
    t.add("f.parquet")
    m = mounted(table)
    for read in readers.ALL.values():
        source = read(duck, [str(m / "@v2" / "f.parquet")])
        assert [n for n, _ in digest.columns(duck, source)] == ["a", "b", "c", "late", "chance"]
        assert duck.sql(f"SELECT a, b, c, late, chance FROM {source}").fetchall() == [(10, 20, 30, None, None)]
