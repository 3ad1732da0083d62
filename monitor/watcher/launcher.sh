#!/bin/sh
# Starts the watcher of one nexus in the background: `launcher.sh --help`. All of it is `nexus-watcher --launch`; this
# only finds the program. Exit codes: docs/contracts.md, section 2.
set -u

self=$(readlink -f -- "$0") || exit 2
. "$(dirname -- "$self")/program.sh"
exec "$program" --launch "$@"
