#!/usr/bin/env bash
# Installs the watcher for this account: builds it, puts `ng` and `nexus-watcher` into ~/.local/bin, the systemd user
# unit, completions and manual pages where they are looked for. It writes down what it put where, and undoes exactly
# that. Safe to repeat, and safe while the watcher runs: files are replaced by rename.
#
#   scripts/install.sh                install, or upgrade what is installed; starts nothing
#   scripts/install.sh --enable       and have systemd run it, now and with each login
#   scripts/install.sh --dry-run      say what would be done, and do nothing
#   scripts/install.sh --undo         remove what was installed, put back what it had replaced; configuration and state stay
#
#   --prefix DIR   instead of ~/.local (programs in DIR/bin)    --root DIR   the nexus to watch (default: this tree)
#   --name NAME    of the unit, nexus-watcher without it: a second nexus of the account needs another
#   --debug        build without optimisation                   --no-build   use what was built before
#
# Exit codes: 0 done, 1 failed, 2 usage or something needed is missing, 4 another watcher holds the state directory, so
# that systemd's could not start.
set -euo pipefail

tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
say() { printf '%s\n' "$*"; }
die() { local code=$1; shift; printf 'install.sh: %s\n' "$*" >&2; exit "$code"; }
usage() { sed -n '2,/^set -euo/p' "${BASH_SOURCE[0]}" | sed '$d; s/^# \{0,1\}//'; }

action=install enable=0 dry=0 prefix='' root='' name=nexus-watcher profile=release build=1
while [ $# -gt 0 ]; do
  case $1 in
    --undo) action=undo ;;
    --enable) enable=1 ;;
    --dry-run) dry=1 ;;
    --prefix|--root|--name)
      [ -n "${2:-}" ] || die 2 "$1 needs a value"
      case $1 in --prefix) prefix=$2 ;; --root) root=$2 ;; --name) name=$2 ;; esac
      shift ;;
    --debug) profile=debug ;;
    --no-build) build=0 ;;
    -h|--help) usage; exit 0 ;;
    *) die 2 "unknown argument '$1'; scripts/install.sh --help lists what there is" ;;
  esac
  shift
done
case $name in *[!A-Za-z0-9_.-]*|.*|-*) die 2 "--name may hold letters, digits, '_', '-' and '.' only" ;; esac
[ $action = install ] || [ $enable = 0 ] || die 2 "--undo and --enable exclude each other"
[ -n "${HOME:-}" ] || [ -n "$prefix" ] || die 2 "HOME is not set; say --prefix DIR"
umask 077

HOME=${HOME:-}
HOME=${HOME%/} prefix=${prefix:-${HOME%/}/.local}
prefix=${prefix%/}
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
root=${root:-${NEXUS_ROOT:-$tree}}
root=$(cd "$root" 2>/dev/null && pwd -P) || die 2 "there is no directory $root; say --root DIR"
bin=$prefix/bin share=$prefix/share
settings=${XDG_CONFIG_HOME:-${HOME:-$prefix}/.config}
unit=${settings%/}/systemd/user/$name.service
records=$share/nexus-watcher
manifest=$records/installed
built=${CARGO_TARGET_DIR:-$tree/target}/$profile
case "$bin$share$unit$root" in *$'\n'*|*$'\t'*) die 2 "paths with tabs or line breaks are not supported" ;; esac

# ---------------------------------------------------------------- what was put where
# One line a file: its path, the hash of what we put there (while it is being replaced, also that of what we had put
# there before, after a comma), and the name of the copy of what had stood there, or "-". A line is written before what
# it says is done, so that whoever comes after a crash finds it.

hash_of() { sha256sum -- "$1" 2>/dev/null | cut -d' ' -f1; }
is_there() { [ -e "$1" ] || [ -L "$1" ]; }
row_of() { [ ! -f "$manifest" ] || awk -F'\t' -v path="$1" '$1 == path { print; exit }' "$manifest"; }

# Whether what stands at a path has one of these hashes.
has_hash() {
  local hash
  hash=$(hash_of "$1")
  case ",$2," in *",${hash:-none},"*) return 0 ;; *) return 1 ;; esac
}

