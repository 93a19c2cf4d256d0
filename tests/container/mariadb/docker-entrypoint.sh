#!/bin/sh
# Creates the database and the user that the environment names, then serves them on the network.
set -eu
chown mysql:mysql /var/lib/mysql
if [ ! -d /var/lib/mysql/mysql ]; then
	mariadb-install-db --user=mysql --skip-test-db >/dev/null
fi
cat >/tmp/init.sql <<SQL
CREATE DATABASE IF NOT EXISTS \`$MARIADB_DATABASE\`;
CREATE USER IF NOT EXISTS '$MARIADB_USER'@'%' IDENTIFIED BY '$MARIADB_PASSWORD';
GRANT ALL ON \`$MARIADB_DATABASE\`.* TO '$MARIADB_USER'@'%';
SQL
exec mariadbd --user=mysql --bind-address=0.0.0.0 --init-file=/tmp/init.sql
