#!/bin/sh
# Stops the node if the package is removed. An upgrade does not stop it. At a removal, $1 is "remove" (dpkg) or 0 (rpm).
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now parley.service
	fi
	;;
esac
