"""list_spark.py TABLE VERSION DATE: the files of a partition, by Spark."""

import glob
import os
import sys

import peer
from pyspark.sql import SparkSession

table, version, date = sys.argv[1], int(sys.argv[2]), sys.argv[3]
spark = (
    SparkSession.builder.master("local[*]")
    .config("spark.jars", ",".join(glob.glob(os.path.join(os.environ["DELTAFS_SPARK_JARS"], "*.jar"))))
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.driver.memory", "4g")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
start = peer.clock()
reader = spark.read.format("delta")
if version >= 0:
    reader = reader.option("versionAsOf", version)
files = reader.load(table).where(f"date = '{date}'").inputFiles()
peer.report(start, len(files))
