<?php
/**
 * Runs PHP as its command line would: arguments, streams and working directory. Input: mode and cwd; depending on the
 * mode also code, file, argv, shown. Without strict types, because code that is evaluated here would inherit them.
 */
$codebox_input = json_decode( (string) getenv( 'CODEBOX_INPUT' ), true );
putenv( 'CODEBOX_INPUT' );
unset( $_SERVER['CODEBOX_INPUT'], $_ENV['CODEBOX_INPUT'] );
chdir( $codebox_input['cwd'] );
while ( ob_get_level() > 0 ) {
	ob_end_flush();
}
ob_implicit_flush();
foreach ( [
	'STDIN'  => [ 'php://stdin', 'rb' ],
	'STDOUT' => [ 'php://stdout', 'wb' ],
	'STDERR' => [ 'php://stderr', 'wb' ],
] as $codebox_name => $codebox_stream ) {
	defined( $codebox_name ) || define( $codebox_name, fopen( ...$codebox_stream ) );
}
$argv            = $codebox_input['argv'] ?? [];
$argc            = count( $argv );
$_SERVER['argv'] = $argv;
$_SERVER['argc'] = $argc;
switch ( $codebox_input['mode'] ) {
	case 'version':
		echo 'PHP ', PHP_VERSION, ' (WebAssembly, ', php_uname( 'm' ), ")\n";
		break;
	case 'modules':
		echo implode( "\n", get_loaded_extensions() ), "\n";
		break;
	case 'lint':
		if ( ! is_file( $codebox_input['file'] ) ) {
			fwrite( STDERR, 'Could not open input file: ' . $codebox_input['shown'] . "\n" );
			exit( 1 );
		}
		try {
			token_get_all( (string) file_get_contents( $codebox_input['file'] ), TOKEN_PARSE );
			echo 'No syntax errors detected in ', $codebox_input['shown'], "\n";
		} catch ( ParseError $codebox_error ) {
			printf( "PHP Parse error:  %s in %s on line %d\n", $codebox_error->getMessage(), $codebox_input['shown'], $codebox_error->getLine() );
			exit( 255 );
		}
		break;
	case 'code':
		eval( $codebox_input['code'] );
		break;
	case 'wp':
		eval( '?>' . $codebox_input['code'] );
		break;
	case 'phar':
		putenv( 'SHELL_PIPE=0' );
		require 'phar://' . $codebox_input['file'] . '/php/boot-phar.php';
		break;
	default:
		require $codebox_input['file'];
}
exit( 0 );
