#!/bin/sh
# Runs a command in a Slurm cluster of two nodes, n1 and n2, that lives and ends with it. To be started in new
# network, mount, uts and pid namespaces: nothing of it is seen outside.
set -eu
ip link set lo up
# Slurm looks names up only where there is an address other than the loopback's.
ip link add eth0 type veth peer name eth1
ip addr add 10.77.0.1/24 dev eth0
ip link set eth1 up
ip link set eth0 up
hostname ctl

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/slurm" "$place/state" "$place/state/ctld" "$place/state/n1" "$place/state/n2"
{ cat /etc/hosts; echo "10.77.0.1 ctl n1 n2"; } >"$place/hosts"
mount --bind "$place/hosts" /etc/hosts
cat >"$place/slurm/slurm.conf" <<END
ClusterName=hvd
SlurmctldHost=ctl(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1
MpiDefault=none
StateSaveLocation=$place/state/ctld
SlurmdSpoolDir=$place/state/%n
SlurmctldPidFile=$place/slurmctld.pid
SlurmdPidFile=$place/slurmd-%n.pid
SlurmctldLogFile=$place/slurmctld.log
SlurmdLogFile=$place/slurmd-%n.log
NodeName=n[1-2] NodeHostname=ctl NodeAddr=10.77.0.1 Port=[17001-17002] CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
echo "CgroupPlugin=cgroup/v1" >"$place/slurm/cgroup.conf"
mount --bind "$place/slurm" /etc/slurm

mkdir -p /run/munge
mount -t tmpfs none /run/munge
chown munge: /run/munge
su -s /bin/sh munge -c /usr/sbin/munged
slurmctld
slurmd -N n1
slurmd -N n2
tries=0
until [ "$(sinfo --noheader --states=idle --format=%D 2>/dev/null)" = 2 ]; do
  tries=$((tries + 1))
  if [ "$tries" -gt 100 ]; then
    echo "the nodes did not come up" >&2
    cat "$place"/*.log >&2
    exit 1
  fi
  sleep 0.1
done
"$@"
