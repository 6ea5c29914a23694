#!/bin/sh
# Keeps the user, /etc/parley and /var/lib/parley, because the records of a node must survive the removal of the program.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
