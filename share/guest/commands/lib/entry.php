<?php
/**
 * Start and end of a guest program that implements a command such as `wordpress.nonce`.
 *
 * Standard input is one JSON object, `{command, args, mounts, site: {url, path}}`. Standard output is one
 * JSON document: the command's result, with status 0, or `{error: {code, message}}` with status 1. Other
 * output of WordPress and plugins is dropped; when a plugin ends PHP, the document is an error that reports
 * it.
 *
 * The program calls begin(), loads WordPress in the global scope, as a request would, and calls finish() with
 * a function that does its work.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/refusal.php';
require_once __DIR__ . '/arguments.php';
require_once __DIR__ . '/values.php';
require_once __DIR__ . '/supervise.php';
require_once __DIR__ . '/result.php';
require_once __DIR__ . '/shortening.php';

/** Size limit of a result document, in bytes. */
const DOCUMENT_BYTES = 4 * 1024 * 1024;

/** Guest directory of the files that commands write for the run's bundle. */
const ARTIFACTS = '/tmp/codebox-artifacts';

/** Size limit of output of WordPress and plugins that is passed on to standard error, in bytes. */
const NOISE_BYTES = 65536;

/**
 * State of the command in this process.
 */
final class Entry {
	/** Arguments of the command. */
	public static ?Arguments $arguments = null;

	/**
	 * Result document of the command; null until its work is done.
	 *
	 * @var ?array<string,mixed>
	 */
	public static ?array $document = null;

	/**
	 * Stream to which the result document is written.
	 *
	 * @var resource
	 */
	public static $stream;

	/** Prints the result document if a plugin's shutdown function ends PHP before it was printed. */
	public static ?Shutdown_Document $shutdown_document = null;

	/** Whether the result document was printed. */
	public static bool $printed = false;

	/**
	 * Builds the result document when other code ends PHP before the work is done; for a page this is normal.
	 *
	 * @var ?\Closure(): ?array<string,mixed>
	 */
	public static ?\Closure $at_exit = null;

	/**
	 * Files that the command wrote for the run's bundle: rows {path, kind, contentType}.
	 *
	 * @var list<array<string,string>>
	 */
	public static array $artifacts = array();

	/** Output of WordPress and plugins that was captured and that captured_output() has not returned yet. */
	public static string $captured = '';

	/**
	 * Name of the command and URL of the site.
	 *
	 * @var array{command: string, url: string}
	 */
	public static array $call = array(
		'command' => '',
		'url'     => 'http://localhost',
	);
}

/**
 * Object that PHP destroys after every shutdown function, even after one that ends PHP.
 */
final class Shutdown_Document {
	/**
	 * Prints the document if no shutdown function has printed it.
	 */
	public function __destruct() {
		end_program();
	}
}

/**
 * Reads the command from standard input, and redirects all other code's output away from standard output.
 */
function begin(): Arguments {
	$stream = Supervisor::enter();
	ini_set( 'display_errors', 'stderr' );
	ini_set( 'log_errors', '0' );
	Entry::$stream = $stream;
	$stdin   = (string) stream_get_contents( STDIN );
	$request = json_decode( $stdin, true );
	// Captures plugin output; the supervisor captures output that bypasses this buffer.
	ob_start(
		static function ( string $piece ): string {
			if ( strlen( Entry::$captured ) < DOCUMENT_BYTES ) {
				Entry::$captured .= $piece;
			}
			return '';
		}
	);
	Entry::$shutdown_document = new Shutdown_Document();
	// Registered during PHP's shutdown, so it runs after WordPress's shutdown functions.
	register_shutdown_function( static fn () => register_shutdown_function( end_program( ... ) ) );
	if ( ! is_array( $request ) || ! is_array( $request['args'] ?? null ) ) {
		Entry::$document = failure( 'wp_codebox_input_invalid', 'standard input must be a JSON object {"command", "args", "mounts"}' );
		exit( 1 );
	}
	Entry::$call      = array(
		'command' => (string) ( $request['command'] ?? '' ),
		'url'     => (string) ( $request['site']['url'] ?? 'http://localhost' ),
	);
	Entry::$arguments = new Arguments( $request['args'], (array) ( $request['mounts'] ?? array() ) );
	return Entry::$arguments;
}

/**
 * Returns the file that loads WordPress, and sets the server variables that WordPress expects in a request.
 *
 * @param string $target Path and query of the request.
 * @param string $method Method of the request.
 */
function wordpress( string $target = '/', string $method = 'GET' ): string {
	$query                      = (string) parse_url( 'http://localhost' . $target, PHP_URL_QUERY );
	$_SERVER['HTTP_HOST']       = 'localhost';
	$_SERVER['SERVER_NAME']     = 'localhost';
	$_SERVER['SERVER_PORT']     = '80';
	$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
	$_SERVER['REMOTE_ADDR']     = '127.0.0.1';
	$_SERVER['REQUEST_METHOD']  = $method;
	$_SERVER['REQUEST_URI']     = $target;
	$_SERVER['QUERY_STRING']    = $query;
	parse_str( $query, $_GET );
	$_REQUEST = $_GET;
	return root() . '/wordpress/wp-load.php';
}

/**
 * Returns the path of the guest's root directory without a trailing slash: '' unless the guest has no root
 * file system of its own. This file is at /opt/codebox/guest/commands/lib below the root.
 */
