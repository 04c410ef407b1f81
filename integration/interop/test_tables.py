"""Every third-party table through the mount, against its oracle: which versions
there are, which files with which sizes, which rows, and what must be refused."""

import csv
import errno
import functools
import json
import os
import pathlib
import shutil

import pytest

import digest
from mount import Mount

ROOT = pathlib.Path(os.environ["DELTAFS_TABLES"])

# Columns of INDEX.tsv for what a table needs of its reader, and how a refusal
# may name it.
FEATURES = {
    "DV": ("deletion vector", "deletionVectors"),
    "columnMapping": ("column mapping", "columnMapping"),
    "typeWidening": ("type widening", "typeWidening"),
    "v2ckpt": ("v2 checkpoint", "v2Checkpoint"),
    "variant": ("variant",),
}


def index():
    with open(ROOT / "INDEX.tsv") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def features(row):
    return [f for f in FEATURES if row[f]]


READABLE = [r for r in index() if r["class"] in ("ok", "log-only") and not features(r)]
OTHERS = [r for r in index() if r not in READABLE and r["class"] != "template"]


def ids(row):
    return f"{row['source']}/{row['table']}"


@functools.cache
def oracle(path):
    return json.loads((ROOT / path).read_text())


@pytest.fixture(scope="session")
def lake(tmp_path_factory):
    """A copy of the tables whose commit files have the times they were made with."""
    root = tmp_path_factory.mktemp("lake")
    for row in index():
        if row["class"] == "template":
            continue
        target = root / ids(row)
        shutil.copytree(ROOT / row["table_path"], target, symlinks=True)
        for version, when in commit_times(row).items():
            log = target / "_delta_log" / f"{version:020}.json"
            if log.exists():
                os.utime(log, ns=(when * 10**6, when * 10**6))
    return root


@pytest.fixture(scope="session")
def lake_mount(lake):
    with Mount(lake, "--read-only", "--list-versions", "all") as m:
        yield m


def commit_times(row):
    """Milliseconds since the epoch at which the log says each version was committed."""
    out = {}
    for v in oracle(row["oracle_json"]).get("versions", []):
        info = v.get("commitInfo") or {}
        when = info.get("inCommitTimestamp") or info.get("timestamp")
        if when is not None:
            out[v["version"]] = when
    return out


def listed_versions(root):
    return sorted(int(n[2:]) for n in os.listdir(root) if n.startswith("@v"))


def walk(root):
    """(path relative to root, size) of every file below root."""
    out = []
    for directory, _, names in os.walk(root, onerror=raise_it):
        for name in names:
            path = os.path.join(directory, name)
            out.append((os.path.relpath(path, root), os.stat(path).st_size))
    return sorted(out)


def raise_it(error):
    raise error


def partition_values(path, columns):
    """Partition values of a file by the directories it lies in, by column."""
    parts = [digest.partition_value(p) for p in path.split("/")[:-1]]
    assert [n for n, _ in parts] == columns, f"{path}: the table is partitioned by {columns}"
    return dict(parts)


def check_files(version, files):
    """Compares the listed files with the oracle's."""
    assert len(files) == version["numFiles"]
    wanted = version.get("files")
    if wanted is None:
        return
    by_name = sorted((os.path.basename(p), size) for p, size in files)
    if wanted and isinstance(wanted[0], dict):
        expected = sorted((os.path.basename(w["decoded"]), w["size"]) for w in wanted)
        on_disk = sorted((os.path.basename(w["decoded"]), w.get("diskSize", w["size"])) for w in wanted)
        assert by_name in (expected, on_disk)
    else:
        assert [n for n, _ in by_name] == sorted(os.path.basename(p if isinstance(p, str) else p[0]) for p in wanted)
        if not any(w.get("diskSize") for w in wanted if isinstance(w, dict)):
            assert sum(size for _, size in files) == version["sizeInBytes"]


def check_rows(duck, root, version, files):
    """Compares the rows read through the mount with the oracle's digest."""
    content = version.get("content") or {}
    if "digest" not in content:
        return 0
    schema = json.loads((root / ".delta" / "schema.json").read_text())
    columns = version["partitionColumns"]
    paths = [(str(root / p), partition_values(p, columns)) for p, _ in files]
    rows, found = digest.digest(duck, paths, schema, columns)
    assert rows == content["rows"]
    assert found == content["digest"]
    return 1


def check_table(duck, root, row, source):
    """Every version of a readable table."""
    expected = oracle(row["oracle_json"])
    assert listed_versions(root) == expected["reconstructableVersions"]
    assert os.readlink(root / "latest") == f"@v{expected['latestVersion']}"
    for version in expected["versions"]:
        snapshot = root / f"@v{version['version']}"
        if not version["reconstructable"]:
            with pytest.raises(FileNotFoundError):
                os.stat(snapshot)
            continue
        if "numFiles" not in version:
            continue
        try:
            files = walk(snapshot)
            check_files(version, files)
            if version["version"] == expected["latestVersion"] and expected["schema"]:
                assert json.loads((snapshot / ".delta" / "schema.json").read_text()) == expected["schema"]
            check_rows(duck, snapshot, version, files)
            check_lost(source, snapshot, version, files)
        except Exception as e:
            e.add_note(f"{snapshot}: version {version['version']}")
            raise
    check_times(root, row, source)


