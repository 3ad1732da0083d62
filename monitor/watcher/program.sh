# Sourced by launcher.sh and main.sh, which set $self: finds the built nexus-watcher of NEXUS_BIN_DIR, else of this tree,
# else of PATH, as $program; sets NEXUS_ROOT to this tree unless it is set.
tree=$(dirname -- "$(dirname -- "$(dirname -- "$self")")")
: "${NEXUS_ROOT:=$tree}"
export NEXUS_ROOT

program=
for dir in "${NEXUS_BIN_DIR:-}" "$tree/target/release" "$tree/target/debug"; do
    if [ -n "$dir" ] && [ -x "$dir/nexus-watcher" ]; then
        program=$dir/nexus-watcher
        break
    fi
done
: "${program:=$(command -v nexus-watcher || true)}"
if [ -z "$program" ]; then
    echo "${self##*/}: no built nexus-watcher found; run 'cargo build' in $tree, or set NEXUS_BIN_DIR" >&2
    exit 2
fi
