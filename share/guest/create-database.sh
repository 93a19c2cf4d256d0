# Creates the database directory of a template: create-database.sh SERVER. Runs inside a guest, once for
# each template. `root` gets an invalid password here; each guest sets the password of its own run.
set -eu
server=$1
here=$(dirname "$0")
data=/wordpress/wp-content/database
mkdir "$data"
printf '<?php\n// Silence is golden.\n' > "$data/index.php"
mariadb-install-db --defaults-file="$here/mariadb.cnf" --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve
exec /bin/sh "$here/with-database.sh" "$server" mariadb --no-defaults --socket=/run/mysqld/mysqld.sock --user=root --execute="
	DROP USER IF EXISTS 'root'@'codebox', ''@'localhost', ''@'codebox';
	ALTER USER 'root'@'localhost' IDENTIFIED VIA mysql_native_password USING 'invalid';
	ALTER USER 'root'@'127.0.0.1' IDENTIFIED VIA mysql_native_password USING 'invalid';
	ALTER USER 'root'@'::1' IDENTIFIED VIA mysql_native_password USING 'invalid';
	CREATE DATABASE wordpress;
	CREATE DATABASE wordpress_test;
	CREATE USER 'agent'@'localhost' IDENTIFIED VIA unix_socket;
	GRANT ALL ON \`wordpress%\`.* TO 'agent'@'localhost';
"
