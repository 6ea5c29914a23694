#!/bin/sh
# Leaves the user, /etc/parley and /var/lib/parley in place: the records of a node are worth more than the program.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
