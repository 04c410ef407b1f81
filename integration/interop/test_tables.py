"""Every third-party table through mounts, against its oracle: which versions
there are, which files, which rows in which columns, and what must be refused."""

import errno
import json
import os
import random
import re

import pytest

import digest
import oracle
import readers
from mount import Mount
from oracle import expected, ids

READABLE = oracle.of_class("ok", "log-only", "template")
REFUSED = oracle.of_class("error", "unsupported")
EITHER = oracle.of_class("either")

# Versions before the one that must be refused that are there.
OLDER = {
    "delta-golden/versions-not-contiguous": [0],
    "delta-rs-err-logs/table_c": range(12),
    "delta-rs-err-logs/table_h": range(14),
    "delta-rs-err-logs/table_i": range(14),
    "delta-spark/table-with-dv-small-dv-missing": [0],
}

# How the refusal of class "unsupported" names the feature.
FEATURE = re.compile("catalog(Managed|Owned)")

# Types that no digest covers.
UNDIGESTED = re.compile(r'"(variant|geometry.*|geography.*)"')


class Checked:
    """What was compared with the oracle of one table; a line of the report."""

    def __init__(self, row, report):
        self.row, self.versions, self.files, self.read, self.lost = row, 0, 0, 0, 0
        self.digests = {name: 0 for name in readers.ALL}
        self.result = "FAILED"
        report.append(self)

    def __str__(self):
        digests = " ".join(f"{n:>7}" for n in self.digests.values())
        return f"{ids(self.row):78} {self.row['class']:11} {self.versions:8} {self.files:6} {self.read:6} {self.lost:5} {digests} {self.result}"


@pytest.fixture(scope="session")
def table_report(report):
    lines = report["third-party tables"] = []
    heads = " ".join(f"{n:>7}" for n in readers.ALL)
    lines.append(f"{'table':78} {'class':11} {'versions':>8} {'files':>6} {'read':>6} {'lost':>5} {heads} result")
    return lines


@pytest.fixture
def checked(request, table_report):
    return Checked(request.getfixturevalue("row"), table_report)


def listed_versions(root):
    return sorted(int(n[2:]) for n in os.listdir(root) if n.startswith("@v"))


def schema_of(snapshot):
    return json.loads((snapshot / ".delta" / "schema.json").read_text())


def partitions(schema, columns):
    """The partition columns as the schema spells them."""
    names = {f["name"].lower(): f["name"] for f in schema["fields"]}
    return [names[c.lower()] for c in columns]


def check_names(version, files):
    assert len(files) == version["numFiles"]
    names = oracle.names(version)
    if names is None:
        return
    # Two files of one name in a directory are told apart by a hash of their paths.
    shown = [re.sub("~[0-9a-f]{8}", "", os.path.basename(f)) if len(set(names)) < len(names) else os.path.basename(f) for f in files]
    assert sorted(shown) == names


def check_bytes(snapshot, files, seen, checked):
    """Reads each file that was not seen yet: as many bytes as promised."""
    lost = 0
    for name in files:
        try:
            with open(snapshot / name, "rb") as f:
                promised = os.fstat(f.fileno())
                if promised.st_ino in seen:
                    continue
                data = f.read()
                f.seek(0)
                again = f.read(4)
        except OSError as e:
            # EIO: the file is gone; EACCES: its path leads out of the table.
            assert e.errno in (errno.EIO, errno.EACCES), f"{name}: {e}"
            lost += 1
            continue
        seen.add(promised.st_ino)
        assert len(data) == promised.st_size == os.stat(snapshot / name).st_size, name
        assert data[:4] == again == data[-4:] == b"PAR1", name
        checked.read += 1
    return lost


def check_rows(duck, snapshot, version, files, partition_columns, read):
    """Compares the rows of a snapshot with the oracle's, and the columns of its
    files with the table's; partition columns are in its directories, or in its
    files if none are given. Returns whether there was a digest."""
    schema = schema_of(snapshot)
    columns = partitions(schema, partition_columns)
    content = version.get("content") or {}
    if not files or oracle.missing(version):
        assert oracle.missing(version) or content.get("rows", 0) == 0
        return 0
    listed = [(str(snapshot / f), oracle.partition_values(f, columns) if columns else {}) for f in files]
    source = read(duck, [path for path, _ in listed])
    check_columns(duck, source, schema, columns)
    if "digest" in content:
        found = digest.digest(duck, source, schema, columns, listed)
        assert found == (content["rows"], content["digest"])
        return 1
    assert UNDIGESTED.search(json.dumps(schema)), "the oracle has no digest"
    assert duck.sql(f"SELECT count(*) FROM {source}").fetchall() == [(version["numRows"],)]
    return 0


