<?php
/**
 * How a command of the registry begins and ends inside the guest.
 *
 * Standard input is one JSON object, `{command, args, mounts, site: {url, path}}`. Standard
 * output is one JSON document: the command's own, with status 0, or `{error: {code, message}}` with status 1.
 * Whatever WordPress and plugins print in between is dropped; a plugin that ends PHP leaves the
 * command with an error that says so.
 *
 * A program calls begin(), loads WordPress in the global scope, as a request would, and calls
 * finish() with what it does.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/refusal.php';
require_once __DIR__ . '/arguments.php';
require_once __DIR__ . '/values.php';
require_once __DIR__ . '/supervise.php';
require_once __DIR__ . '/shortening.php';

/** Largest document, bytes. */
const DOCUMENT_BYTES = 4 * 1024 * 1024;

/** Of what WordPress and plugins print, bytes that go to standard error. */
const NOISE_BYTES = 65536;

/**
 * The program of this process.
 */
final class Entry {
	/** What was asked. */
	public static ?Arguments $arguments = null;

	/**
	 * The document, once there is one.
	 *
	 * @var ?array<string,mixed>
	 */
	public static ?array $document = null;

	/**
	 * Where the document goes.
	 *
	 * @var resource
	 */
	public static $stream;

	/** Prints the document when a plugin's own shutdown ended PHP before. */
	public static ?Last_Word $last_word = null;

	/** Whether the document is printed. */
	public static bool $printed = false;

	/**
	 * Makes the document of a program that was ended by somebody else.
	 *
	 * @var ?\Closure(): ?array<string,mixed>
	 */
	public static ?\Closure $at_exit = null;

	/**
	 * Files that the bundle gets: rows {path, kind, contentType}.
	 *
	 * @var list<array<string,string>>
	 */
	public static array $artifacts = array();

	/** What WordPress and plugins printed, and nobody took. */
	public static string $heard = '';

	/**
	 * The command and the site of the call.
	 *
	 * @var array{command: string, url: string}
	 */
	public static array $call = array(
		'command' => '',
		'url'     => 'http://localhost',
	);
}

/**
 * Destroyed after every shutdown function, even one that ends PHP.
 */
final class Last_Word {
	/**
	 * The last chance.
	 */
	public function __destruct() {
		end_program();
	}
}

/**
 * Reads what is asked and takes standard output away from everybody else.
 */
function begin(): Arguments {
	$stream = Supervisor::enter();
	ini_set( 'display_errors', 'stderr' );
	ini_set( 'log_errors', '0' );
	Entry::$stream = $stream;
	$stdin   = (string) stream_get_contents( STDIN );
	$request = json_decode( $stdin, true );
	// What plugins print is kept apart; what gets past this buffer, the supervisor takes.
	ob_start(
		static function ( string $piece ): string {
			if ( strlen( Entry::$heard ) < DOCUMENT_BYTES ) {
				Entry::$heard .= $piece;
			}
			return '';
		}
	);
	Entry::$last_word = new Last_Word();
	// Registered while PHP shuts down, so that it comes after the end of WordPress.
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
 * The file that loads WordPress; prepares what it expects of a request.
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
 * The guest's root, wherever it lies: it holds these files at /opt/codebox/guest/commands.
 */
function root(): string {
	return rtrim( dirname( __DIR__, 5 ), '/' );
}

/**
 * Does the command's work and ends the program.
 *
 * @param callable(Arguments): array<string,mixed> $work The work; it returns the document.
 */
function finish( callable $work ): never {
	try {
		Entry::$document = $work( Entry::$arguments );
	} catch ( Refusal $refusal ) {
		Entry::$document = failure( $refusal->reason, $refusal->getMessage(), $refusal->document );
	} catch ( \Throwable $thrown ) {
		Entry::$document = failure( 'wp_codebox_command_failed', get_class( $thrown ) . ': ' . $thrown->getMessage() . ' in ' . basename( $thrown->getFile() ) . ':' . $thrown->getLine() );
	}
	exit( isset( Entry::$document['error'] ) ? 1 : 0 );
}

/**
 * A document that says why nothing came of it.
 *
 * @param string              $code     Stable error code.
 * @param string              $message  What is wrong and what to do.
 * @param array<string,mixed> $document What is known nevertheless.
 * @return array<string,mixed>
 */
function failure( string $code, string $message, array $document = array() ): array {
	// The word of a document that was to be a success; a page's status is a number and stays.
	if ( 'ok' === ( $document['status'] ?? null ) ) {
		$document['status'] = 'error';
	}
	return $document + array(
		'error' => array(
			'code'    => $code,
			'message' => $message,
		),
	);
}

/**
 * Lets what is printed from here on be the page that the command makes.
 */
function print_page(): void {
	ob_end_clean();
}

/**
 * What WordPress and plugins printed since it was asked last, at most so many bytes.
 *
 * @param int $bytes Bytes.
 */
function heard( int $bytes ): string {
	// A plugin's buffer may be one that only PHP may end: it stays, and what it holds is told.
	for ( $level = ob_get_level(); $level > 1; --$level ) {
		@ob_end_flush();
	}
	if ( 1 === ob_get_level() ) {
		ob_flush();
	} else {
		Entry::$heard .= (string) ob_get_contents();
	}
	$heard        = mb_strcut( mb_scrub( Entry::$heard, 'UTF-8' ), 0, $bytes, 'UTF-8' );
	Entry::$heard = '';
	return $heard;
}

/**
 * Leaves a file for the bundle and answers its guest path.
 *
 * @param string $name  Name, without directories.
 * @param string $bytes Content.
 * @param string $kind  What it is, a word.
 * @param string $media MIME type.
 */
function leave( string $name, string $bytes, string $kind, string $media = 'application/json' ): string {
	$path = '/tmp/codebox-artifacts/' . ltrim( (string) preg_replace( '/[^A-Za-z0-9._-]+/', '-', $name ), '.-_' );
	if ( ! is_dir( root() . '/tmp/codebox-artifacts' ) ) {
		mkdir( root() . '/tmp/codebox-artifacts', 0700, true );
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
 * The last thing that happens: prints the document.
 */
function end_program(): void {
	if ( Entry::$printed ) {
		return;
	}
	Entry::$printed = true;
	fwrite( STDERR, heard( NOISE_BYTES ) );
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
	if ( array() !== Entry::$artifacts ) {
		Entry::$document += array( 'artifacts' => Entry::$artifacts );
	}
	try {
		Entry::$document = shortened( Entry::$document );
	} catch ( Refusal $refusal ) {
		Entry::$document = failure( $refusal->reason, $refusal->getMessage() );
	}
	$json = document_text( Entry::$document );
	if ( '' === $json || strlen( $json ) > DOCUMENT_BYTES ) {
		$json = document_text( failure( 'wp_codebox_output_limit', sprintf( 'the result is %d bytes of JSON and more than %d; ask for less', strlen( $json ), DOCUMENT_BYTES ) ) );
	}
	fwrite( Entry::$stream, $json );
	fclose( Entry::$stream );
}
