# shellcheck shell=bash
# Sourced by the other scripts: makes `cargo` answer, where Rust is installed but not for this HOME.

# rustup keeps its toolchains in HOME. With another HOME (a trial, a service), they still lie beside its `cargo`.
find_rust() {
  local home
  if ! command -v cargo >/dev/null && [ -x "${HOME:-/root}/.cargo/bin/cargo" ]; then PATH=${HOME:-/root}/.cargo/bin:$PATH; fi
  command -v cargo >/dev/null || return 1
  home=$(dirname "$(dirname "$(dirname "$(command -v cargo)")")")
  if [ -z "${RUSTUP_HOME:-}" ] && [ ! -d "${HOME:-}/.rustup/toolchains" ] && [ -d "$home/.rustup/toolchains" ]; then
    export RUSTUP_HOME=$home/.rustup CARGO_HOME=${CARGO_HOME:-$home/.cargo}
  fi
  cargo --version >/dev/null 2>&1
}
