<?php
/**
 * One failure, on its way to a caller.
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
 * Code, sentence, HTTP status, exit status, hints and detail. Services throw it;
 * abilities turn it into a `WP_Error`, commands into a message and an exit status.
 */
final class Failure extends RuntimeException {

	/** The message as written here, whatever language it is shown in. */
	private readonly string $english;

	/**
	 * Builds one from its parts.
	 *
	 * @param string               $error_code  Stable code.
	 * @param string               $message     One sentence: what is wrong and what to do. Never a secret.
	 * @param int                  $http_status HTTP status.
	 * @param int                  $exit_status Process exit status.
	 * @param list<string>         $hints       Further things to try, one line each.
	 * @param array<string, mixed> $data        Structured detail.
	 * @param Throwable|null       $previous    Cause.
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
	 * A failure that PHP itself raises.
	 *
	 * @param ErrorCode            $code     Which.
	 * @param string               $message  One sentence.
	 * @param list<string>         $hints    Further things to try.
	 * @param array<string, mixed> $data     Structured detail.
	 * @param Throwable|null       $previous Cause.
	 */
	public static function because( ErrorCode $code, string $message, array $hints = [], array $data = [], ?Throwable $previous = null ): self {
		return new self( $code->value, $message, $code->http_status(), $code->exit_status(), $hints, $data, $previous );
	}

	/**
	 * A value that the caller gave is not accepted: `wp_codebox_input_invalid`.
	 *
	 * @param string               $message One sentence.
	 * @param list<string>         $hints   Further things to try.
	 * @param array<string, mixed> $data    Structured detail.
	 */
	public static function invalid_input( string $message, array $hints = [], array $data = [] ): self {
		return self::because( ErrorCode::InputInvalid, $message, $hints, $data );
	}

	/**
	 * Whatever was thrown, as a failure. An error that is not ours keeps its text in
	 * the server's log only: it may name paths or values a caller must not see.
	 *
	 * @param Throwable $thrown What was caught.
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
	 * An exception that a host plugin threw out of a filter. Its text stays in the server's log.
	 *
	 * @param Throwable $thrown  What was caught.
	 * @param ErrorCode $code    What the failure is here.
	 * @param string    $message One sentence.
	 */
	public static function of_plugin( Throwable $thrown, ErrorCode $code, string $message ): self {
		// Writes the log.
		self::from( $thrown );
		return self::because( $code, $message, [], [ 'exception' => $thrown::class ] );
	}

	/**
	 * A `WP_Error` a host plugin handed back, as a failure. Core's own errors carry
	 * no status; they count as refusals of the request.
	 *
	 * @param WP_Error $error   What the plugin answered.
	 * @param int      $default HTTP status when it names none.
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

	/** The failure for PHP and REST callers. */
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
	 * The failure as it stands in an audit record: in English, so that it does not depend on the language of the user.
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
	 * The failure as it stands in an answer.
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
