#!/bin/sh
exec mariadb -h 127.0.0.1 -u "$MARIADB_USER" "-p$MARIADB_PASSWORD" "$MARIADB_DATABASE" -e 'SELECT 1'
