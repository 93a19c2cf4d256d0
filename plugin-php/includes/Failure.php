<?php
/**
 * Exception with the error data that callers get.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use RuntimeException;
use Throwable;
use WP_Error;

defined( 'ABSPATH' ) || exit;

/**
 * Carries code, message, HTTP status, exit status, hints and data. Services throw it; abilities convert it to
 * a `WP_Error`, commands to a message and an exit status.
 */
final class Failure extends RuntimeException {

	/** English error message, for the audit log. */
	private readonly string $english;

	/**
	 * Creates a failure from its parts.
	 *
	 * @param string               $error_code  Stable error code.
	 * @param string               $message     One sentence: what is wrong and what to do. Never contains a
	 *   secret.
	 * @param int                  $http_status HTTP status.
	 * @param int                  $exit_status Exit status of a command.
	 * @param list<string>         $hints       Suggestions, one line each.
	 * @param array<string, mixed> $data        Structured details.
	 * @param Throwable|null       $previous    Previous exception.
	 */
	public function __construct(
		public readonly string $error_code,
		string $message,
		public readonly int $http_status,
		public readonly int $exit_status,
		public readonly array $hints = [],
		public readonly array $data = [],
		?Throwable $previous = null
	) {
		parent::__construct( $message, 0, $previous );
		$this->english = Sentence::english( $message );
	}

	/**
	 * Creates a failure with the HTTP status and exit status of its error code.
	 *
	 * @param ErrorCode            $code     Error code.
	 * @param string               $message  Error message, one sentence.
	 * @param list<string>         $hints    Suggestions, one line each.
	 * @param array<string, mixed> $data     Structured details.
	 * @param Throwable|null       $previous Previous exception.
	 */
	public static function because( ErrorCode $code, string $message, array $hints = [], array $data = [], ?Throwable $previous = null ): self {
		return new self( $code->value, $message, $code->http_status(), $code->exit_status(), $hints, $data, $previous );
	}

	/**
	 * Creates a failure about an invalid value of the caller: `wp_codebox_input_invalid`.
	 *
	 * @param string               $message Error message, one sentence.
	 * @param list<string>         $hints   Suggestions, one line each.
	 * @param array<string, mixed> $data    Structured details.
	 */
	public static function invalid_input( string $message, array $hints = [], array $data = [] ): self {
		return self::because( ErrorCode::InputInvalid, $message, $hints, $data );
	}

	/**
	 * Converts any exception to a failure. The text of a foreign exception goes only to the server's log,
	 * because it may contain paths or values that the caller must not see.
	 *
	 * @param Throwable $thrown Exception that was caught.
	 */
	public static function from( Throwable $thrown ): self {
		if ( $thrown instanceof self ) {
			return $thrown;
		}
		if ( $thrown instanceof Native\Exception ) {
			return new self(
				$thrown->errorCode,
				$thrown->getMessage(),
				$thrown->httpStatus,
				$thrown->exitStatus,
				$thrown->hints,
				$thrown->data,
				$thrown
			);
		}
		// phpcs:ignore WordPress.PHP.DevelopmentFunctions -- the only trace of a defect.
		error_log( sprintf( 'wp-codebox: %s in %s:%d: %s', $thrown::class, $thrown->getFile(), $thrown->getLine(), $thrown->getMessage() ) );
		return self::because( ErrorCode::Internal, __( 'Something went wrong inside Codebox; the PHP error log has the detail.', 'codebox' ), previous: $thrown );
	}

	/**
	 * Creates a failure for an exception that a host plugin threw in a filter. The exception text goes only
	 * to the server's log.
	 *
	 * @param Throwable $thrown  Exception that was caught.
	 * @param ErrorCode $code    Error code of the failure.
	 * @param string    $message Error message, one sentence.
	 */
	public static function of_plugin( Throwable $thrown, ErrorCode $code, string $message ): self {
		// Called only to write the server's log.
		self::from( $thrown );
		return self::because( $code, $message, [], [ 'exception' => $thrown::class ] );
	}

	/**
	 * Converts a `WP_Error` of a host plugin or of WordPress to a failure. An error without a status, such as
	 * those of WordPress itself, gets the default.
	 *
	 * @param WP_Error $error   Error to convert.
	 * @param int      $default HTTP status when the error has none.
	 */
	public static function from_wp_error( WP_Error $error, int $default = 500 ): self {
		$data   = $error->get_error_data();
		$data   = is_array( $data ) ? $data : [];
		$status = isset( $data['status'] ) && is_int( $data['status'] ) ? $data['status'] : $default;
		$exit   = isset( $data['exit_status'] ) && is_int( $data['exit_status'] ) ? $data['exit_status'] : 1;
		$hints  = isset( $data['hints'] ) && is_array( $data['hints'] ) ? array_values( array_filter( $data['hints'], 'is_string' ) ) : [];
		unset( $data['status'], $data['exit_status'], $data['hints'] );
		return new self( (string) $error->get_error_code(), $error->get_error_message(), $status, $exit, $hints, $data );
	}

	/** Returns the failure as a `WP_Error` for PHP and REST callers. */
	public function to_wp_error(): WP_Error {
		$data = $this->data;
		if ( [] !== $this->hints ) {
			$data['hints'] = $this->hints;
		}
		$data['status']      = $this->http_status;
		$data['exit_status'] = $this->exit_status;
		return new WP_Error( $this->error_code, $this->getMessage(), $data );
	}

	/**
	 * Returns the failure for an audit record, in English regardless of the user's language.
	 *
	 * @return array{code: string, message: string}
	 */
	public function recorded(): array {
		return [
			'code'    => $this->error_code,
			'message' => $this->english,
		];
	}

	/**
	 * Returns code, message, hints and data of the failure, for a response.
	 *
	 * @return array<string, mixed>
	 */
	public function to_array(): array {
		$body = [
			'code'    => $this->error_code,
			'message' => $this->getMessage(),
		];
		if ( [] !== $this->hints ) {
			$body['hints'] = $this->hints;
		}
		if ( [] !== $this->data ) {
			$body['data'] = $this->data;
		}
		return $body;
	}
}
