<?php
/**
 * What every program of a command has in common: it reads its call from standard input and
 * prints one JSON document on standard output, whatever WordPress and plugins print.
 *
 * A program looks like this; the global scope has to be WordPress's own:
 *
 *     namespace WPCodebox\Guest\Commands;
 *     require __DIR__ . '/lib/program.php';
 *     function answer( Call $call ): array { return array( 'schema' => …, … ); }
 *     Program::begin();
 *     require Program::wordpress();
 *     Program::run( answer( ... ) );
 *
 * Exit status 0 and a document: done. Exit status 1 and a document with `error: {code, message}`:
 * not done. A plugin that ends PHP in the middle makes a failure with the word `ended`.
 *
 * @package WPCodebox
 */

declare( strict_types=1 );

namespace WPCodebox\Guest\Commands;

require __DIR__ . '/refusal.php';
require __DIR__ . '/call.php';

/**
 * One run of a program.
 */
final class Program {

	/** Largest document, bytes. */
	private const DOCUMENT_BYTES = 4 * 1024 * 1024;

	/** Most bytes of what WordPress and plugins printed that go to standard error. */
	private const NOISE_BYTES = 64 * 1024;

	/** The call. */
	private static ?Call $call = null;

	/** What was printed that is no document. */
	private static string $noise = '';

	/** Whether the document was printed. */
	private static bool $answered = false;

	/** Rows {path, kind, contentType} of files that the command leaves. */
	private static array $artifacts = array();

	/**
	 * Reads the call and makes the globals that WordPress expects of a request.
	 *
	 * @param array<string, string> $server Further or other variables of the server.
	 */
	public static function begin( array $server = array() ): Call {
		ini_set( 'display_errors', 'stderr' );
		ini_set( 'memory_limit', '512M' );
		$given = json_decode( (string) stream_get_contents( STDIN ), true );
		if ( ! is_array( $given ) || ! is_string( $given['command'] ?? null ) ) {
			fwrite( STDERR, "standard input must be a JSON object with command and args\n" );
			exit( 2 );
		}
		self::$call = new Call( $given['command'], (array) ( $given['args'] ?? array() ), (array) ( $given['mounts'] ?? array() ), (array) ( $given['site'] ?? array() ) + array( 'url' => 'http://localhost' ) );
		self::pretend( $server );
		self::hush();
		register_shutdown_function( array( self::class, 'ended' ) );
		return self::$call;
	}

	/**
	 * The call.
	 */
	public static function call(): Call {
		return self::$call ?? new Call( '', array(), array(), array( 'url' => 'http://localhost' ) );
	}

	/**
	 * The file that loads WordPress; it must be required in the global scope.
	 */
	public static function wordpress(): string {
		// The guest's root, wherever it lies, holds this file at /opt/codebox/guest/commands/lib.
		return rtrim( dirname( __DIR__, 5 ), '/' ) . '/wordpress/wp-load.php';
	}

	/**
	 * Does the work and prints what it answers. Does not return.
	 *
	 * @param callable(Call): array<string, mixed> $work Work.
	 */
	public static function run( callable $work ): never {
		// An action that ends with wp_die() shall fail, not print a page.
		if ( function_exists( 'add_filter' ) ) {
			foreach ( array( 'wp_die_handler', 'wp_die_ajax_handler', 'wp_die_json_handler' ) as $filter ) {
				add_filter( $filter, static fn(): callable => array( self::class, 'died' ), PHP_INT_MAX );
			}
		}
		try {
			self::answer( $work( self::call() ) );
		} catch ( Refusal $refusal ) {
			self::fail( $refusal->reason, $refusal->getMessage(), $refusal->document );
		} catch ( \Throwable $thrown ) {
			self::fail( 'threw', self::sentence( $thrown ) );
		}
	}

	/**
	 * Keeps a file that the bundle gets; it must lie below /tmp/codebox-artifacts.
	 *
	 * @param string $path         Guest path.
	 * @param string $kind         What it is, a word.
	 * @param string $content_type MIME type.
	 */
	public static function artifact( string $path, string $kind, string $content_type ): void {
		self::$artifacts[] = array(
			'path'        => $path,
			'kind'        => $kind,
			'contentType' => $content_type,
		);
	}

	/**
	 * Writes a file below /tmp/codebox-artifacts and keeps it for the bundle; answers its path.
	 *
	 * @param string $name         Name, without directories.
	 * @param string $bytes        Content.
	 * @param string $kind         What it is, a word.
	 * @param string $content_type MIME type.
	 * @throws Refusal When it cannot be written.
	 */
	public static function leave( string $name, string $bytes, string $kind, string $content_type = 'application/json' ): string {
		$directory = self::root() . '/tmp/codebox-artifacts';
		$name      = (string) preg_replace( '/[^A-Za-z0-9._-]+/', '-', $name );
		if ( ! is_dir( $directory ) && ! mkdir( $directory, 0700, true ) && ! is_dir( $directory ) ) {
			throw new Refusal( 'disk', $directory . ' cannot be made' );
		}
		if ( strlen( $bytes ) !== file_put_contents( $directory . '/' . $name, $bytes ) ) {
			throw new Refusal( 'disk', $name . ' could not be written' );
		}
		self::artifact( '/tmp/codebox-artifacts/' . $name, $kind, $content_type );
		return '/tmp/codebox-artifacts/' . $name;
	}

