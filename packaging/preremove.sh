#!/bin/sh
# Stops the node if the package is removed, but not if it is upgraded: dpkg says "remove", rpm says 0.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now parley.service
	fi
	;;
esac