# Writes a row, replacing the one of the same path; with one argument, removes it.
record() {
  { [ ! -f "$manifest" ] || awk -F'\t' -v path="$1" '$1 != path' "$manifest"
    [ $# = 1 ] || printf '%s\t%s\t%s\n' "$@"; } >"$manifest.new"
  mv -f -- "$manifest.new" "$manifest"
}

# Makes a directory, and notes those that were not there, so that the undo can remove them if they are empty.
made=()
make_dir() {
  local dir=$1
  [ ! -d "$dir" ] || return 0
  make_dir "$(dirname "$dir")"
  if [ -d "$records" ]; then printf '%s\n' "$dir" >>"$records/directories"; else made+=("$dir"); fi
  mkdir -- "$dir" || die 1 "cannot make $dir"
  if [ "$dir" = "$records" ]; then printf '%s\n' "${made[@]}" >>"$records/directories"; fi
}

# Puts a file in place: place FROM TO MODE. What stands there and is not ours is kept aside.
place() {
  local from=$1 to=$2 mode=$3 row old_hash='' kept=- new=$2.nexus-new wanted
  wanted=$(hash_of "$from")
  row=$(row_of "$to")
  [ ! -d "$to" ] || die 1 "$to is a directory; move it away"
  if [ -n "$row" ]; then kept=${row##*$'\t'} old_hash=$(cut -f2 <<<"$row"); fi
  if [ -n "$row" ] && { [ "$kept" = - ] || is_there "$records/replaced/$kept"; }; then
    if is_there "$to" && [ "$wanted" = "$old_hash" ] && has_hash "$to" "$wanted"; then say "unchanged  $to"; return 0; fi
    if is_there "$to" && ! has_hash "$to" "$old_hash"; then
      cp -P -- "$to" "$to.yours" && say "kept       $to.yours, which you had changed"
    fi
  elif is_there "$to"; then
    make_dir "$records/replaced"
    kept=$(printf %s "$to" | sha256sum | cut -c1-16)
    record "$to" "$wanted" "$kept"
    { rm -f -- "$records/replaced/$kept.new" && cp -Pp -- "$to" "$records/replaced/$kept.new" &&
      mv -f -- "$records/replaced/$kept.new" "$records/replaced/$kept"; } || die 1 "cannot keep a copy of $to"
    say "keeping    a copy of $to, which is not ours"
  fi
  make_dir "$(dirname "$to")"
  record "$to" "$wanted${old_hash:+,$old_hash}" "$kept"
  { rm -f -- "$new" && cp -- "$from" "$new" && chmod "$mode" "$new" && mv -f -- "$new" "$to"; } ||
    { rm -f -- "$new"; die 1 "cannot write $to"; }
  [ -z "$old_hash" ] || record "$to" "$wanted" "$kept"
  say "installed  $to"
}

# Takes a file back: what had stood there before returns.
take_back() {
  local path=$1 wanted=$2 kept=$3
  rm -f -- "$path.nexus-new" "$records/replaced/$kept.new"
  if is_there "$path" && ! has_hash "$path" "$wanted"; then
    if [ "$kept" != - ] && ! is_there "$records/replaced/$kept"; then
      say "is back    $path"
    elif [ "$kept" != - ] && [ "$(hash_of "$path")" = "$(hash_of "$records/replaced/$kept")" ]; then
      rm -f -- "$records/replaced/$kept"
    else
      say "left       $path, which was changed since$([ "$kept" = - ] || printf '; what had stood there is in %s' "$records/replaced/$kept")"
    fi
  elif [ "$kept" != - ] && is_there "$records/replaced/$kept"; then
    mv -f -- "$records/replaced/$kept" "$path"
    say "put back   $path"
  else
    rm -f -- "$path"
    say "removed    $path"
  fi
  record "$path"
}

# ---------------------------------------------------------------- systemd

has_manager() { command -v systemctl >/dev/null && systemctl --user show-environment >/dev/null 2>&1; }
is_active() { has_manager && systemctl --user --quiet is-active "$1"; }

say_linger() {
  local account
  account=$(id -un)
  if [ "$(loginctl show-user "$account" -p Linger --value 2>/dev/null)" = yes ]; then return; fi
  say "It runs while $account is logged in. To have it run from boot on and after logout: loginctl enable-linger $account"
}

say_without_systemd() {
  say "No systemd user manager answers here. To start the watcher without one:"
  printf '  NEXUS_BIN_DIR=%q %q --root %q\n' "$bin" "$tree/monitor/watcher/launcher.sh" "$root"
  say "and from cron or a login script, which starts it unless it runs:"
  printf '  @reboot NEXUS_BIN_DIR=%q %q --root %q --ensure\n' "$bin" "$tree/monitor/watcher/launcher.sh" "$root"
}

enable_unit() {
  has_manager || { say_without_systemd; die 1 "--enable needs a systemd user manager; everything else is installed"; }
  if ! is_active "$name.service" && [ "$(NEXUS_ROOT=$root "$bin/nexus-watcher" --instance-status 2>/dev/null | head -n1)" = "instance-lock: HELD" ]; then
    die 4 "a watcher that systemd did not start runs already; end it (kill \"\$(cat ${NEXUS_STATE_DIR:-$root/monitor/.state}/watcher.pid)\"), then run this again"
  fi
  systemctl --user daemon-reload
  systemctl --user --quiet enable "$name.service"
  systemctl --user restart "$name.service" || die 1 "it did not start: systemctl --user status $name.service"
  say "started    $name.service; systemctl --user status $name.service says how it fares"
  say_linger
}

# ---------------------------------------------------------------- install

# Every file: its place, its mode, and the command that prints it (programs are copied).
pages() { "$built/ng" manual --list; }

build_programs() {
  if [ $build = 1 ]; then
    # shellcheck source=scripts/find_rust.sh
    . "$tree/scripts/find_rust.sh"
    find_rust || die 2 "Rust is not installed, or its cargo does not run. Get it from https://rustup.rs (1.88 or later), then run this again"
    say "building ($profile); the first time takes a few minutes"
    local -a args=(build --locked --bins --quiet)
    [ $profile = debug ] || args+=(--release)
    (cd "$tree" && cargo "${args[@]}") || die 1 "the build failed; cargo's message is above; nothing was installed"
  fi
  [ -x "$built/ng" ] && [ -x "$built/nexus-watcher" ] || die 1 "nothing is built in $built; run this without --no-build"
}

plan() {
  say "would $([ $build = 0 ] || printf 'build (%s) and ' "$profile")put, replacing what is there by rename and keeping a copy of what is not ours:"
  say "  $bin/ng"
  say "  $bin/nexus-watcher"
  say "  $share/bash-completion/completions/ng"
  say "  $share/fish/vendor_completions.d/ng.fish"
  say "  $share/zsh/site-functions/_ng"
  say "  $share/man/man1/ng.1, and one page for each verb"
  if command -v systemctl >/dev/null; then say "  $unit, for the nexus $root"; fi
  say "  $manifest, which says what was put where"
  if [ $enable = 1 ]; then say "and would run: systemctl --user daemon-reload, enable, restart $name.service"; fi
}

install() {
  local work page
  build_programs
  work=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf -- '$work'" EXIT
  "$built/ng" completions bash >"$work/bash"
  "$built/ng" completions fish >"$work/fish"
  "$built/ng" completions zsh >"$work/zsh"
  "$built/ng" manual >"$work/ng.1"
  for page in $(pages); do "$built/ng" manual "$page" >"$work/ng-$page.1"; done
  # Everything that can fail by what is written in the configuration fails before anything is replaced.
  NEXUS_ROOT=$root "$built/ng" service unit --program "$bin/nexus-watcher" >"$work/unit" || die 1 "no unit could be made for $root; see above; nothing was installed"
  make_dir "$records"
  place "$built/nexus-watcher" "$bin/nexus-watcher" 755
  place "$built/ng" "$bin/ng" 755
  place "$work/bash" "$share/bash-completion/completions/ng" 644
  place "$work/fish" "$share/fish/vendor_completions.d/ng.fish" 644
  place "$work/zsh" "$share/zsh/site-functions/_ng" 644
  for page in "$work"/ng*.1; do place "$page" "$share/man/man1/$(basename "$page")" 644; done
  if command -v systemctl >/dev/null; then place "$work/unit" "$unit" 644; fi
  case :$PATH: in *":$bin:"*) ;; *) say "$bin is not in PATH; add it, or call $bin/ng" ;; esac
  if [ $enable = 1 ]; then enable_unit
  elif is_active "$name.service"; then
    systemctl --user daemon-reload
    say "The watcher that runs keeps its program until: systemctl --user restart $name.service"
  elif has_manager; then
    systemctl --user daemon-reload
    say "Nothing was started. To have systemd run it: scripts/install.sh --enable"
    say_linger
  else
    say_without_systemd
  fi
}

# ---------------------------------------------------------------- undo

undo() {
  local path wanted kept dir
  if ! [ -f "$manifest" ] && ! [ -f "$records/directories" ]; then
    if [ $dry = 0 ]; then rmdir -- "$records" 2>/dev/null || true; fi
    say "Nothing is installed below $prefix."
    return 0
  fi
  if [ $dry = 1 ]; then
    while IFS=$'\t' read -r path wanted kept; do
      if [ "$kept" = - ]; then say "would remove    $path"; else say "would put back  $path"; fi
    done < <(rows)
    return 0
  fi
  while IFS=$'\t' read -r path wanted kept; do
    case $path in *.service) if has_manager; then systemctl --user --quiet disable --now "$(basename "$path")" 2>/dev/null || true; fi ;; esac
  done < <(rows)
  while IFS=$'\t' read -r path wanted kept <&3; do take_back "$path" "$wanted" "$kept"; done 3< <(rows)
  if has_manager; then systemctl --user daemon-reload; fi
  # Directories that we made and that nobody else uses by now, the deepest first. Those of the records go last.
  if [ -f "$records/directories" ]; then mapfile -t made < <(sort -r -- "$records/directories"); fi
  for dir in ${made[@]+"${made[@]}"}; do rmdir -- "$dir" 2>/dev/null || true; done
  rm -f -- "$manifest" "$manifest.new"
  rm -f -- "$records/directories"
  rmdir -- "$records" 2>/dev/null || say "left       $records, which holds copies of what had been replaced"
  for dir in ${made[@]+"${made[@]}"}; do rmdir -- "$dir" 2>/dev/null || true; done
  say "Configuration, state and a watcher that the launcher started are left as they are."
}

rows() { [ ! -f "$manifest" ] || cat -- "$manifest"; }

if [ $action = undo ]; then undo
elif [ $dry = 1 ]; then plan
else install
fi
