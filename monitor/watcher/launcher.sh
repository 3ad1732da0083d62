#!/bin/sh
# Starts the watcher of one nexus in the background: `launcher.sh --help`. All of it is `nexus-watcher --launch`; this
# only finds the program. Exit codes: docs/contracts.md, section 2.
set -u

self=$(readlink -f -- "$0") || exit 2
monitor=${self%/*/*}
# shellcheck source=monitor/find_program.sh
. "$monitor/find_program.sh"
find_program nexus-watcher || exit 2

: "${NEXUS_ROOT:=$tree}"
export NEXUS_ROOT
exec "$program" --launch "$@"
