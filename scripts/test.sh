#!/usr/bin/env bash
# Every check and test, from nothing: installs what the tests need and is missing, then runs them and says how long
# each stage took. Fails where something needed can't be had; it never skips.
#
#   scripts/test.sh            everything (what CI runs)
#   scripts/test.sh --quick    without the stage that runs real agents
#
# Exit codes: 0 all passed; 1 something failed; 2 usage, or something needed is missing.
set -euo pipefail
exec </dev/null

cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
# One version of each agent; a matrix of versions is a script of its own.
agents=(claude@2.1.332 codex@0.171.0 gemini@0.61.0 opencode@1.18.33)
export NEXUS_LAB_DIR=${NEXUS_LAB_DIR:-$root/target/lab}
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}

quick=0
for arg in "$@"; do
  case $arg in
    --quick) quick=1 ;;
    -h|--help) sed -n '2,/^set -euo/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//'; exit 0 ;;
    *) echo "test.sh: unknown argument '$arg'; --quick is the only one" >&2; exit 2 ;;
  esac
done

lines=() failures=0 passed=0 failed=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# Runs one stage; a failure is noted, and the next stages still run.
stage() {
  local name=$1 start=$SECONDS word=ok; shift
  printf '\n=== %s\n' "$name"
  "$@" 2>&1 | tee "$logs/stage" || { word=FAILED; failures=$((failures + 1)); }
  lines+=("$(printf '%-28s %5s s  %s' "$name" "$((SECONDS - start))" "$word")")
  count "$logs/stage"
}

# Adds up what the two test runners print at their end.
count() {
  local numbers
  numbers=$(sed -nE \
    -e 's/^ *Summary \[.*\] .* ([0-9]+) passed.* ([0-9]+) failed.*/\1 \2/p' -e t \
    -e 's/^ *Summary \[.*\] .* ([0-9]+) passed.*/\1 0/p' -e t \
    -e 's/^ *Summary \[.*\] .* ([0-9]+) failed.*/0 \1/p' -e t \
    -e 's/^test result: .* ([0-9]+) passed; ([0-9]+) failed;.*/\1 \2/p' "$1" | awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }')
  passed=$((passed + ${numbers% *})) failed=$((failed + ${numbers#* }))
}

need() { printf 'test.sh: %s\n' "$*" >&2; exit 2; }

install_missing() {
  local -a missing=() as=()
  local pair
  for pair in tmux:tmux git:git cc:gcc python3:python3 ps:procps shellcheck:shellcheck systemd-analyze:systemd strace:strace node:nodejs npm:npm; do
    if [ $quick = 1 ]; then case $pair in node:*|npm:*|python3:*) continue ;; esac; fi
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
    # Only a recommendation of the compiler's package, but nothing links without it.
    if [ "${pair#*:}" = gcc ] && ! command -v cc >/dev/null; then missing+=(libc6-dev); fi
  done
  [ ${#missing[@]} -gt 0 ] || { echo "nothing is missing"; return 0; }
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || { echo "missing: ${missing[*]}; run as root: apt-get install ${missing[*]}"; return 1; }
    as=(sudo)
  fi
  command -v apt-get >/dev/null || { echo "missing: ${missing[*]}; install them with your package manager"; return 1; }
  echo "installing with apt-get: ${missing[*]}"
  "${as[@]}" apt-get update -q >/dev/null
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
}

scripts_are_sound() {
  local -a files
  mapfile -t files < <(find scripts monitor .ci tests/lab -type f -exec grep -lE '^#!.*[/ ](ba)?sh( |$)' {} + 2>/dev/null | sort)
  shellcheck -x -S warning "${files[@]}" && echo "${#files[@]} scripts are sound"
}

# shellcheck source=scripts/find_rust.sh
. "$root/scripts/find_rust.sh"
find_rust || need "Rust is not installed, or its cargo does not run. Get it from https://rustup.rs (1.88 or later, with rustfmt and clippy)"

# The tests that need no agent, and those that do: the files named tests/agents_*.rs.
if cargo nextest --version >/dev/null 2>&1; then
  plain_tests() { cargo nextest run --locked --features lab,strace --no-fail-fast -E 'not binary(/^agents_/)' && cargo test --locked --features lab,strace --doc --quiet; }
  agent_tests() { cargo nextest run --locked --features lab,strace --no-fail-fast -j 2 -E 'binary(/^agents_/)'; }
else
  plain_tests() { cargo test --locked --features strace --no-fail-fast; }
  agent_tests() {
    local -a targets=()
    local file
    for file in tests/agents_*.rs; do targets+=(--test "$(basename "$file" .rs)"); done
    cargo test --locked --features lab,strace --no-fail-fast "${targets[@]}" -- --test-threads 2
  }
fi
# Links to private items are for readers of the source, where they lead somewhere.
documentation() { RUSTDOCFLAGS='-D warnings -A rustdoc::private_intra_doc_links' cargo doc --locked --no-deps --document-private-items; }

cargo fmt --version >/dev/null 2>&1 || need "rustfmt is missing: rustup component add rustfmt"
cargo clippy --version >/dev/null 2>&1 || need "clippy is missing: rustup component add clippy"

stage "system packages" install_missing
[ $failures = 0 ] || need "something that the tests need is missing; see above"
stage "format" cargo fmt --check
stage "shellcheck" scripts_are_sound
stage "clippy" cargo clippy --locked --all-targets --features lab,strace -- -D warnings
stage "documentation" documentation
stage "unit and integration tests" plain_tests
if [ $quick = 0 ]; then
  stage "install agents" tests/lab/agent_lab.sh install "$NEXUS_LAB_DIR" "${agents[@]}"
  stage "real agents" agent_tests
fi

printf '\n%s\n' "--- stages"
printf '%s\n' "${lines[@]}"
printf '%-28s %5s s\n' total "$SECONDS"
printf '%s passed, %s failed' "$passed" "$failed"
if [ $failures -gt 0 ]; then printf ', %s of %s stages failed' "$failures" "${#lines[@]}"; fi
printf '\n'
[ $failures = 0 ]
