#!/usr/bin/env bash
# Sets up and starts a nexus: builds, makes a configuration, opens a tmux session with the orchestrator's window, starts
# the watcher. Without an agent it shows a demo fleet on a tmux server of its own, which needs no account.
#
#   scripts/run.sh                     the configured agent, or the demo if none is configured
#   scripts/run.sh --demo              the demo fleet: waits for the first proven report, then says where to look
#   scripts/run.sh --agent claude      Claude Code as the orchestrator (or any other command line)
#   scripts/run.sh --status            what is running
#   scripts/run.sh --stop              ends what this script started; the demo leaves nothing behind
#
#   --debug        build without optimisation       --no-attach   do not attach to the session at the end
#   --no-build     use what was built before        --no-install  do not install missing system packages
#   NEXUS_DEMO_WAIT_S (60) is how long the demo waits for its proofs, in seconds.
#
# Exit codes: 0 started, running already, or stopped; 1 failed; 2 usage, no tmux, or tmux older than 3.2; 3 no proven
# report within the time; else the launcher's own code (docs/contracts.md, section 2).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
say() { printf '%s\n' "$*"; }
die() { local code=$1; shift; printf 'run.sh: %s\n' "$*" >&2; exit "$code"; }
usage() { sed -n '2,/^set -euo/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//'; }

mode='' action=start profile=release build=1 install=1 attach=1 agent=''
set_mode() { [ -z "$mode" ] || [ "$mode" = "$1" ] || die 2 "--demo and --agent exclude each other"; mode=$1; }
while [ $# -gt 0 ]; do
  case $1 in
    --demo) set_mode demo ;;
    --agent) [ -n "${2:-}" ] || die 2 "--agent needs a command, for instance: --agent claude"; set_mode agent; agent=$2; shift ;;
    --agent=?*) set_mode agent; agent=${1#--agent=} ;;
    --status) action=status ;;
    --stop) action=stop ;;
    --debug) profile=debug ;;
    --no-build) build=0 ;;
    --no-install) install=0 ;;
    --no-attach) attach=0 ;;
    -h|--help) usage; exit 0 ;;
    *) die 2 "unknown argument '$1'; scripts/run.sh --help lists what there is" ;;
  esac
  shift
done

