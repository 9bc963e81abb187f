#!/usr/bin/env python3
"""Start a private PostgreSQL with its settings as they come, and run bench_postgres against it.
Usage: bench/postgres.py BUILD_DIRECTORY [SECONDS]"""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("ASTER_SOURCE", ROOT)
sys.path.insert(0, os.path.join(ROOT, "tests"))
from support.postgres import Cluster, prepare  # noqa: E402

with Cluster(settings=("shared_buffers = 128MB",)) as cluster:
    prepare(cluster)
    admin = cluster.session(keep=False)
    admin.query("CREATE ROLE bench LOGIN; GRANT aster_worker, aster_operator TO bench; GRANT CREATE ON SCHEMA public TO bench")
    admin.close()
    program = os.path.join(sys.argv[1], "bench", "bench_postgres")
    sys.exit(subprocess.run([program, cluster.info("bench"), *sys.argv[2:]], check=False).returncode)
