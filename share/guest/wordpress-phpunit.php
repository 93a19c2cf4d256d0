<?php
/**
 * Runs the command `wordpress.phpunit` for the project in the current directory, and prints PHPUnit's output.
 *
 * A check has no WordPress and no test library of its own, so a bootstrap file that looks for WordPress's test library ends
 * PHPUnit. The command brings both.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

$here = (string) getcwd();
$call = array(
	'command' => 'wordpress.phpunit',
	'args'    => array( 'bootstrap-mode' => 'managed' ),
);
// A plugin is mounted in WordPress and below /workspace.
if ( 1 === preg_match( '~/(?:wordpress/wp-content/plugins|workspace)/([^/]+)$~D', $here, $found ) && is_dir( "/wordpress/wp-content/plugins/$found[1]" ) ) {
	$call['args']['plugin-slug'] = $found[1];
} else {
	$call['args']['cwd'] = $here;
}
if ( $argc > 1 ) {
	$call['args']['phpunit-args-json'] = json_encode( array_slice( $argv, 1 ) );
}
$pipes   = array();
$process = proc_open(
	array( 'php', '-n', __DIR__ . '/commands/phpunit.php' ),
	array( array( 'pipe', 'r' ), array( 'pipe', 'w' ) ),
	$pipes
);
fwrite( $pipes[0], (string) json_encode( $call ) );
fclose( $pipes[0] );
$document = json_decode( (string) stream_get_contents( $pipes[1] ), true );
proc_close( $process );
$text = $document['output'] ?? '';
echo is_array( $text ) ? $text['text'] ?? '' : $text;
if ( ! is_array( $document ) || isset( $document['error'] ) ) {
	fwrite( STDERR, 'wordpress-phpunit: ' . ( $document['error']['message'] ?? 'the command gave no result' ) . "\n" );
}
exit( 'passed' === ( $document['status'] ?? '' ) ? 0 : max( 1, (int) ( $document['exitCode'] ?? 1 ) ) );