def check_lost(source, snapshot, version, files):
    """Files that storage has lost are listed, and opening one is an I/O error."""
    missing = version.get("missingFiles") or 0
    if isinstance(missing, list):
        missing = len(missing)
    if not missing:
        return
    lost = 0
    for path, _ in files:
        try:
            with open(snapshot / path, "rb") as f:
                f.read(1)
        except OSError as e:
            # EIO: the file is gone; EACCES: its path leads out of the table.
            assert e.errno in (errno.EIO, errno.EACCES), f"{path}: {e}"
            lost += 1
    assert lost == missing


def check_times(root, row, source):
    """The links named after commit times, and travel to each of them."""
    expected = oracle(row["oracle_json"])
    times = {}
    last = None
    for name in sorted(os.listdir(source / "_delta_log")):
        digits, _, rest = name.partition(".")
        if rest != "json" or len(digits) != 20 or not digits.isdigit():
            continue
        when = commit_times(row).get(int(digits))
        if when is None:
            return  # the oracle does not know every commit time
        if last is not None and when <= last and not in_commit_timestamps(expected):
            when = last + 1
        times[int(digits)] = last = when
    links = {}
    for name in os.listdir(root):
        if name.startswith("@") and not name.startswith("@v"):
            links[name] = os.readlink(root / name)
    known = [v for v in expected["reconstructableVersions"] if v in times]
    if in_commit_timestamps(expected):
        # Which of two clocks rules an old version is tested by hand-made tables.
        assert set(links.values()) <= {f"@v{v}" for v in expected["reconstructableVersions"]}
        return
    assert links == {spell(times[v]): f"@v{v}" for v in known}
    for v in known:
        assert os.readlink(root / spell(times[v])) == f"@v{v}"


def in_commit_timestamps(expected):
    return (expected["metadata"]["configuration"] or {}).get("delta.enableInCommitTimestamps") == "true"


def spell(milliseconds):
    """The listed spelling of a commit time: UTC, no colons."""
    import datetime

    when = datetime.datetime.fromtimestamp(milliseconds // 1000, datetime.timezone.utc)
    return when.strftime("@%Y-%m-%dT%H-%M-%S") + f".{milliseconds % 1000:03}Z"


@pytest.mark.parametrize("row", READABLE, ids=ids)
def test_table_alone_shows_what_its_oracle_says(duck, lake, mounted, row):
    source = lake / ids(row)
    m = mounted(source, "--read-only", "--list-versions", "all")
    check_table(duck, m.dir, row, source)


@pytest.mark.parametrize("row", READABLE, ids=ids)
def test_table_in_a_lake_shows_what_its_oracle_says(duck, lake, lake_mount, row):
    check_table(duck, lake_mount / ids(row), row, lake / ids(row))


@pytest.mark.parametrize("row", OTHERS, ids=ids)
def test_other_table_is_refused_by_name_or_right(duck, lake, lake_mount, row):
    """Never wrong rows: each version is refused with a reason, or as the oracle says."""
    root = lake_mount / ids(row)
    expected = oracle(row["oracle_json"])
    if not (lake / ids(row) / "_delta_log").is_dir() or not expected.get("versions"):
        # Not a table at all: the lake does not show it as one.
        assert not os.path.lexists(root / "current")
        return
    latest = expected["versions"][-1]["version"]
    refused_latest = None
    for version in expected["versions"]:
        snapshot = root / f"@v{version['version']}"
        try:
            files = walk(snapshot)
        except OSError as e:
            assert e.errno in (errno.ENOTSUP, errno.EIO, errno.ENOENT), e
            if version["version"] == latest:
                refused_latest = e
            continue
        assert row["class"] not in ("error", "unsupported") or version["version"] != latest, "must be refused"
        if "numFiles" in version:
            # A size may be that of the file as it is served.
            assert len(files) == version["numFiles"]
            columns = version.get("partitionColumns", [])
            if "digest" in (version.get("content") or {}):
                schema = json.loads((snapshot / ".delta" / "schema.json").read_text())
                paths = [(str(snapshot / p), partition_values(p, columns)) for p, _ in files]
                assert digest.digest(duck, paths, schema, columns) == (
                    version["content"]["rows"],
                    version["content"]["digest"],
                )
    if refused_latest is None:
        return
    if refused_latest.errno == errno.ENOENT:
        # It cannot be rebuilt, so there is no such name; current/ says why.
        with pytest.raises(OSError) as e:
            os.listdir(root / "current")
        assert e.value.errno == errno.EIO
    reasons = "\n".join(json.dumps(f) for f in lake_mount.failures(ids(row)))
    assert reasons, "refused without a reason in errors.jsonl"
    if row["class"] == "ok":
        names = [n.lower() for f in features(row) for n in FEATURES[f]]
        assert any(n in reasons.lower() for n in names), reasons
        assert refused_latest.errno == errno.ENOTSUP


def test_broken_tables_in_a_lake_harm_only_themselves(lake, lake_mount):
    """Each readable table is there although others in the lake are broken."""
    assert len(OTHERS) > 20
    for row in READABLE:
        assert (lake_mount / ids(row) / "latest").is_symlink()
