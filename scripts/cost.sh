#!/usr/bin/env bash
# Measures what the watcher costs: 30 idle demo agents on a private tmux server, for a minute or as long as asked.
#
#   scripts/cost.sh [SECONDS] [AGENTS]
#
# Prints CPU time a second, memory, and processes started by the watcher in that time (by strace where it is installed).
# Needs a build (scripts/test.sh or cargo build). Exit codes: 0 measured; 1 could not; 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-60} agents=${2:-30}
case $seconds$agents in *[!0-9]*) echo "usage: scripts/cost.sh [SECONDS] [AGENTS]" >&2; exit 2 ;; esac
bin=${NEXUS_BIN_DIR:-$PWD/target/debug}
[ -x "$bin/nexus-watcher" ] || { echo "no build in $bin" >&2; exit 1; }

root=$(mktemp -d) socket=nexus-cost-$$ watcher=
tmux() { env -u TMUX HOME="$root" tmux -u -L "$socket" -f /dev/null "$@"; }
trap '[ -z "$watcher" ] || { kill "$watcher" 2>/dev/null && wait "$watcher" || true; }; tmux kill-server 2>/dev/null || true; rm -rf "$root" "${TMUX_TMPDIR:-/tmp}/tmux-$(id -u)/$socket"' EXIT
mkdir -p "$root"/{config,reports,monitor/.state}
printf 'monitor:\n  tmux:\n    sockets: [%s]\n' "$socket" >"$root/config/nexus.yml"
state=$root/monitor/.state
tmux new-session -d -s nexus -n orchestrator -x 160 -y 48 \
  "exec $bin/ng demo agent --root $root --role orchestrator --hooks --window orchestrator --state $state"
for n in $(seq "$agents"); do tmux new-window -d -t nexus: -n "w$n" "exec $bin/ng demo agent --root $root"; done
sleep 3
env -u TMUX HOME="$root" NEXUS_ROOT="$root" "$bin/nexus-watcher" >/dev/null 2>&1 &
watcher=$!
sleep 15

# User and system time of the watcher itself and of the children that it has waited for, in ticks; processes forked.
ticks() { sed 's/.*) //' "/proc/$watcher/stat" | awk '{ print $12 + $13, $14 + $15 }'; }
spawned=unknown
read -r own0 children0 <<<"$(ticks)"
if command -v strace >/dev/null; then
  timeout "$seconds" strace -f -qq -e trace=execve -o "$root/strace" -p "$watcher" 2>/dev/null || true
  spawned=$(grep -c 'execve(.* = 0' "$root/strace" || true)
else
  sleep "$seconds"
fi
read -r own1 children1 <<<"$(ticks)"
hz=$(getconf CLK_TCK)
awk -v t=$((own1 - own0)) -v c=$((children1 - children0)) -v hz="$hz" -v s="$seconds" \
  'BEGIN { printf "cpu: %.2f ms/s (watcher), %.2f ms/s (processes it started)\n", t * 1000 / hz / s, c * 1000 / hz / s }'
grep -E '^VmRSS' "/proc/$watcher/status"
echo "processes started in $seconds s: $spawned"
