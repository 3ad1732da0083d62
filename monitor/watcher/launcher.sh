#!/bin/sh
# Starts the watcher of one nexus in the background, waits until it is up, and says so.
#
#   launcher.sh [--root DIR] [--target WINDOW] [--replace | --ensure | --instance-status]
#
# Exit codes (docs/contracts.md §2): 0 started or nothing to do; 1 refused or bad flag; 2 no tmux, no root, nothing to
# start; 3 did not come up; 4 another watcher holds the state directory; 5 another launcher is at work, or the state
# directory cannot be written; 6 the old watcher would not end.
#
# The decisions are the service's own (`nexus-watcher --replace`, `--instance-status`); this only detaches and waits.
set -u
umask 077

# How long to wait for another launcher, and for the watcher to show its heartbeat, in seconds.
lock_wait_s=45
start_wait_s=15

say() { echo "launcher: $*"; }
fail() {
    code=$1
    shift
    echo "launcher: $*" >&2
    exit "$code"
}

self=$(readlink -f -- "$0") || exit 2
tree=$(dirname -- "$(dirname -- "$(dirname -- "$self")")")
root=${NEXUS_ROOT:-$tree}
target=
mode=start

while [ $# -gt 0 ]; do
    case $1 in
    --root | --target | --window)
        [ -n "${2:-}" ] || fail 2 "$1 needs a value"
        case $1 in --root) root=$2 ;; *) target=$2 ;; esac
        shift
        ;;
    --replace) mode=replace ;;
    --ensure) mode=ensure ;;
    --instance-status) mode=status ;;
    # Asked for by older set-ups; no sandbox is required here.
    --i-accept-no-sandbox) ;;
    -h | --help)
        sed -n '2,8s/^# \{0,1\}//p' "$self"
        exit 0
        ;;
    *) fail 1 "unknown flag $1; see --help" ;;
    esac
    shift
done

program=
for dir in "${NEXUS_BIN_DIR:-}" "$tree/target/release" "$tree/target/debug"; do
    if [ -n "$dir" ] && [ -x "$dir/nexus-watcher" ]; then
        program=$dir/nexus-watcher
        break
    fi
done
: "${program:=$(command -v nexus-watcher || true)}"
[ -n "$program" ] || fail 2 "no built nexus-watcher found; run 'cargo build' in $tree, or set NEXUS_BIN_DIR"
[ -d "$root" ] || fail 2 "there is no directory $root; say --root DIR or set NEXUS_ROOT"
root=$(CDPATH='' cd -- "$root" && pwd -P) || fail 2 "cannot enter $root"

if [ "$mode" = status ]; then
    exec "$program" --root "$root" --instance-status
fi

command -v tmux >/dev/null || fail 2 "tmux is not installed or not in PATH; install it (Debian: apt-get install tmux)"
command -v setsid >/dev/null || fail 2 "setsid is not installed or not in PATH; install it (Debian: apt-get install util-linux)"

state=${NEXUS_STATE_DIR:-$root/monitor/.state}
launch_lock=$state/watcher-restart.lock
launch_log=$state/logs/launch.log
mkdir -p -- "$state/logs" 2>/dev/null && (: >>"$launch_lock" && : >"$launch_log") 2>/dev/null ||
    fail 5 "cannot write to the state directory $state; fix its place or permissions, or set NEXUS_STATE_DIR (nothing was ended or started)"

# One launcher at a time, so that two of them do not end each other's watcher.
exec 9>>"$launch_lock"
if command -v flock >/dev/null; then
    flock -w "$lock_wait_s" 9 || fail 5 "another launcher has been at work on $state for $lock_wait_s s"
fi

held() {
    case $("$program" --root "$root" --instance-status 9>&- 2>/dev/null) in
    "instance-lock: HELD"*) return 0 ;;
    *) return 1 ;;
    esac
}

if [ "$mode" != replace ] && held; then
    if [ "$mode" = ensure ]; then
        say "a watcher is running; nothing to do"
        exit 0
    fi
    who=$("$program" --root "$root" --instance-status 9>&- | sed -n 's/^assessment=//p; s/^pid: */pid /p; s/^host: */on /p' | tr '\n' ' ')
    fail 4 "another watcher holds $state${who:+ (${who% })}; use it, or take over with --replace"
fi

set -- --root "$root"
[ -z "$target" ] || set -- "$@" --target "$target"
case $mode in replace | ensure) set -- "$@" "--$mode" ;; esac

# The service must not keep our lock, our terminal or our output.
setsid "$program" "$@" </dev/null >>"$launch_log" 2>&1 9>&- &
pid=$!

spawns=$state/watcher-spawns.log
if [ -f "$spawns" ] && [ "$(wc -c <"$spawns")" -gt 1048576 ]; then
    mv -- "$spawns" "$spawns.1"
fi
echo "$(date +%Y-%m-%dT%H:%M:%S%z) launcher[$$] caller=[ppid=$PPID] spawned pid=$pid target=$target mode=$mode" \
    >>"$spawns" 2>/dev/null

# Gone, or ended and waiting for us to notice.
ended() {
    line=$(cat "/proc/$pid/stat" 2>/dev/null) || return 0
    case $line in *") Z "*) return 0 ;; *) return 1 ;; esac
}
up() {
    [ "$(cat "$state/watcher.pid" 2>/dev/null)" = "$pid" ] &&
        grep -qx "pid=$pid" "$state/watcher-heartbeat" 2>/dev/null
}

deadline=$(($(date +%s) + start_wait_s))
until up; do
    if ended; then
        wait "$pid"
        code=$?
        cat -- "$launch_log" >&2
        case $code in
        0)
            [ "$mode" = ensure ] || fail 3 "the watcher ended at once without an error; see $state/logs"
            say "a watcher is running; nothing to do"
            exit 0
            ;;
        1 | 2 | 4 | 5 | 6) fail "$code" "the watcher refused to start" ;;
        *) fail 3 "the watcher ended at once with code $code; see $state/logs" ;;
        esac
    fi
    if [ "$(date +%s)" -ge "$deadline" ]; then
        say "started pid=$pid; slow: no heartbeat after $start_wait_s s, see $state/logs"
        exit 0
    fi
    sleep 0.05
done
say "started pid=$pid"
