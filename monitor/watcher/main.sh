#!/bin/sh
# Runs the watcher of one nexus in the foreground, as the original's main.sh did: `main.sh --help`. Started in the
# background by launcher.sh; called by hand or by a supervisor of one's own.
#
# Exit codes: 0 ended by a signal, by --once, or because another watcher took over; 1 bad flag or configuration; 2 no tmux
# or no root; 4 another watcher holds the state directory; 5 it can't be written; 129, 130 and 143 for a signal that came
# before the watcher was up.
set -u

self=$(readlink -f -- "$0") || exit 2
monitor=${self%/*/*}
# shellcheck source=monitor/find_program.sh
. "$monitor/find_program.sh"
find_program nexus-watcher || exit 2

: "${NEXUS_ROOT:=$tree}"
export NEXUS_ROOT
exec "$program" "$@"
