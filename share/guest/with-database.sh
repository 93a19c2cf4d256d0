# Runs a program while the database server runs: with-database.sh SERVER PROGRAM [ARGUMENT…]. Fails unless
# the server shuts down in order, so a template contains no database that needs recovery.
set -eu
server=$1
shift
log=/tmp/mariadb.log
"$server" --defaults-file="$(dirname "$0")/mariadb.cnf" > "$log" 2>&1 &
pid=$!
tries=0
until mariadb-admin --no-defaults --socket=/run/mysqld/mysqld.sock --user=nobody ping > /dev/null 2>&1; do
	tries=$((tries + 1))
	if ! kill -0 "$pid" 2> /dev/null || [ "$tries" -gt 600 ]; then
		cat "$log" >&2
		exit 1
	fi
	sleep 0.1
done
status=0
"$@" || status=$?
kill "$pid"
wait "$pid" || { cat "$log" >&2; exit 1; }
exit "$status"