bin=${CARGO_TARGET_DIR:-$root/target}/$profile
window=orchestrator session=nexus
demo_name=nexus-demo-$(printf %s "$root" | cksum | cut -d' ' -f1)
demo_state=$root/monitor/.demo-state
live_state=${NEXUS_STATE_DIR:-$root/monitor/.state}
demo_tmux() { env -u TMUX tmux -u -L "$demo_name" -f /dev/null "$@"; }
live_tmux() { if [ -n "${NEXUS_TMUX_SOCKET:-}" ]; then socket_tmux "$@"; else tmux -u "$@"; fi; }
socket_tmux() { case $NEXUS_TMUX_SOCKET in */*) tmux -u -S "$NEXUS_TMUX_SOCKET" "$@" ;; *) tmux -u -L "$NEXUS_TMUX_SOCKET" "$@" ;; esac; }

# ---------------------------------------------------------------- what is needed

# Installs system packages, or says how.
need_packages() {
  local -a missing=()
  command -v tmux >/dev/null || missing+=(tmux)
  command -v git >/dev/null || missing+=(git)
  if [ $build = 1 ]; then command -v cc >/dev/null || missing+=(gcc libc6-dev); fi
  [ ${#missing[@]} -gt 0 ] || return 0
  local -a as=()
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then as=(sudo); else install=0; fi
  fi
  if [ $install = 0 ] || ! command -v apt-get >/dev/null; then
    die 2 "missing: ${missing[*]}. Install them and run this again (Debian: apt-get install ${missing[*]})"
  fi
  say "Installing with apt-get: ${missing[*]}"
  "${as[@]}" apt-get update -q >/dev/null || die 1 "apt-get update failed; install ${missing[*]} yourself"
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null \
    || die 1 "apt-get install failed; install ${missing[*]} yourself"
}

need_tmux_version() {
  command -v tmux >/dev/null || die 2 "tmux is not installed (Debian: apt-get install tmux)"
  local version major minor
  version=$(tmux -V 2>/dev/null | sed -n 's/^tmux \(next-\)\{0,1\}\([0-9]\{1,\}\)\.\([0-9]\{1,\}\).*/\2 \3/p')
  # Versions that do not look like one (a build from source) are taken for new.
  [ -n "$version" ] || return 0
  major=${version% *} minor=${version#* }
  if [ "$major" -lt 3 ] || { [ "$major" -eq 3 ] && [ "$minor" -lt 2 ]; }; then
    die 2 "$(tmux -V) is too old: version 3.2 or later is needed"
  fi
}

build_programs() {
  if [ $build = 0 ]; then
    if ! [ -x "$bin/ng" ] || ! [ -x "$bin/nexus-watcher" ]; then die 1 "nothing is built in $bin; run this without --no-build"; fi
    return
  fi
  # shellcheck source=scripts/find_rust.sh
  . "$root/scripts/find_rust.sh"
  find_rust || die 1 "Rust is not installed, or its cargo does not run. Get it from https://rustup.rs (1.88 or later), then run this again"
  say "Building ($profile); the first time takes a few minutes"
  local -a args=(build --locked --bins --quiet)
  [ $profile = debug ] || args+=(--release)
  (cd "$root" && cargo "${args[@]}") || die 1 "the build failed; cargo's message is above"
}

make_config() {
  local example made=$root/config/nexus.yml
  [ ! -e "$made" ] && [ ! -L "$made" ] && [ ! -e "$root/nexus.yml" ] && [ -z "${NEXUS_CONFIG:-}" ] || return 0
  for example in "$root/nexus.example.yml" "$root/config/nexus.example.yml"; do
    [ -f "$example" ] || continue
    mkdir -p "$root/config"
    # -n: whoever made one in the meantime wins.
    cp -n "$example" "$made"
    say "Made config/nexus.yml from $(basename "$example") (GitHub is off)"
    return
  done
}

# ---------------------------------------------------------------- the watcher

# The process id of the watcher of a state directory, if it lives and is ours.
watcher_pid() {
  local state=$1 pid
  for pid in "$(head -n1 "$state/watcher.pid" 2>/dev/null)" "$(sed -n 's/^pid: *//p' "$state/nexus-instance.lock" 2>/dev/null | head -n1)"; do
    case $pid in ''|*[!0-9]*) continue ;; esac
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = nexus-watcher ] || continue
    # Another nexus's watcher may have the number of a dead one of ours.
    if tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qxF "NEXUS_STATE_DIR=$state"; then say "$pid"; return 0; fi
  done
  return 1
}

# Starts the watcher for the state directory $1 on the tmux socket $2 (empty: the user's own server).
start_watcher() {
  local state=$1 socket=$2 code=0
  [ -x "$root/monitor/watcher/launcher.sh" ] || die 1 "monitor/watcher/launcher.sh is missing from this checkout"
  local -a set=("NEXUS_ROOT=$root" "NEXUS_STATE_DIR=$state" "NEXUS_BIN_DIR=$bin")
  if [ -n "$socket" ]; then set+=("NEXUS_TMUX_SOCKET=$socket"); fi
  env "${set[@]}" "${@:3}" "$root/monitor/watcher/launcher.sh" --target "$window" </dev/null || code=$?
  [ $code = 0 ] || die $code "the watcher did not start (launcher exit $code); its logs are in $state/logs"
}

stop_watcher() {
  local state=$1 pid
  pid=$(watcher_pid "$state") || return 0
  kill -TERM "$pid" 2>/dev/null || return 0
  for _ in $(seq 100); do [ -d "/proc/$pid" ] || return 0; sleep 0.1; done
  kill -KILL "$pid" 2>/dev/null || true
  say "The watcher (pid $pid) did not end in 10 s and was killed"
}

new_id() { cat /proc/sys/kernel/random/uuid; }

