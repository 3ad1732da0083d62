# shellcheck shell=sh
# Sourced by the scripts of this folder and of hooks/, which set `monitor` to this folder first: where the built programs
# are. The one place that knows.
#
#   find_program NAME    sets `program` to its path; without one, says so and returns 1
#
# Looked through: NEXUS_BIN_DIR, target/release and target/debug of this tree, PATH, and where an install puts programs.

# The checkout.
# shellcheck disable=SC2154  # The caller's.
tree=${monitor%/*}

# shellcheck disable=SC2034  # The result.
find_program() {
    for dir in "${NEXUS_BIN_DIR:-}" "$tree/target/release" "$tree/target/debug"; do
        if [ -n "$dir" ] && [ -f "$dir/$1" ] && [ -x "$dir/$1" ]; then
            program=$dir/$1
            return 0
        fi
    done
    rest=${PATH:-}:${HOME:+$HOME/.local/bin:$HOME/.cargo/bin:}/usr/local/bin:
    while [ -n "$rest" ]; do
        dir=${rest%%:*}
        rest=${rest#*:}
        # Other programs are called `ng` as well; ours lies beside the service. This folder's own script may be found too.
        if [ -n "$dir" ] && [ -f "$dir/$1" ] && [ -x "$dir/$1" ] && [ -x "$dir/nexus-watcher" ] &&
            [ "$(readlink -f -- "$dir/$1")" != "$monitor/$1" ]; then
            program=$dir/$1
            return 0
        fi
    done
    echo "$1: no built program found; run 'cargo build --release' in $tree, or set NEXUS_BIN_DIR" >&2
    return 1
}
