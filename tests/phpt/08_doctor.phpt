--TEST--
The self-test calls the runner with the configuration as flags, and a missing answer is an error
--INI--
wp_codebox.runner={PWD}/fixtures/fake-runner
wp_codebox.state_dir=/srv/state
wp_codebox.share_dir=/srv/share
wp_codebox.launcher=/srv/launch
wp_codebox.php_binary=/srv/php
wp_codebox.cgroup=/srv/cgroup
wp_codebox.guest_ids=1950000000:4096
wp_codebox.agents_dir=
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
use WPCodebox\Native\Extension;

putenv( 'LEAKED=1' );
$answer = Extension::doctor();
$facts  = $answer['facts'];
echo $answer['schema'], ' ', $answer['status'], ' ', $answer['level'], "\n";
echo implode( ' ', $facts['argv'] ), "\n";
var_dump( $facts['env'], $facts['cwd'], $facts['fds']['fd0'], str_starts_with( $facts['fds']['fd1'], 'pipe:' ), $facts['fds']['fd2'] );
var_dump( zombies() );

foreach ( [ '/bin/true', '/bin/false', '/nonexistent/runner', '/etc/passwd' ] as $runner ) {
	[ , $output ] = in_child( 'caught(static fn() => WPCodebox\Native\Extension::doctor()); echo zombies(), "\n";', [ 'wp_codebox.runner' => $runner ] );
	echo "$runner: $output";
}
?>
--EXPECT--
wp-codebox/doctor/v1 ok full
doctor --json --state /srv/state --share /srv/share --launcher /srv/launch --php /srv/php --cgroup /srv/cgroup --identity auto --guest-ids 1950000000:4096
string(0) ""
string(1) "/"
string(9) "/dev/null"
bool(true)
string(9) "/dev/null"
int(0)
/bin/true: UnavailableException wp_codebox_runner_unavailable
0
/bin/false: UnavailableException wp_codebox_runner_unavailable
0
/nonexistent/runner: UnavailableException wp_codebox_runner_unavailable
0
/etc/passwd: UnavailableException wp_codebox_runner_unavailable
0