# Records whose window it is, as every tool that opens one does.
write_provenance() {
  local state=$1 name=$2 id=$3 kind=$4 workdir=$5
  mkdir -p "$state/windows"
  workdir=${workdir//\\/\\\\}
  printf '{"window":"%s","session_id":"%s","kind":"%s","spawned_by":"scripts/run.sh","workdir":"%s","spawned_at":"%s"}\n' \
    "$name" "$id" "$kind" "${workdir//\"/\\\"}" "$(date +%Y-%m-%dT%H:%M:%S%:z)" >"$state/windows/$name.json"
}

# ---------------------------------------------------------------- the demo

demo_window() {
  local name=$1 role=$2 id state=$demo_state; shift 2
  id=$(new_id)
  local -a command=("$bin/ng" demo agent --role "$role" --hooks --window "$name" --state "$state"
    --session-id "$id" --transcript "$state/demo/$name.jsonl" --log "$state/demo/$name.log" "$@")
  local -a set=(-e "NEXUS_ROOT=$root" -e "NEXUS_STATE_DIR=$state" -e "NEXUS_TMUX_SOCKET=$demo_socket" -e "NEXUS_BIN_DIR=$bin")
  write_provenance "$state" "$name" "$id" "$([ "$role" = orchestrator ] && echo orchestrator || echo worker)" "$root"
  if [ "$role" = orchestrator ]; then
    say "$id" >"$state/orchestrator-session-id"
    demo_tmux new-session -d -s "$session" -n "$name" -x 160 -y 48 -c "$root" "${set[@]}" -- "${command[@]}" || return 1
  else
    demo_tmux new-window -d -t "$session:" -n "$name" -c "$root" "${set[@]}" -- "${command[@]}"
  fi
}

demo_socket_path() { printf '%s/tmux-%s/%s' "$(realpath "${TMUX_TMPDIR:-/tmp}")" "$(id -u)" "$demo_name"; }
demo_runs() { demo_tmux has-session -t "=$session" 2>/dev/null; }

start_demo() {
  demo_socket=$(demo_socket_path)
  if demo_runs && watcher_pid "$demo_state" >/dev/null; then
    say "The demo is running already."
    demo_help
    return
  fi
  # What an interrupted run left would only be in the way.
  stop_demo quiet || true
  (umask 077; mkdir -p "$demo_state/demo")
  say "Opening the demo fleet on a tmux server of its own"
  demo_window "$window" orchestrator --act || die 1 "the demo session could not be opened; scripts/run.sh --stop clears what is left"
  demo_window worker-busy busy
  demo_window worker-bell bell
  demo_window worker-decision decision
  demo_window worker-idle idle
  say "Starting the watcher"
  start_watcher "$demo_state" "$demo_socket" MONITOR_INTERVAL="${MONITOR_INTERVAL:-5}" MONITOR_TARGET=$window
  wait_for_proof
  wait_for_ack
  demo_help
}

# Not --root: that names a nexus whole, its usual state directory included.
demo_ng() { env "NEXUS_ROOT=$root" "NEXUS_STATE_DIR=$demo_state" "NEXUS_TMUX_SOCKET=$(demo_socket_path)" "$bin/ng" "$@"; }

# One flat record a line, whatever the layout of the list.
emit_records() { demo_ng emits --json 2>/dev/null | tr -d '\n' | tr '}' '\n'; }
field() { sed -n "s/.*\"$1\" *: *\"\\([^\"]*\\)\".*/\\1/p"; }

# Waits until a report is known to have arrived.
wait_for_proof() {
  local wait_s=${NEXUS_DEMO_WAIT_S:-60} start=$SECONDS record
  printf 'Waiting for the first proven report '
  while [ $((SECONDS - start)) -lt "$wait_s" ]; do
    record=$(emit_records | grep '"received" *: *true' | tail -n1 || true)
    if [ -n "$record" ]; then
      printf '\nReport %s arrived after %s s; proof: %s\n' "$(field sig <<<"$record")" "$((SECONDS - start))" "$(field witness <<<"$record")"
      return
    fi
    printf .
    sleep 1
  done
  printf '\n'
  demo_help
  die 3 "no report was proven to have arrived within $wait_s s. Why: $(demo_env) monitor/ng emits; logs: $demo_state/logs"
}

# Waits a little until the orchestrator has settled the decision. Not seeing it is no failure: it is told again.
wait_for_ack() {
  local wait_s=${NEXUS_DEMO_WAIT_S:-60} start=$SECONDS
  printf 'Waiting for the decision to be settled '
  while [ $((SECONDS - start)) -lt "$wait_s" ]; do
    if grep '"event":"ack"' "$demo_state/demo/$window.log" 2>/dev/null | grep -q '"code":0'; then
      printf '\nThe orchestrator settled the decision of worker-decision with monitor/ng decision-ack.\n'
      return
    fi
    printf .
    sleep 1
  done
  printf '\nNot settled yet; it stays in the reports until it is.\n'
}

demo_env() { printf 'NEXUS_STATE_DIR=%q NEXUS_TMUX_SOCKET=%q' "$demo_state" "$(demo_socket_path)"; }

demo_help() {
  cat <<HELP

The demo fleet is in tmux session $session. To look at it:
  tmux -L $demo_name attach          detach with Ctrl-b d
To ask the watcher, in $root:
  export $(demo_env)
  monitor/ng emits                   reports, their outcome and the proof of arrival
  monitor/ng pane-state --all        what each agent is doing
  monitor/ng watcher-status          whether the watcher lives
To end it, leaving nothing behind:
  scripts/run.sh --stop
HELP
}

# The processes of every pane of the demo.
demo_pids() { demo_tmux list-panes -a -F '#{pane_pid}' 2>/dev/null || true; }

stop_demo() {
  local pids pid stopped=0
  if watcher_pid "$demo_state" >/dev/null; then stop_watcher "$demo_state"; stopped=1; fi
  pids=$(demo_pids)
  if demo_tmux kill-server 2>/dev/null; then
    stopped=1
    for pid in $pids; do
      for _ in $(seq 50); do [ -d "/proc/$pid" ] || break; sleep 0.1; done
    done
  fi
  rm -f "$(demo_socket_path)"
  if [ -d "$demo_state" ]; then rm -rf "$demo_state"; stopped=1; fi
  if [ "${1:-}" != quiet ] && [ $stopped = 1 ]; then say "The demo is stopped, and its files are removed."; fi
  [ $stopped = 1 ] || return 1
}

# ---------------------------------------------------------------- a real agent

started_file() { printf %s "$live_state/run-started"; }

# The pane that this script opened, if it is still there on the same server.
started_pane() {
  local pane server
  { read -r pane && read -r server; } 2>/dev/null <"$(started_file)" || return 1
  [ "$(live_tmux display-message -p '#{pid}' 2>/dev/null)" = "$server" ] || return 1
  live_tmux list-panes -a -F '#{pane_id}' | grep -qxF "$pane" || return 1
  say "$pane"
}

start_agent() {
  local program=${agent%% *} id settings run version
  if live_tmux list-windows -t "=$session" -F '#{window_name}' 2>/dev/null | grep -qxF "$window"; then
    say "Window $window is open in tmux session $session already; it is left as it is."
  else
    command -v "$program" >/dev/null || die 1 "the agent command '$program' is not in PATH; install it, or try scripts/run.sh --demo"
    (umask 077; mkdir -p "$live_state")
    id=$(new_id) run=$agent
    case ${program##*/} in
      claude)
        # The events that hooks may name differ by version; an unknown one would block the agent's start.
        version=$("$program" --version 2>/dev/null </dev/null | sed -n 's/^[^0-9]*\([0-9][0-9.]*\).*/\1/p' | head -n1 || true)
        settings=$(NEXUS_ROOT=$root NEXUS_STATE_DIR=$live_state "$bin/ng" hooks settings --window "$window" --target ${version:+--agent-version "$version"}) \
          || die 1 "the hook settings could not be written; see above"
        run="$run --settings $(printf %q "$settings")"
        # A session that is taken up again has its id already; its first prompt will tell.
        case " $agent " in *" --session-id"*|*" --resume"*|*" -r "*|*" --continue "*|*" -c "*) id='' ;; *) run="$run --session-id $id" ;; esac ;;
    esac
    if [ -n "$id" ]; then say "$id" >"$live_state/orchestrator-session-id"; fi
    write_provenance "$live_state" "$window" "$id" orchestrator "$root"
    local -a set=(-e "NEXUS_ROOT=$root" -e "NEXUS_STATE_DIR=$live_state" -e NEXUS_IS_ORCHESTRATOR=1 -e "NEXUS_ORCH_SESSION_ID=$id")
    local -a where=(new-session -d -s "$session" -x 160 -y 48)
    if live_tmux has-session -t "=$session" 2>/dev/null; then where=(new-window -d -t "$session:"); fi
    say "Starting '$agent' in window $window of tmux session $session"
    live_tmux "${where[@]}" -n "$window" -c "$root" "${set[@]}" -P -F $'#{pane_id}\n#{pid}' "$run" >"$(started_file)" \
      || die 1 "tmux could not open the window"
    # Long enough for a program that can't start to say so and end.
    for _ in $(seq 15); do
      started_pane >/dev/null || die 1 "'$agent' ended at once, so nothing was started. Run it yourself to see why"
      sleep 0.2
    done
  fi
  if watcher_pid "$live_state" >/dev/null; then
    say "The watcher is running already."
  else
    say "Starting the watcher"
    start_watcher "$live_state" "${NEXUS_TMUX_SOCKET:-}"
  fi
  cat <<HELP

  tmux attach -t $session            the orchestrator; detach with Ctrl-b d
  monitor/ng emits                   reports, their outcome and the proof of arrival
  monitor/ng pane-state --all        what each agent is doing
  monitor/ng watcher-status          whether the watcher lives
  scripts/run.sh --stop              ends the watcher and the window that was opened here
