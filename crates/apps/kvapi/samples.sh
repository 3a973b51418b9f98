#!/usr/bin/env bash
# Builds OpenMPDK's unchanged sample programs against libkvapi, and runs them.
#
#   crates/apps/kvapi/samples.sh KVSSD [URI]
#
# KVSSD is a checkout of https://github.com/OpenMPDK/KVSSD; URI is a drive, by default one in RAM. A sample
# deletes its key space when it ends, so its next run starts empty.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
samples=${1:?give the folder of a checkout of OpenMPDK/KVSSD}/PDK/core/sample_code
uri=${2:-/dev/kvemul}
target=${CARGO_TARGET_DIR:-$here/../../../target}
cargo build --locked --release -p nandex-kvapi --manifest-path "$here/Cargo.toml"
built=$(mktemp -d)
trap 'rm -r "$built"' EXIT
# Each unchanged, and with the insertions before reads and deletes that its comments contain.
for name in test_sync test_async; do
  sed 's|//perform_insertion|perform_insertion|' "$samples/$name.cpp" >"$built/${name}_filled.cpp"
  cp "$samples/$name.cpp" "$built"
  for program in "$name" "${name}_filled"; do
    g++ -O2 -w -pthread -I"$here/include" "$built/$program.cpp" -o "$built/$program" \
      -L"$target/release" -lkvapi -Wl,-rpath,"$(cd "$target/release" && pwd)"
  done
done

# Runs a program, one of whose output lines, or none, must contain the words.
expect() {
  local words=$1
  shift
  "$@" >"$built/log" 2>&1 && grep -qaF "$words" "$built/log" || fail "$words is missing" "$@"
  echo "ok: $(basename "$1") ${*:2}: $(grep -aF "$words" "$built/log" | tail -n 1)"
}

refuse() {
  local words=$1
  shift
  "$@" >"$built/log" 2>&1 && ! grep -qaF "$words" "$built/log" || fail "$words is there" "$@"
}

fail() {
  echo "failed: $(basename "$2") ${*:3}: $1; the end of what it printed:" >&2
  tail -n 5 "$built/log" >&2
  exit 1
}

for name in test_sync test_async; do
  run="$built/$name -d $uri -n 1000 -k 16 -v 4096"
  expect "Throughput" $run -o 1 -t 4
  expect "After: Total used is" $run -o 2
  expect "Throughput" $run -o 3
  expect "Done with all keys. Total: 0" $run -o 4
  expect "exist? FALSE" $run -o 5
  run="$built/${name}_filled -d $uri -n 1000 -k 16 -v 4096"
  expect "Throughput" $run -o 2
  refuse "failed" $run -o 2
  expect "Throughput" $run -o 3
  expect "exist? TRUE" $run -o 5
  refuse "FALSE" $run -o 5
done
