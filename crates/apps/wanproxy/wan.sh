#!/usr/bin/env bash
# Measures `nandex wan proxy` over a slow link, with and without both halves.
#
#   [RATE=10mbit] [LINK=namespaces|loopback] [NANDEX=PROGRAM] crates/apps/wanproxy/wan.sh [ARGUMENT...]
#
# The link is a pair of veth devices between two network namespaces, and `tc tbf` at each end limits it to RATE. The
# client half and the measurement are in one namespace, the server half and its target in the other. LINK=loopback
# needs neither root nor tc: one process has all of it, with a token bucket for the link. Arguments go to
# `nandex wan proxy measure`, such as --json, --runs 3 and --bytes 1MiB. Without NANDEX the command is built.
#
# Both namespaces, their processes and the caches are removed when this ends, by itself or by a signal (except KILL).
# The machine's own network is not changed, and no byte leaves the namespaces.
set -euo pipefail
rate=${RATE:-10mbit}
here=${BASH_SOURCE[0]%/*}
[[ $here != "${BASH_SOURCE[0]}" ]] || here=.
near=nandex-wan-near-$$ far=nandex-wan-far-$$
# Addresses for examples (RFC 5737), used in these namespaces only.
near_ip=192.0.2.1 far_ip=192.0.2.2

refuse() {
  echo "wan.sh: $1" >&2
  echo "wan.sh: or measure on loopback, with a token bucket in place of tc: LINK=loopback" >&2
  exit 1
}

# The bytes of 5 ms at the rate, and at least a large packet.
burst_bytes() {
  local unit bits
  case $rate in
    *gbit) unit=gbit bits=1000000000 ;;
    *mbit) unit=mbit bits=1000000 ;;
    *kbit) unit=kbit bits=1000 ;;
    *) unit=none bits=0 ;;
  esac
  local number=${rate%"$unit"}
  [[ $number =~ ^[1-9][0-9]{0,8}$ ]] || { echo "wan.sh: RATE=$rate is not a rate; write it like 10mbit" >&2; exit 1; }
  local burst=$((number * bits / 8 / 200))
  echo $((burst > 16384 ? burst : 16384))
}

find_nandex() {
  if [[ -n ${NANDEX:-} ]]; then
    nandex=$NANDEX
  else
    cargo build --locked --release -p nandex-cli --manifest-path "$here/../../../Cargo.toml"
    nandex=${CARGO_TARGET_DIR:-$here/../../../target}/release/nandex
  fi
  [[ -x $nandex ]] || { echo "wan.sh: there is no program $nandex; omit NANDEX to build it" >&2; exit 1; }
  nandex=$(realpath "$nandex")
}

processes=() spaces=() folder=
clean_up() {
  trap - EXIT
  trap '' HUP INT TERM
  # A process that has already ended is ignored.
  for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
  for process in "${processes[@]}"; do wait "$process" 2>/dev/null || true; done
  for space in "${spaces[@]}"; do ip netns del "$space" 2>/dev/null || true; done
  [[ -z $folder ]] || rm -r "$folder"
}

# Creates a namespace, which is removed at the end. It is noted before, so that no signal arrives in between.
make_space() {
  local said before=("${spaces[@]}")
  spaces+=("$1")
  said=$(ip netns add "$1" 2>&1) || {
    spaces=("${before[@]}")
    refuse "cannot create a network namespace here ($said): run it as root, where that is allowed"
  }
  ip -n "$1" link set lo up
}

slow_down() {
  local said
  said=$(tc -n "$1" qdisc add dev wan0 root tbf rate "$rate" burst "$burst" latency 50ms 2>&1) ||
    refuse "tc cannot limit the link ($said): load its module with \`modprobe sch_tbf\`, or use a kernel with CONFIG_NET_SCH_TBF"
}

make_link() {
  make_space "$near"
  make_space "$far"
  local said
  said=$(ip -n "$near" link add wan0 type veth peer name wan0 netns "$far" 2>&1) ||
    refuse "cannot create a pair of veth devices ($said): load its module with \`modprobe veth\`"
  ip -n "$near" address add "$near_ip/30" dev wan0
  ip -n "$far" address add "$far_ip/30" dev wan0
  for space in "$near" "$far"; do
    ip -n "$space" link set wan0 up
    slow_down "$space"
  done
}

# Starts a command in a namespace, and waits until its output contains these words.
start() {
  local space=$1 log=$folder/$2 words=$3
  shift 3
  # The command replaces `ip` and the shell before it, so its process id is known.
  (cd "$folder" && exec ip netns exec "$space" "$nandex" wan proxy "$@") >"$log" 2>&1 &
  processes+=($!)
  for _ in {1..600}; do
    ! grep -qs "$words" "$log" || return 0
    kill -0 $! 2>/dev/null || break
    sleep 0.1
  done
  echo "wan.sh: \`nandex wan proxy $*\` has not started; its output:" >&2
  cat "$log" >&2
  exit 1
}

case ${LINK:-namespaces} in
  loopback)
    burst_bytes >/dev/null
    find_nandex
    echo "wan.sh: the link is a token bucket of $rate in one process on loopback, without namespaces and tc" >&2
    exec "$nandex" wan proxy measure --rate "$rate" "$@"
    ;;
  namespaces) ;;
  *)
    echo "wan.sh: LINK=$LINK is invalid; expected namespaces or loopback" >&2
    exit 1
    ;;
esac
burst=$(burst_bytes)
for tool in ip tc; do
  command -v "$tool" >/dev/null || refuse "there is no \`$tool\`: install iproute2"
done
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
make_link
find_nandex
folder=$(mktemp -d)
echo "wan.sh: the link is a veth pair between two namespaces, tc tbf rate $rate burst $burst latency 50ms each way" >&2
"$nandex" wan proxy key "$folder/key"
start "$far" target "^target on" target --listen "$far_ip:7803" --public
start "$far" server "^server on" server --listen "$far_ip:7801" --public --target "$far_ip:7803" --key key \
  --cache there.nandex --size 256MiB
start "$near" client "^forward on" client --listen 127.0.0.1:7802 --peer "$far_ip:7801" --key key \
  --cache here.nandex --size 256MiB
# In the background, so that a signal takes effect immediately.
ip netns exec "$near" "$nandex" wan proxy measure --direct "$far_ip:7803" --through 127.0.0.1:7802 --device wan0 \
  --rate "$rate" "$@" &
processes+=($!)
wait $!