	/**
	 * The host path of the guest's root where it has none of its own; else nothing.
	 */
	public static function root(): string {
		return rtrim( (string) getenv( 'CODEBOX_ROOT' ), '/' );
	}

	/**
	 * JSON as the runner reads it.
	 *
	 * @param mixed $value Value.
	 */
	public static function json( mixed $value ): string {
		return (string) json_encode( $value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR );
	}

	/**
	 * What was thrown, and where, without the directories.
	 *
	 * @param \Throwable $thrown What.
	 */
	public static function sentence( \Throwable $thrown ): string {
		return sprintf( '%s in %s:%d', '' === $thrown->getMessage() ? get_class( $thrown ) : $thrown->getMessage(), basename( $thrown->getFile() ), $thrown->getLine() );
	}

	/**
	 * What WordPress and plugins printed since the last time, at most so many bytes of it.
	 *
	 * @param int $bytes Bytes.
	 */
	public static function heard( int $bytes ): string {
		while ( ob_get_level() > 1 ) {
			ob_end_flush();
		}
		if ( 1 === ob_get_level() ) {
			ob_flush();
		}
		$heard       = self::$noise;
		self::$noise = '';
		return mb_strcut( mb_scrub( $heard, 'UTF-8' ), 0, $bytes, 'UTF-8' );
	}

	/**
	 * Ends with a failure. Does not return.
	 *
	 * @param string               $reason   Stable word.
	 * @param string               $message  Sentence.
	 * @param array<string, mixed> $document What the command answers beside it.
	 */
	public static function fail( string $reason, string $message, array $document = array() ): never {
		$document['error'] = array(
			'code'    => $reason,
			'message' => $message,
		);
		self::tell( $document, 1 );
	}

	/**
	 * WordPress asked to die.
	 *
	 * @param mixed $message What it says.
	 */
	public static function died( mixed $message = '' ): never {
		if ( is_wp_error( $message ) ) {
			$message = $message->get_error_message();
		}
		throw new Refusal( 'died', 'WordPress refused: ' . trim( wp_strip_all_tags( is_scalar( $message ) ? (string) $message : '' ) ) );
	}

	/**
	 * PHP ends. Before the answer, that is a failure.
	 */
	public static function ended(): void {
		if ( self::$answered ) {
			return;
		}
		$error = error_get_last();
		$fatal = null !== $error && 0 !== ( $error['type'] & ( E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR ) );
		self::fail(
			$fatal ? 'fatal' : 'ended',
			$fatal ? sprintf( '%s in %s:%d', $error['message'], basename( $error['file'] ), $error['line'] ) : 'PHP was ended before the command was done'
		);
	}

	/**
	 * Prints the answer.
	 *
	 * @param array<string, mixed> $document Answer.
	 */
	private static function answer( array $document ): never {
		self::tell( $document, 0 );
	}

	/**
	 * Prints a document and ends PHP.
	 *
	 * @param array<string, mixed> $document Document.
	 * @param int                  $status   Exit status.
	 */
	private static function tell( array $document, int $status ): never {
		if ( array() !== self::$artifacts ) {
			$document['artifacts'] = self::$artifacts;
		}
		$noise = self::heard( self::NOISE_BYTES );
		$text  = self::json( $document );
		if ( strlen( $text ) > self::DOCUMENT_BYTES ) {
			$status = 1;
			$text   = self::json(
				array(
					'error' => array(
						'code'    => 'too-large',
						'message' => sprintf( 'the result is larger than %d bytes of JSON; ask for less', self::DOCUMENT_BYTES ),
					),
				)
			);
		}
		self::$answered = true;
		fwrite( STDERR, $noise );
		fwrite( STDOUT, $text . "\n" );
		exit( $status );
	}

	/**
	 * Makes the globals of a request.
	 *
	 * @param array<string, string> $server Further or other variables.
	 */
	private static function pretend( array $server ): void {
		$_SERVER = $server + array(
			'HTTP_HOST'       => 'localhost',
			'SERVER_NAME'     => 'localhost',
			'SERVER_PORT'     => '80',
			'SERVER_PROTOCOL' => 'HTTP/1.1',
			'REMOTE_ADDR'     => '127.0.0.1',
			'REQUEST_METHOD'  => 'GET',
			'REQUEST_URI'     => '/',
			'SCRIPT_NAME'     => '/index.php',
			'PHP_SELF'        => '/index.php',
			'HTTP_USER_AGENT' => 'wp-codebox',
		) + $_SERVER;
	}

	/**
	 * Takes everything that is printed from here on.
	 */
	private static function hush(): void {
		ob_start(
			static function ( string $piece ): string {
				if ( strlen( self::$noise ) < self::DOCUMENT_BYTES ) {
					self::$noise .= $piece;
				}
				return '';
			}
		);
	}
}
