#!/bin/sh
# Makes the user that the service runs as. Nothing is started, and no configuration is written.
set -e
if ! getent passwd parley >/dev/null; then
	useradd --system --user-group --no-create-home --home-dir /var/lib/parley --shell /usr/sbin/nologin parley
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