def check_columns(duck, source, schema, without):
    found, wanted = digest.columns(duck, source), digest.types(duck, schema, without)
    assert [n for n, _ in found] == [n for n, _ in wanted]
    if re.search('"void"', json.dumps(schema)) or UNDIGESTED.search(json.dumps(schema)):
        return
    assert [comparable(t) for _, t in found] == [comparable(t) for _, t in wanted]


def comparable(t):
    """A type as every reader has it: Polars reads a map as a list of entries."""
    match t.id:
        case "map":
            (_, key), (_, value) = t.children
            return ["list", ["struct", ("key", comparable(key)), ("value", comparable(value))]]
        case "list":
            return ["list", comparable(t.children[0][1])]
        case "struct":
            return ["struct", *((n, comparable(c)) for n, c in t.children)]
    return str(t)


def sample(row, versions, full, n=2):
    """The newest version and some older ones, the same in each run."""
    if full or len(versions) <= n + 1:
        return set(versions)
    return {versions[-1], *random.Random(ids(row)).sample(versions[:-1], n)}


def check_version(duck, root, filled, version, seen, checked, names):
    """A version of a table, read by the readers of these names."""
    snapshot, whole = root / f"@v{version['version']}", filled / f"@v{version['version']}"
    files = oracle.walk(snapshot)
    check_names(version, files)
    checked.versions += 1
    checked.files += len(files)
    for view, which in ((snapshot, "as they are"), (whole, "filled")):
        lost = check_bytes(view, files, seen[which], checked)
        assert lost == oracle.missing(version)
    checked.lost += lost
    for name in names:
        if name == "Polars" and UNDIGESTED.search(json.dumps(schema_of(snapshot))):
            continue  # it refuses whole files for the annotation of a variant
        done = check_rows(duck, snapshot, version, files, version["partitionColumns"], readers.ALL[name])
        assert done == check_rows(duck, whole, version, files, [], readers.ALL[name])
        checked.digests[name] += done
    if checked.lost and version["version"] == expected(checked.row)["latestVersion"]:
        assert oracle.missing(version) == 0 or reasons(root), "lost files without a reason in errors.jsonl"


def reasons(root):
    return (root / ".delta" / "errors.jsonl").read_text()


def check_readable(duck, root, filled, source, checked, full):
    """Every version of a readable table."""
    row = checked.row
    want = expected(row)
    assert listed_versions(root) == want["reconstructableVersions"]
    assert os.readlink(root / "latest") == f"@v{want['latestVersion']}"
    told = [v for v in want["versions"] if v["reconstructable"] and "numFiles" in v]
    all_readers = sample(row, [v["version"] for v in told], full)
    seen = {"as they are": set(), "filled": set()}
    for version in want["versions"]:
        number = version["version"]
        try:
            if not version["reconstructable"]:
                with pytest.raises(FileNotFoundError):
                    os.stat(root / f"@v{number}")
            elif version in told:
                check_version(duck, root, filled, version, seen, checked, readers.ALL if number in all_readers else ["DuckDB"])
        except Exception as e:
            e.add_note(f"{root}: version {number}")
            raise
    if want["schema"]:
        assert schema_of(root / f"@v{want['latestVersion']}") == want["schema"]
    check_times(root, row, source)


def check_times(root, row, source):
    """The links named after commit times, and travel to each of them."""
    want = expected(row)
    times = {}
    last = None
    known_times = oracle.commit_times(row)
    for name in sorted(os.listdir(source / "_delta_log")):
        digits, _, rest = name.partition(".")
        if rest != "json" or len(digits) != 20 or not digits.isdigit():
            continue
        when = known_times.get(int(digits))
        if when is None:
            return  # the oracle does not know every commit time
        if last is not None and when <= last and not oracle.in_commit_timestamps(row):
            when = last + 1
        times[int(digits)] = last = when
    links = {}
    for name in os.listdir(root):
        if name.startswith("@") and not name.startswith("@v"):
            links[name] = os.readlink(root / name)
    known = [v for v in want["reconstructableVersions"] if v in times]
    if oracle.in_commit_timestamps(row):
        # Which of two clocks rules an old version is tested by hand-made tables.
        assert set(links.values()) <= {f"@v{v}" for v in want["reconstructableVersions"]}
        return
    assert links == {oracle.spell(times[v]): f"@v{v}" for v in known}
    for v in known:
        assert os.readlink(root / oracle.spell(times[v])) == f"@v{v}"


def read_all(snapshot):
    """Lists a snapshot and reads its files; an OSError is the refusal."""
    files = oracle.walk(snapshot)
    for name in files:
        with open(snapshot / name, "rb") as f:
            f.read()
    return files


