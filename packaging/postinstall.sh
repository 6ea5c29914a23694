#!/bin/sh
# Makes the system user of the service. It does not start the service, and does not write a configuration.
set -e
if ! getent passwd parley >/dev/null; then
	useradd --system --user-group --no-create-home --home-dir /var/lib/parley --shell /usr/sbin/nologin parley
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
