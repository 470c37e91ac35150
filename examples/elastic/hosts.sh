#!/bin/sh
# Hosts of the job, one "host:slots" per line: whatever hosts.txt says right now.
cat "${HOSTS_FILE:-hosts.txt}"
