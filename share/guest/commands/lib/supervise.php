<?php
/**
 * Runs the program of a command again in a child process and passes on its result document.
 *
 * WordPress and plugins can bypass output buffers, end PHP anywhere, run out of memory or be killed.
 * Therefore the child writes its result document to a separate file descriptor, and its standard output is
 * never taken for the document. For a command that renders a page, the standard output is the page.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

/**
 * Parent process, which does not load WordPress. It runs without configuration and extensions of PHP
 * (`php -n`), because loading them takes longer than everything else that it does.
 */
final class Supervisor {
	/** File descriptor to which the child process writes its result document. */
	private const DOCUMENT = 3;
	/** Environment variable that is set only in the child process. */
	private const MARK = 'CODEBOX_COMMAND_DOCUMENT';
	/** Memory limit of the parent, and of the child process when PHP's configuration sets none. */
	private const MEMORY = '512M';
	/** Maximum number of output bytes that are kept in memory. */
	private const HELD = 1 << 20;
	/** Maximum number of page bytes that are reported. */
	private const EXCERPT = 4096;
	/** Maximum number of bytes of other output that go to standard error. */
	private const NOISE = 65536;

	/** First bytes of the child's output, up to the limit. */
	private string $held = '';

	/** Number of bytes that the child has printed. */
	private int $bytes = 0;

	/** Text of the result document that the child has sent so far. */
	private string $document = '';

	/**
	 * Runs the command in a child process and ends the parent. Returns only in the child, with the stream for
	 * the result document.
	 *
	 * @return resource
	 */
	public static function enter() {
		if ( (string) self::DOCUMENT === getenv( self::MARK ) ) {
			putenv( self::MARK );
			// Without a limit, PHP could use all memory of the guest and the guest would be killed.
			if ( '-1' === ini_get( 'memory_limit' ) ) {
				ini_set( 'memory_limit', self::MEMORY );
			}
			$stream = fopen( 'php://fd/' . self::DOCUMENT, 'wb' );
			if ( is_resource( $stream ) ) {
				return $stream;
			}
		}
		exit( ( new self() )->run() );
	}

	/**
	 * Runs the child process to its end and prints its result document.
	 *
	 * @return int Exit status.
	 */
	private function run(): int {
		ini_set( 'memory_limit', self::MEMORY );
		// Standard output is for the document.
		ini_set( 'display_errors', 'stderr' );
		$pipes   = array();
		$process = proc_open(
			array( PHP_BINARY, (string) $_SERVER['SCRIPT_FILENAME'] ),
			array(
				0              => STDIN,
				1              => array( 'pipe', 'w' ),
				2              => STDERR,
				self::DOCUMENT => array( 'pipe', 'w' ),
			),
			$pipes,
			null,
			array( self::MARK => (string) self::DOCUMENT ) + getenv()
		);
		if ( ! is_resource( $process ) ) {
			return $this->print_document( failure( 'wp_codebox_command_failed', 'the PHP child process that runs the command could not be started' ) );
		}
		$digest = hash_init( 'sha256' );
		$end    = null;
		do {
			$status = proc_get_status( $process );
			// proc_get_status() reports the exit status only once.
			$end  ??= $status['running'] ? null : $status;
			$open   = array_filter( $pipes, static fn ( $pipe ): bool => is_resource( $pipe ) && ! feof( $pipe ) );
			// A process left behind by a plugin may hold the pipes open, so after the child's end they are
			// only drained.
			$read = $open;
			$none = null;
			$full = $open ? (int) stream_select( $read, $none, $none, 0, null === $end ? 200000 : 0 ) : 0;
			foreach ( $full > 0 ? $read : array() as $pipe ) {
				$piece = (string) fread( $pipe, 65536 );
				if ( $pipe === $pipes[1] ) {
					$this->bytes += strlen( $piece );
					hash_update( $digest, $piece );
					$this->held .= substr( $piece, 0, max( 0, self::HELD - strlen( $this->held ) ) );
				} elseif ( strlen( $this->document ) <= DOCUMENT_BYTES ) {
					$this->document .= $piece;
				}
			}
			if ( ! $open && null === $end ) {
				usleep( 2000 );
			}
		} while ( null === $end || $full > 0 );
		return $this->print_document( $this->finished( $end, hash_final( $digest ) ) );
	}

	/**
	 * Builds the result document of the command from the child's document; if the child left none, from the
	 * child's exit status or signal.
	 *
	 * @param array<string,mixed> $end    Last result of proc_get_status().
	 * @param string              $digest SHA-256 of the child's standard output.
	 * @return array<string,mixed>|object
	 */
	private function finished( array $end, string $digest ): object|array {
		$document = json_decode( $this->document, false );
		if ( ! is_object( $document ) ) {
			$how = $end['signaled'] ? 'signal ' . $end['termsig'] : 'status ' . $end['exitcode'];
			return failure( 'wp_codebox_command_failed', "PHP ended with $how before the command was done" );
		}
		if ( property_exists( $document, 'body' ) && null === $document->body ) {
			$document->title = page_title( $this->held );
			$document->body  = array(
				'bytes'   => $this->bytes,
				'sha256'  => $digest,
				'excerpt' => plain_text( beginning( $this->held, self::EXCERPT ), self::EXCERPT + 8 ),
			);
		} else {
			fwrite( STDERR, substr( $this->held, 0, self::NOISE ) );
		}
		return $document;
	}

	/**
	 * Prints the result document of the command.
	 *
	 * @param array<string,mixed>|object $document Document to print.
	 * @return int Exit status.
	 */
	private function print_document( array|object $document ): int {
		fwrite( STDOUT, document_text( $document ) . "\n" );
		return isset( ( (array) $document )['error'] ) ? 1 : 0;
	}
}

/**
 * Encodes a document for output.
 *
 * @param array<string,mixed>|object $document Document to print.
 */
function document_text( array|object $document ): string {
	return (string) json_encode( $document, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION );
}

/**
 * Returns the title of an HTML page.
 *
 * @param string $html HTML of the page.
 */
function page_title( string $html ): ?string {
	return 1 === preg_match( '~<title[^>]*>(.*?)</title>~is', $html, $found ) ? cut( trim( html_entity_decode( $found[1], ENT_QUOTES | ENT_HTML5 ) ), 500 ) : null;
}
