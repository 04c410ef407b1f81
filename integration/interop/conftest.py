import glob
import os
import pathlib
import sys

import duckdb
import pytest

sys.path.insert(0, os.path.dirname(__file__))

import mount  # noqa: E402
import oracle  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="run the long forms")


def pytest_sessionstart(session):
    if not os.access(mount.BINARY, os.X_OK):
        pytest.exit("DELTAFS_BIN must name the binary under test; scripts/interop sets it", 1)


REPORT = {}


@pytest.fixture(scope="session")
def report():
    """Lines to print at the end, by title."""
    return REPORT


def pytest_terminal_summary(terminalreporter):
    for title, lines in REPORT.items():
        terminalreporter.section(title)
        for line in lines:
            terminalreporter.line(str(line))


@pytest.fixture(scope="session")
def full(request):
    return request.config.getoption("--full")


@pytest.fixture
def mounted():
    """Mounts sources; every mount ends with the test."""
    made = []

    def start(source, *flags, **options):
        m = mount.Mount(source, *flags, **options)
        made.append(m)
        return m

    yield start
    errors = []
    for m in made:
        try:
            m.close()
        except AssertionError as e:
            errors.append(str(e))
    assert not errors, "\n".join(errors)


@pytest.fixture
def table(tmp_path):
    """A path for a table."""
    return tmp_path / "table"


@pytest.fixture(scope="session")
def duck():
    """A DuckDB connection with the delta extension."""
    import duckdb_extension_delta

    root = pathlib.Path(duckdb_extension_delta.__file__).parent
    (extension,) = root.glob(f"extensions/v{duckdb.__version__}/delta.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    # The cache keeps files open, and a mount in use does not end.
    connection.execute("SET enable_external_file_cache = false")
    return connection


@pytest.fixture(scope="session")
def spark():
    """A local Spark with Delta Lake."""
    from pyspark.sql import SparkSession

    jars = glob.glob(os.path.join(os.environ["DELTAFS_SPARK_JARS"], "*.jar"))
    assert jars, "DELTAFS_SPARK_JARS names no jars; scripts/interop sets it"
    session = (
        SparkSession.builder.master("local[2]")
        .appName("deltafs-interop")
        .config("spark.jars", ",".join(jars))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def lake(tmp_path_factory):
    """A copy of the third-party tables."""
    root = tmp_path_factory.mktemp("lake")
    for row in oracle.index():
        oracle.copy(row, root / oracle.ids(row))
    return root


@pytest.fixture(scope="session")
def lake_mount(lake):
    with mount.Mount(lake, "--read-only", "--list-versions", "all") as m:
        yield m


@pytest.fixture(scope="session")
def filled_mount(lake):
    with mount.Mount(lake, "--read-only", "--list-versions", "all", "--fill-partitions") as m:
        yield m


@pytest.fixture(autouse=True, scope="session")
def closed_files():
    """DuckDB's cache keeps files open, and a mount in use does not end."""
    duckdb.execute("SET enable_external_file_cache = false")
