"""The entry point: runs a command and turns whatever happens into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper

from typer.main import get_command

from trickle.cli.command import application
from trickle.cli.commands import (
    explaining,
    fuses,
    loads,
    publishing,
    refreshes,
    scheduling,
    sources,
    sql,
    streams,
    tables,
    warehouse,
)
from trickle.cli.failures import INTERRUPTED, report
from trickle.cli.output import leave_quietly
from trickle.errors import was_interrupted

COMMANDS = (
    warehouse.init,
    sql.sql,
    streams.create,
    streams.alter,
    refreshes.refresh,
    streams.suspend,
    streams.resume,
    refreshes.status,
    refreshes.history,
    refreshes.alerts,
    scheduling.run,
    scheduling.tick,
    scheduling.SCHEDULER,
    scheduling.jobs,
    scheduling.why,
    fuses.FUSE,
    loads.SOURCE,
    loads.WATERMARK,
    scheduling.GROUP,
    scheduling.dag,
    explaining.explain,
    tables.tables,
    tables.table,
    tables.describe,
    tables.dependencies,
    tables.attach,
    sources.sources,
    sources.ingest,
    sources.detach,
    publishing.publish,
    publishing.publications,
    publishing.unpublish,
    tables.drop,
    warehouse.compact,
    warehouse.vacuum,
    warehouse.settings,
    warehouse.version,
)
"""In the order of the help."""

app = application(COMMANDS)


def main() -> None:
    """Run the command line of this process."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its number, not an error.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line; the exit code."""
    try:
        ended = get_command(app).main(list(arguments), prog_name="trickle", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        leave_quietly()
    except KeyboardInterrupt:
        ended = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last resort: nobody should see a traceback
        if not was_interrupted(error):
            return report(error, as_json=_wants_json(arguments))
        ended = INTERRUPTED
    code = ended if isinstance(ended, int) else 0
    if code == INTERRUPTED:
        sys.stderr.write("interrupted\n")
    return code


def _wants_json(arguments: Sequence[str]) -> bool:
    """Also known when the command line makes no sense otherwise."""
    return "--json" in arguments[: arguments.index("--") if "--" in arguments else None]


if __name__ == "__main__":
    main()
