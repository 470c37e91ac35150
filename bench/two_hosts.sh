# two_hosts.sh - two hosts for bench/run: network namespaces of this machine, joined by a veth pair. Needs root.
# Sets hosts_folder, which holds what both see: the key, and the agent by which mpirun reaches a host.
hosts_names=(hvdbench0 hvdbench1)
hosts_addresses=(10.213.77.1 10.213.77.2)
hosts_interface=bench0

make_hosts() {
  local i name
  ((EUID == 0)) || fail "hosts: needs root, for network namespaces"
  remove_hosts
  hosts_folder=$(mktemp -d)
  for name in "${hosts_names[@]}"; do
    ip netns add "$name" || fail "hosts: network namespaces are not permitted here"
  done
  ip link add $hosts_interface netns "${hosts_names[0]}" type veth peer name $hosts_interface netns "${hosts_names[1]}"
  for i in 0 1; do
    name=${hosts_names[i]}
    ip -n "$name" addr add "${hosts_addresses[i]}/24" dev $hosts_interface
    ip -n "$name" link set $hosts_interface up
    ip -n "$name" link set lo up
    # The same for all contestants. What a virtual machine has by default may pace, and is slower here.
    ip netns exec "$name" sysctl -qw net.ipv4.tcp_congestion_control=reno
  done
  for name in "${hosts_names[@]}"; do wait_for_carrier "$name"; done
  (umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$hosts_folder/key")
  write_agent
}

# The kernel notices a little later that a new link carries something; until then nobody listens on it.
wait_for_carrier() { # HOST
  local tries
  for ((tries = 0; tries < 100; ++tries)); do
    if [[ $(ip netns exec "$1" cat /sys/class/net/$hosts_interface/operstate) == up ]]; then return; fi
    sleep 0.05
  done
  fail "hosts: the link of $1 does not come up"
}

# `enter HOST COMMAND...` runs a command on a host, which has a name of its own, so that nobody takes two hosts for one.
# `agent HOST WORDS...` gives the words to a shell there, as ssh does: mpirun starts its daemons by it.
write_agent() {
  cat >"$hosts_folder/enter" <<'END'
#!/bin/sh
exec ip netns exec "$1" unshare --uts sh -c 'hostname "$1"; shift; exec "$@"' enter "$@"
END
  cat >"$hosts_folder/agent" <<END
#!/bin/sh
host=\$1
shift
exec "$hosts_folder/enter" "\$host" sh -c "\$*"
END
  chmod +x "$hosts_folder"/{enter,agent}
}

remove_hosts() {
  local name
  [[ -z ${hosts_folder:-} ]] || stop_ssh_servers
  for name in "${hosts_names[@]}"; do ip netns del "$name" 2>/dev/null || true; done
  [[ -z ${hosts_folder:-} ]] || rm -rf "$hosts_folder"
}

limit_link() { # MBITS, both directions; 0: as quick as it goes
  local name
  for name in "${hosts_names[@]}"; do
    ip netns exec "$name" tc qdisc del dev $hosts_interface root 2>/dev/null || true
    (($1 == 0)) || ip netns exec "$name" tc qdisc add dev $hosts_interface root tbf rate "${1}mbit" burst 512kb latency 50ms
  done
}

# Median of three measurements in Mbit/s; with --bidir the mean of both directions.
iperf_mbits() { # [--bidir]
  local i
  ip netns exec "${hosts_names[0]}" iperf3 -s -1 -D -B "${hosts_addresses[0]}" >/dev/null
  for i in 1 2 3; do
    sleep 0.3
    ip netns exec "${hosts_names[1]}" iperf3 -c "${hosts_addresses[0]}" -t 2 -J "$@" | python3 -c '
import json, sys
end = json.load(sys.stdin)["end"]
rates = [end[k]["bits_per_second"] for k in ("sum_received", "sum_received_bidir_reverse") if k in end]
print(sum(rates) / len(rates) / 1e6)'
    if ((i < 3)); then
      ip netns exec "${hosts_names[0]}" iperf3 -s -1 -D -B "${hosts_addresses[0]}" >/dev/null
    fi
  done | sort -g | sed -n 2p
}

# An ssh server on each host, with keys of its own. Sets ssh_options (of ssh).
start_ssh_servers() {
  local i
  mkdir -p /run/sshd
  ssh-keygen -q -t ed25519 -N '' -f "$hosts_folder/host"
  ssh-keygen -q -t ed25519 -N '' -f "$hosts_folder/user"
  for i in 0 1; do
    cat >"$hosts_folder/sshd$i" <<END
Port 2222
ListenAddress ${hosts_addresses[i]}
HostKey $hosts_folder/host
AuthorizedKeysFile $hosts_folder/user.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
StrictModes no
UsePAM no
PidFile $hosts_folder/sshd$i.pid
END
    on_host "$i" /usr/sbin/sshd -f "$hosts_folder/sshd$i"
  done
  ssh_options=(-p 2222 -i "$hosts_folder/user" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR)
}

# Ends with the namespace otherwise, but a process that waits for nothing keeps it alive.
stop_ssh_servers() {
  local file
  for file in "$hosts_folder"/sshd?.pid; do
    [[ ! -f $file ]] || kill "$(<"$file")" 2>/dev/null || true
  done
}

# Runs a command on a host, under the name of the host.
on_host() { # NUMBER COMMAND...
  "$hosts_folder/enter" "${hosts_names[$1]}" "${@:2}"
}
