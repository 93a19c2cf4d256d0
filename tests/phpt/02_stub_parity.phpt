--TEST--
The stub and the loaded extension describe the same classes
--FILE--
<?php
$describe = __DIR__ . '/fixtures/describe.php';
$stub     = getenv( 'CODEBOX_ROOT' ) . '/ext/php/stubs/wp_codebox.stub.php';
$run      = static function ( string ...$arguments ): array {
	$process = proc_open( array_merge( [ PHP_BINARY, '-n' ], $arguments ), [ 1 => [ 'pipe', 'w' ] ], $pipes );
	$text    = stream_get_contents( $pipes[1] );
	proc_close( $process );
	return preg_split( '/\n/', $text, -1, PREG_SPLIT_NO_EMPTY );
};
$loaded = $run( '-d', 'extension=' . getenv( 'CODEBOX_SO' ), $describe );
$stubbed = $run( $describe, $stub );
// PHP does not define an order of the members of a class, so they are compared as sets.
sort( $loaded );
sort( $stubbed );
foreach ( array_diff( $loaded, $stubbed ) as $line ) {
	echo "only in the extension: $line\n";
}
foreach ( array_diff( $stubbed, $loaded ) as $line ) {
	echo "only in the stub: $line\n";
}
var_dump( $loaded === $stubbed, count( $loaded ) > 60 );
?>
--EXPECT--
bool(true)
bool(true)
