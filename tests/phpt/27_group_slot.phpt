--TEST--
GroupSlot limits the open groups per user and in total, and frees a slot when its object is destroyed
--FILE--
<?php
require __DIR__ . '/fixtures/lib.php';
require __DIR__ . '/fixtures/bundle.php';

// Settings cannot change after the start of PHP, so the work is done in child processes.
$state = sys_get_temp_dir() . '/wpcb-slots-' . getmypid();
mkdir( $state, 0700 );
register_shutdown_function( static fn() => remove( $state ) );
// When root runs the test, another user owns the directory, as on a real site.
0 === fileowner( $state ) && chown( $state, 65534 ) && chgrp( $state, 65534 );

$in = static function ( string $code, array $settings = [] ) use ( $state ): void {
	[ $status, $output, $errors ] = in_child(
		'use WPCodebox\Native\GroupSlot; $state = ' . var_export( $state, true ) . ';
		$held = [];
		$take = static function ( int $user, string $site = "site-1" ) use ( &$held ) {
			return caught( static function () use ( $user, $site, &$held ): void { $held[] = GroupSlot::take( $site, $user ); } );
		}; ' . $code,
		$settings + [ 'wp_codebox.state_dir' => $state ]
	);
	echo $output, $errors, 0 === $status ? '' : "exit $status\n";
};

$in(
	'$take( 1 );
	$take( 1 );
	$e = $take( 1 );
	echo $e->getMessage(), " ", $e->httpStatus, "\n";
	echo "another user, another site, and the first one again\n";
	$take( 2 );
	$take( 1, "site-2" );
	array_shift( $held );
	$take( 1 );
	$take( 1 );
	caught( static fn() => GroupSlot::take( "../site-1", 1 ) );
	clearstatcache();
	foreach ( glob( "$state/sites/site-1/slots/*" ) as $file ) {
		echo basename( $file ), " ", decoct( fileperms( $file ) & 0777 ), " ", fileowner( $file ) === fileowner( $state ) ? "ours" : "not ours", "\n";
	}'
);
echo "an ended process holds no slot\n";
$in( '$take( 1 ); $take( 1 );' );
echo "all users together\n";
$in( '$take( 1 ); $take( 2 ); $take( 3 ); $e = $take( 4 ); echo $e->getMessage(), "\n";', [ 'wp_codebox.max_runs' => '3' ] );
echo "the setting\n";
$in( '$take( 1 ); $take( 1 );', [ 'wp_codebox.max_groups' => '1' ] );
foreach ( [ '0', '65', 'many' ] as $most ) {
	$in( '$e = $take( 1 ); echo $e->getMessage(), "\n";', [ 'wp_codebox.max_groups' => $most ] );
}
?>
--EXPECT--
no exception
no exception
UnavailableException wp_codebox_busy
this user has 2 batches or fan-outs open, as many as this host allows (wp_codebox.max_groups); wait for one to end 429
another user, another site, and the first one again
no exception
no exception
no exception
UnavailableException wp_codebox_busy
InvalidInputException wp_codebox_input_invalid
all-0 600 ours
all-1 600 ours
all-2 600 ours
user-1-0 600 ours
user-1-1 600 ours
user-2-0 600 ours
an ended process holds no slot
no exception
no exception
all users together
no exception
no exception
no exception
UnavailableException wp_codebox_busy
3 batches or fan-outs are open, as many as runs may be alive (wp_codebox.max_runs); wait for one to end
the setting
no exception
UnavailableException wp_codebox_busy
UnavailableException wp_codebox_config_invalid
wp_codebox.max_groups must be a whole number from 1 to 64; set it in php.ini
UnavailableException wp_codebox_config_invalid
wp_codebox.max_groups must be a whole number from 1 to 64; set it in php.ini
UnavailableException wp_codebox_config_invalid
wp_codebox.max_groups must be a whole number from 1 to 64; set it in php.ini
