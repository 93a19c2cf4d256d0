<?php
/**
 * Reports the PHP messages of a request to the program that started the web server.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest;

require_once dirname( __DIR__ ) . '/commands/lib/php-error.php';

use function WPCodebox\Guest\Command\cut;
use function WPCodebox\Guest\Command\fatal_error;
use function WPCodebox\Guest\Command\php_error;

/**
 * Writes each PHP message of a request as one line of JSON to standard error: {origin, request, level, message, file,
 * line}, after a prefix. PHP's own log continues; plugins often send it to a file.
 */
final class Php_Errors {
	/** Prefix of a line. */
	private const PREFIX = 'codebox-php ';
	/** Maximum number of lines for a request, without the one of a fatal error. */
	private const MESSAGES = 50;
	/** Maximum length of a line in bytes. A longer one, above PIPE_BUF, could be mixed with one of another worker. */
	private const LINE = 4000;

	/** Number of lines written. */
	private int $count = 0;

	/** Whether the fatal error was reported. */
	private bool $ended = false;

	/**
	 * Begins to watch. WordPress replaces no error handler; where a plugin does, only fatal errors are reported.
	 *
	 * @param string $origin  Origin of the site that the visitor sees.
	 * @param string $request Method and path of the request.
	 */
	public function __construct( private readonly string $origin, private readonly string $request ) {
		set_error_handler( $this->message( ... ) );
		register_shutdown_function(
			function (): void {
				$this->end();
				// Registered during PHP's shutdown, so it runs after the shutdown functions of WordPress and plugins.
				register_shutdown_function( $this->end( ... ) );
			}
		);
	}

	/**
	 * Reports a message that the code has not silenced. Error handler of PHP; PHP's own handler runs afterwards.
	 *
	 * @param int    $level   Error level.
	 * @param string $message Message text.
	 * @param string $file    File of the message.
	 * @param int    $line    Line of the message.
	 */
	private function message( int $level, string $message, string $file, int $line ): bool {
		// PHP ends after an E_USER_ERROR and an E_RECOVERABLE_ERROR; end() reports them.
		if ( 0 !== ( error_reporting() & $level & ~E_USER_ERROR & ~E_RECOVERABLE_ERROR ) && $this->count < self::MESSAGES ) {
			++$this->count;
			$this->write( php_error( $level, $message, $file, $line ) );
		}
		return false;
	}

	/**
	 * Reports the error that ended PHP.
	 */
	private function end(): void {
		$fatal = $this->ended ? null : fatal_error();
		if ( null !== $fatal ) {
			$this->ended = true;
			$this->write( $fatal );
		}
	}

	/**
	 * Writes one line.
	 *
	 * @param array{level: string, message: string, file: string, line: int} $row Row of the message.
	 */
	private function write( array $row ): void {
		$row += array(
			'origin'  => $this->origin,
			'request' => cut( $this->request, 300 ),
		);
		foreach ( array( 1000, 200, 0 ) as $bytes ) {
			$row['message'] = cut( $row['message'], $bytes );
			$line           = json_encode( $row, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE );
			if ( is_string( $line ) && strlen( $line ) <= self::LINE ) {
				file_put_contents( 'php://stderr', self::PREFIX . $line . "\n" );
				return;
			}
		}
	}
}
