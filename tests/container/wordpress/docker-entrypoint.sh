#!/bin/sh
# Does what the entrypoint of the official image does before Apache starts.
set -eu
case $1 in
	apache2*)
		if [ ! -e index.php ] && [ ! -e wp-includes/version.php ]; then
			tar -C /usr/src/wordpress -c . | tar -x
		fi
		if [ ! -e wp-config.php ] && [ -n "${WORDPRESS_DB_HOST:-}" ]; then
			cp wp-config-docker.php wp-config.php
			[ "$(id -u)" != 0 ] || chown www-data:www-data wp-config.php
		fi
		;;
esac
exec "$@"