HELP
}

stop_agent() {
  local pane stopped=1
  if watcher_pid "$live_state" >/dev/null; then stop_watcher "$live_state"; say "The watcher is stopped."; stopped=0; fi
  if pane=$(started_pane); then live_tmux kill-pane -t "$pane"; say "The window $window that was opened here is closed."; stopped=0; fi
  rm -f "$(started_file)"
  return $stopped
}

# ---------------------------------------------------------------- what was asked

show_status() {
  local pid what=0
  if demo_runs; then say "demo: session $session on tmux -L $demo_name"; what=1; fi
  if pid=$(watcher_pid "$demo_state"); then say "demo: watcher pid $pid"; what=1; fi
  if pid=$(started_pane); then say "agent: pane $pid in tmux session $session"; what=1; fi
  if pid=$(watcher_pid "$live_state"); then say "agent: watcher pid $pid"; what=1; fi
  if [ $what = 0 ]; then say "nothing is running"; fi
}

case $action in
  status) show_status; exit 0 ;;
  stop)
    found=0
    if [ "$mode" != agent ] && stop_demo; then found=1; fi
    if [ "$mode" != demo ] && stop_agent; then found=1; fi
    if [ $found = 0 ]; then say "Nothing was running."; fi
    exit 0 ;;
esac

need_packages
need_tmux_version
build_programs
make_config
if [ -z "$mode" ]; then
  agent=$(NEXUS_ROOT=$root "$bin/ng" config get monitor.orchestrator.command 2>/dev/null || true)
  agent=${agent#\"} agent=${agent%\"}
  if [ -n "$agent" ]; then mode=agent; else mode=demo; fi
fi
if [ "$mode" = demo ]; then start_demo; else start_agent; fi
if [ $attach = 1 ] && [ -t 0 ] && [ -t 1 ]; then
  if [ "$mode" = demo ]; then exec env -u TMUX tmux -u -L "$demo_name" attach -t "=$session"; fi
  if [ -z "${TMUX:-}" ]; then live_tmux attach -t "=$session"; fi
fi
