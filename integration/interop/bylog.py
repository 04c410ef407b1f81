"""Delta tables whose log is written by hand, for what no engine writes."""

import base64
import json
import os
import pathlib
import struct

import pyarrow.parquet

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

FEATURE_PROTOCOL = {"minReaderVersion": 3, "minWriterVersion": 7}


def features(*reader, writer=()):
    """A protocol that lists features."""
    return FEATURE_PROTOCOL | {"readerFeatures": list(reader), "writerFeatures": [*reader, *writer]}


class Table:
    """A table at a path; every method is one commit."""

    def __init__(self, path, schema, partitions=(), protocol=None, properties=None):
        """The schema is a list of (name, type as in a schema string)."""
        self.path, self.version = pathlib.Path(path), 0
        os.makedirs(self.path / "_delta_log")
        fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in schema]
        self.metadata = {
            "id": "00000000-0000-4000-8000-000000000001",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": list(partitions),
            "configuration": properties or {},
            "createdTime": 1_700_000_000_000,
        }
        self.commit({"protocol": protocol or {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": self.metadata})

    def commit(self, *actions):
        info = {"timestamp": 1_700_000_000_000 + self.version, "operation": "WRITE", "operationParameters": {}}
        log = self.path / "_delta_log" / f"{self.version:020}.json"
        log.write_text("".join(json.dumps(a) + "\n" for a in [{"commitInfo": info}, *actions]))
        self.version += 1

    def add(self, *files, values=None, deleted=None):
        """Adds files that lie in the table; deleted are positions of rows."""
        self.commit(*(self.action(f, values, deleted) for f in files))

    def action(self, file, values=None, deleted=None, modified=1_700_000_000_000):
        add = {
            "path": file,
            "partitionValues": values or {},
            "size": os.path.getsize(self.path / file),
            "modificationTime": modified,
            "dataChange": True,
            "stats": json.dumps({"numRecords": pyarrow.parquet.read_metadata(self.path / file).num_rows}),
        }
        if deleted:
            add["deletionVector"] = inline_vector(deleted)
        return {"add": add}

    def remove(self, file):
        return {"remove": {"path": file, "deletionTimestamp": 1_700_000_000_000, "dataChange": True}}

    def delete(self, file, deleted, values=None):
        """Deletes rows of a file that had none deleted."""
        self.commit(self.remove(file), self.action(file, values, deleted))


def inline_vector(positions):
    """The deletionVector of an add (protocol section "Deletion Vectors")."""
    data = struct.pack("<i", 1681511377) + bitmap_array(sorted(positions))
    padded = data + bytes(-len(data) % 4)
    encoded = base64.b85encode(padded).decode().translate(str.maketrans(B85, Z85))
    return {"storageType": "i", "pathOrInlineDv": encoded, "sizeInBytes": len(data), "cardinality": len(set(positions))}


def bitmap_array(positions):
    """A RoaringBitmapArray, portable: one 32-bit bitmap of array containers."""
    containers = {}
    for p in positions:
        containers.setdefault(p >> 16, []).append(p & 0xFFFF)
    assert max(positions) < 1 << 32 and all(len(c) <= 4096 for c in containers.values())
    head = struct.pack("<ii", 12346, len(containers))
    keys = b"".join(struct.pack("<HH", k, len(c) - 1) for k, c in containers.items())
    at = len(head) + len(keys) + 4 * len(containers)
    offsets, bodies = b"", b""
    for c in containers.values():
        offsets += struct.pack("<I", at + len(bodies))
        bodies += struct.pack(f"<{len(c)}H", *c)
    return struct.pack("<qi", 1, 0) + head + keys + offsets + bodies