def check_refused(duck, root, filled, source, checked):
    """The newest version is refused with a reason; what is there before is right."""
    row = checked.row
    want = expected(row)
    if not (source / "_delta_log").is_dir() or not want.get("versions"):
        # Not a table at all: the lake does not show it as one.
        assert not os.path.lexists(root / "current")
        return
    seen = {"as they are": set(), "filled": set()}
    for version in want["versions"][:-1]:
        if version["version"] in OLDER.get(ids(row), ()):
            check_version(duck, root, filled, version, seen, checked, readers.ALL)
    with pytest.raises(OSError) as e:
        read_all(root / f"@v{want['versions'][-1]['version']}")
    assert e.value.errno in (errno.ENOTSUP, errno.EIO, errno.ENOENT)
    if e.value.errno == errno.ENOENT:
        # It cannot be rebuilt, so there is no such name; current/ says why.
        with pytest.raises(OSError) as e:
            os.listdir(root / "current")
        assert e.value.errno == errno.EIO
    assert reasons(root), "refused without a reason in errors.jsonl"
    if row["class"] == "unsupported":
        assert e.value.errno == errno.ENOTSUP
        assert FEATURE.search(reasons(root))


@pytest.mark.parametrize("row", READABLE, ids=ids)
def test_table_in_a_lake_shows_what_its_oracle_says(duck, lake, lake_mount, filled_mount, checked, row, full):
    check_readable(duck, lake_mount / ids(row), filled_mount / ids(row), lake / ids(row), checked, full)
    checked.result = "right"


@pytest.mark.parametrize("row", REFUSED, ids=ids)
def test_table_that_cannot_be_read_is_refused_with_a_reason(duck, lake, lake_mount, filled_mount, checked, row):
    check_refused(duck, lake_mount / ids(row), filled_mount / ids(row), lake / ids(row), checked)
    checked.result = "refused"


@pytest.mark.parametrize("row", EITHER, ids=ids)
def test_doubtful_table_is_refused_with_a_reason_or_right(duck, lake, lake_mount, filled_mount, checked, row, full):
    """Logs that break the protocol: there is one right reading, or none."""
    root = lake_mount / ids(row)
    try:
        read_all(root / f"@v{expected(row)['latestVersion']}")
    except OSError as e:
        assert e.errno in (errno.ENOTSUP, errno.EIO, errno.ENOENT)
        refused = True
    else:
        refused = False
    if refused:
        with pytest.raises(OSError):
            os.listdir(root / "current")
        assert reasons(root)
        checked.result = "refused"
        return
    check_readable(duck, root, filled_mount / ids(row), lake / ids(row), checked, full)
    checked.result = "right"


@pytest.mark.parametrize("row", READABLE, ids=ids)
def test_table_alone_shows_what_its_oracle_says(duck, lake, mounted, row):
    source = lake / ids(row)
    want = expected(row)
    m = mounted(source, "--read-only", "--list-versions", "all")
    assert listed_versions(m.dir) == want["reconstructableVersions"]
    (latest,) = [v for v in want["versions"] if v["version"] == want["latestVersion"]]
    snapshot = m / f"@v{latest['version']}"
    files = oracle.walk(snapshot)
    check_names(latest, files)
    check_rows(duck, snapshot, latest, files, latest["partitionColumns"], readers.duckdb)
    check_times(m.dir, row, source)


def test_raw_view_shows_every_file_as_it_lies(lake):
    """With --view raw each name, size and byte is that of the table's directory."""
    compared = 0
    with Mount(lake, "--read-only", "--view", "raw") as m:
        for row in READABLE:
            want = expected(row)
            latest = want["versions"][-1]
            snapshot = m / ids(row) / f"@v{latest['version']}"
            files = oracle.walk(snapshot)
            check_names(latest, files)
            lies = [lake / ids(row) / file["decoded"] for file in latest["files"]]
            if any(not p.is_file() for p in lies):
                continue
            assert sorted((snapshot / f).read_bytes() for f in files) == sorted(p.read_bytes() for p in lies), ids(row)
            assert all(os.path.getsize(snapshot / f) == len((snapshot / f).read_bytes()) for f in files)
            compared += len(files)
    assert compared > 500, compared


def test_broken_tables_in_a_lake_harm_only_themselves(lake, lake_mount):
    """Each readable table is there although others in the lake are broken."""
    assert len(READABLE) + len(REFUSED) + len(EITHER) == len(oracle.index()) == 217
    for row in READABLE:
        assert (lake_mount / ids(row) / "latest").is_symlink()
