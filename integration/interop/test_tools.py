"""The tools that everybody has, on snapshots of a table with deletion vectors,
renamed columns and partitions."""

import json
import os
import re
import subprocess
import tarfile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bylog
import digest
import oracle
import readers

N = 1000
PARTS = {"a": "x", "b": "y", "c": "x"}
DELETED = [0, 3, 500, 999]
LATER = 1_700_086_400_000


def field(name, physical, number, t):
    ids = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": t, "nullable": True, "metadata": ids}


def rows(first):
    ids = range(first, first + N)
    return pa.table({"col-1": pa.array(ids, pa.int64()), "col-2": [None if i % 7 == 0 else f'say "{i}", ok\n' for i in ids]})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Versions: 2 has files a and b, 3 deletes rows of a, 4 removes b and adds c."""
    path = tmp_path_factory.mktemp("tools") / "table"
    protocol = bylog.features("deletionVectors", "columnMapping")
    t = bylog.Table(path, [], protocol=protocol, properties={"delta.columnMapping.mode": "name"})
    fields = [field("id", "col-1", 1, "long"), field("said", "col-2", 2, "string"), field("part", "col-3", 3, "string")]
    t.metadata |= {"schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": ["part"]}
    t.commit({"metaData": t.metadata})
    for i, name in enumerate(PARTS):
        pq.write_table(rows(i * N), path / f"{name}.parquet")
    values = {name: {"col-3": part} for name, part in PARTS.items()}
    t.commit(t.action("a.parquet", values["a"]), t.action("b.parquet", values["b"]))
    t.delete("a.parquet", DELETED, values["a"])
    t.commit(t.remove("b.parquet"), t.action("c.parquet", values["c"], modified=LATER))
    return path


@pytest.fixture
def m(mounted, made):
    return mounted(made, "--list-versions", "all")


A, B, C = "part=x/a.parquet", "part=y/b.parquet", "part=x/c.parquet"
LEFT = {2: 2 * N, 3: 2 * N - len(DELETED), 4: 2 * N - len(DELETED)}


def run(m, command, status=0):
    """The output of a shell command in the mount."""
    out = subprocess.run(["bash", "-c", command], cwd=m.dir, capture_output=True, text=True, timeout=120)
    assert out.returncode == status, (out.returncode, out.stdout[-2000:], out.stderr[-2000:])
    assert status or not out.stderr, out.stderr
    return out.stdout


def content(directory):
    """The digest of the rows of a hive-partitioned directory by DuckDB alone."""
    with duckdb.connect() as c:
        c.execute("SET enable_external_file_cache = false")
        return c.execute(
            "SELECT count(*), sum(hash(id, said, part)), sum(id) FROM read_parquet(?, hive_partitioning=true)", [f"{directory}/**/*.parquet"]
        ).fetchone()


def test_diff_of_two_versions_names_the_files_that_changed(m):
    assert run(m, "diff -r @v2 @v3", 1) == f"Binary files @v2/{A} and @v3/{A} differ\n"
    assert run(m, "diff -r @v3 @v4", 1).splitlines() == ["Only in @v4/part=x: c.parquet", "Only in @v3: part=y"]
    assert run(m, "diff -r @v4 current") == run(m, "diff -r @v4 latest/") == ""


def test_diff_of_text_views_shows_the_rows_that_changed(m):
    lines = run(m, "diff @v2.jsonl @v3.jsonl", 1).splitlines()
    gone = [json.loads(line[2:]) for line in lines if line.startswith("<")]
    assert sorted(r["id"] for r in gone) == DELETED and all(r["part"] == "x" for r in gone)
    assert not [line for line in lines if line.startswith(">")]
    lines = run(m, "diff @v2.csv @v3.csv", 1)
    assert sorted(int(i) for i in re.findall(r"^< (\d+),", lines, re.M)) == DELETED and not re.search("^>", lines, re.M)
    assert run(m, "diff @v4.csv current.csv") == ""


def test_du_counts_what_versions_share_once(m):
    def of(*versions):
        """Sizes of the distinct inodes below versions."""
        sizes = {}
        for version in versions:
            for directory, _, names in os.walk(m / version):
                for path in [directory, *(os.path.join(directory, n) for n in names)]:
                    st = os.stat(path)
                    sizes[st.st_ino] = st.st_size
        return sum(sizes.values())

    each = dict(reversed(line.split("\t")) for line in run(m, "du -sb @v2 @v3 @v4").splitlines())
    assert sum(map(int, each.values())) == of("@v2", "@v3", "@v4") < of("@v2") + of("@v3") + of("@v4")
    assert {line.split("\t")[1] for line in run(m, "du -sh @v*").splitlines()} == {f"@v{v}" for v in range(5)}
    shared = os.stat(m / "@v2" / B), os.stat(m / "@v3" / B)
    assert shared[0].st_ino == shared[1].st_ino and os.stat(m / "@v2" / A).st_ino != os.stat(m / "@v3" / A).st_ino


COPIES = {
    "cp -r": 'cp -r @v3 "{out}"',
    "cp -a": 'cp -a @v3 "{out}"',
    "rsync -a": 'rsync -a @v3/ "{out}/"',
    "rsync --checksum --inplace": 'rsync -a --checksum --inplace @v3/ "{out}/"',
    "tar": 'mkdir "{out}" && tar cf - -C @v3 . | tar xf - -C "{out}"',
    "find and dd": 'cd @v3 && find . -type f | while read -r f; do mkdir -p "{out}/$(dirname "$f")" && dd if="$f" of="{out}/$f" bs=777 status=none; done',
}


@pytest.mark.parametrize("copy", COPIES)
def test_copy_of_a_version_is_a_plain_hive_table(m, tmp_path, copy):
    out = tmp_path / "out"
    run(m, COPIES[copy].format(out=out))
    assert oracle.walk(out) == [A, B]
    assert run(m, f"diff -r @v3 {out}") == ""
    assert content(out) == content(m / "@v3")
    assert content(out)[0] == LEFT[3]
    assert content(out)[2] == sum(range(2 * N)) - sum(DELETED)


def test_second_rsync_of_a_version_copies_nothing(m, tmp_path):
    run(m, f"rsync -a @v3/ {tmp_path}/out/")
    assert run(m, f"rsync -ai @v3/ {tmp_path}/out/") == run(m, f"rsync -aic @v3/ {tmp_path}/out/") == ""
    assert re.findall(r"^\S+ (\S+\.parquet)$", run(m, f"rsync -ai @v4/ {tmp_path}/out/"), re.M) == [C]


def test_tar_of_every_version_extracts_to_each(m, tmp_path):
    run(m, f"tar cf {tmp_path}/all.tar @v2 @v3 @v4")
    with tarfile.open(tmp_path / "all.tar") as t:
        t.extractall(tmp_path, filter="tar")
    for version in (2, 3, 4):
        assert content(tmp_path / f"@v{version}") == content(m / f"@v{version}")


def test_find_newer_goes_by_the_time_of_each_file(m, tmp_path):
    (tmp_path / "then").touch()
    os.utime(tmp_path / "then", (LATER / 1000 - 1, LATER / 1000 - 1))
    assert run(m, f"find @v4 -type f -newer {tmp_path}/then") == f"@v4/{C}\n"
    assert run(m, f"find @v3 -type f -newer {tmp_path}/then") == ""
    assert run(m, f"find @v4 -type f ! -newermt @{LATER // 1000 - 1}") == f"@v4/{A}\n"


def test_grep_counts_lines_of_the_texts_of_a_table(m):
    assert run(m, "grep -c . .delta/history.jsonl") == "5\n"
    assert [run(m, f"grep -c . @v{v}/.delta/files.jsonl") for v in (2, 3, 4)] == ["2\n", "2\n", "2\n"]
    assert run(m, "grep -c '\"deletedRows\":4' @v3/.delta/files.jsonl") == "1\n"
    assert run(m, "cat @v*/.delta/changes.jsonl | grep -c .") == f"{1 + 1 + 2 + 2}\n"
    files = {f["name"]: f for f in map(json.loads, run(m, "cat @v3/.delta/files.jsonl").splitlines())}
    for name in (A, B):
        st = os.stat(m / "@v3" / name)
        told = files.get(name) or files[os.path.basename(name)]
        assert told["size"] == st.st_size
        assert told["rows"] == N - (len(DELETED) if name == A else 0)


def test_text_views_stream_through_head_wc_grep_and_sort(m):
    assert run(m, "wc -l < @v3.jsonl") == f"{LEFT[3]}\n"
    assert run(m, "head -1 @v3.csv") == "id,said,part\n"
    assert len(run(m, "head -n 50 @v3.jsonl").splitlines()) == 50
    assert run(m, "grep -c '\"id\":1500,' @v3.jsonl") == "1\n"
    assert run(m, "grep -c '\"id\":500,' @v3.jsonl", 1) == "0\n"
    ids = [json.loads(line)["id"] for line in run(m, "sort @v3.jsonl").splitlines()]
    assert sorted(ids) == sorted(set(range(2 * N)) - set(DELETED))
    assert run(m, "wc -l < current.jsonl") == f"{LEFT[4]}\n"


@pytest.mark.parametrize("extension", ["csv", "jsonl"])
def test_text_views_read_back_as_the_rows_of_the_version(duck, m, tmp_path, extension):
    """Quotes, line breaks, nulls and empty strings survive; so do the columns' order and names."""
    run(m, f"cat @v3.{extension} > {tmp_path}/t.{extension}")
    reader = {"csv": "read_csv('{}', header=true)", "jsonl": "read_json('{}', format='newline_delimited')"}[extension]
    source = reader.format(tmp_path / f"t.{extension}")
    schema = {"fields": [{"name": n, "type": t} for n, t in (("id", "long"), ("said", "string"), ("part", "string"))]}
    files = [(str(m / "@v3" / f), oracle.partition_values(f, ["part"])) for f in (A, B)]
    wanted = digest.digest(duck, readers.duckdb(duck, [p for p, _ in files]), schema, ["part"], files)
    assert [n for n, _ in digest.columns(duck, source)] == ["id", "said", "part"]
    assert digest.digest(duck, source, schema) == wanted