function root(): string {
	return rtrim( dirname( __DIR__, 5 ), '/' );
}

/**
 * Runs the command's work, stores its result document and ends the program.
 *
 * @param callable(Arguments): array<string,mixed> $work Performs the work and returns the document.
 */
function finish( callable $work ): never {
	try {
		Entry::$document = named( $work( Entry::$arguments ) );
	} catch ( Refusal $refusal ) {
		Entry::$document = failure( $refusal->reason, $refusal->getMessage(), named( $refusal->document ) );
	} catch ( \Throwable $thrown ) {
		Entry::$document = failure( 'wp_codebox_command_failed', get_class( $thrown ) . ': ' . $thrown->getMessage() . ' in ' . basename( $thrown->getFile() ) . ':' . $thrown->getLine() );
	}
	exit( isset( Entry::$document['error'] ) ? 1 : 0 );
}

/**
 * Adds the command and the status to a document with a schema; other documents stay unchanged.
 *
 * @param array<string,mixed> $document Result document.
 * @return array<string,mixed>
 */
function named( array $document ): array {
	if ( ! isset( $document['schema'] ) ) {
		return $document;
	}
	$head = array(
		'schema'  => $document['schema'],
		'command' => Entry::$call['command'],
	);
	return $head + $document + array( 'status' => 'ok' );
}

/**
 * Builds the result document of an error.
 *
 * @param string              $code     Stable error code.
 * @param string              $message  What is wrong and what to do.
 * @param array<string,mixed> $document Known fields of the result.
 * @return array<string,mixed>
 */
function failure( string $code, string $message, array $document = array() ): array {
	return with_error(
		$document,
		array(
			'code'    => $code,
			'message' => $message,
		)
	);
}

/**
 * Ends the capture of output: all later output is the page that the command returns.
 */
function print_page(): void {
	ob_end_clean();
}

/**
 * Returns the output of WordPress and plugins since the last call of this function, up to a limit.
 *
 * @param int $bytes Maximum number of bytes.
 */
function captured_output( int $bytes ): string {
	// A buffer that a plugin has made non-removable stays, and its content is reported.
	for ( $level = ob_get_level(); $level > 1; --$level ) {
		@ob_end_flush();
	}
	if ( 1 === ob_get_level() ) {
		ob_flush();
	} else {
		Entry::$captured .= (string) ob_get_contents();
	}
	$captured        = mb_strcut( mb_scrub( Entry::$captured, 'UTF-8' ), 0, $bytes, 'UTF-8' );
	Entry::$captured = '';
	return $captured;
}

/**
 * Writes a file that becomes part of the run's bundle, and returns its guest path.
 *
 * @param string $name      File name without directories.
 * @param string $bytes     Content of the file.
 * @param string $kind      Kind of the file, one word.
 * @param string $media     MIME type.
 * @param string $directory Directory below the directory of artifacts, with plain names; '' is that directory itself.
 */
function write_artifact( string $name, string $bytes, string $kind, string $media = 'application/json', string $directory = '' ): string {
	$holder = ARTIFACTS . ( '' === $directory ? '' : "/$directory" );
	$path   = $holder . '/' . ltrim( (string) preg_replace( '/[^A-Za-z0-9._-]+/', '-', $name ), '.-_' );
	if ( ! is_dir( root() . $holder ) ) {
		mkdir( root() . $holder, 0700, true );
	}
	if ( strlen( $bytes ) !== @file_put_contents( root() . $path, $bytes ) ) {
		throw Refusal::failed( "$path cannot be written: is the guest's disk full?" );
	}
	Entry::$artifacts[] = array(
		'path'        => $path,
		'kind'        => $kind,
		'contentType' => $media,
	);
	return $path;
}

/**
 * Prints the result document; runs as the last shutdown function.
 */
function end_program(): void {
	if ( Entry::$printed ) {
		return;
	}
	Entry::$printed = true;
	fwrite( STDERR, captured_output( NOISE_BYTES ) );
	$error          = error_get_last();
	if ( null === Entry::$document && null !== Entry::$at_exit ) {
		try {
			Entry::$document = ( Entry::$at_exit )();
		} catch ( \Throwable $thrown ) {
			Entry::$document = failure( 'wp_codebox_command_failed', get_class( $thrown ) . ': ' . $thrown->getMessage() );
		}
	}
	if ( null === Entry::$document ) {
		$fatal           = null !== $error && 0 !== ( $error['type'] & ( E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR ) );
		$why             = $fatal ? explode( "\n", $error['message'] )[0] . ' in ' . basename( $error['file'] ) . ':' . $error['line'] : 'WordPress or a plugin ended PHP before the command was done';
		Entry::$document = failure( 'wp_codebox_command_failed', $why );
	}
	Entry::$document = with_artifacts( Entry::$document, Entry::$artifacts );
	try {
		Entry::$document = shortened( Entry::$document );
	} catch ( Refusal $refusal ) {
		Entry::$document = failure( $refusal->reason, $refusal->getMessage() );
	}
	$json = document_text( Entry::$document );
	if ( '' === $json || strlen( $json ) > DOCUMENT_BYTES ) {
		$json = document_text( failure( 'wp_codebox_output_limit', sprintf( 'the result is %d bytes of JSON, more than the limit of %d; request less', strlen( $json ), DOCUMENT_BYTES ) ) );
	}
	fwrite( Entry::$stream, $json );
	fclose( Entry::$stream );
}
