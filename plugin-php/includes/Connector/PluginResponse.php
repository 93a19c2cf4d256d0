<?php
/**
 * Response of a site plugin to a request.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

use Throwable;
use WP_Error;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * A plugin returns its response as an array, or refuses with a `WP_Error` or an array with `success: false`. Secret
 * values that the plugin received are redacted before any part reaches a caller or a log.
 */
final class PluginResponse {

	/**
	 * Returns the redacted response. `{success: true, response: …}` is unwrapped.
	 *
	 * @param mixed        $answer  Value that the filter returned; not null.
	 * @param list<string> $values  Secret values to redact.
	 * @param ErrorCode    $failed  Error code of a refusal without its own code.
	 * @param ErrorCode    $invalid Error code of an invalid value.
	 * @return array<mixed>
	 * @throws Failure With the plugin's own code, or `$failed` or `$invalid`.
	 */
	public static function response( #[\SensitiveParameter] mixed $answer, #[\SensitiveParameter] array $values, ErrorCode $failed, ErrorCode $invalid ): array {
		if ( is_wp_error( $answer ) ) {
			throw self::refusal( $answer->get_error_code(), $answer->get_error_message(), $answer->get_error_data(), $values, $failed );
		}
		if ( ! is_array( $answer ) ) {
			throw Failure::because( $invalid, __( 'The plugin that handles the request returned neither an array nor a WP_Error.', 'codebox' ) );
		}
		if ( false === ( $answer['success'] ?? null ) ) {
			$error = is_array( $answer['error'] ?? null ) ? $answer['error'] : [];
			throw self::refusal( $error['code'] ?? '', $error['message'] ?? '', $error['data'] ?? null, $values, $failed );
		}
		$clean = Redaction::answer( $answer, $values, $invalid );
		return true === ( $clean['success'] ?? null ) && is_array( $clean['response'] ?? null ) ? $clean['response'] : (array) $clean;
	}

	/**
	 * Builds the failure for a request that the plugin refused, with secrets redacted.
	 *
	 * @param mixed        $code    Error code of the plugin.
	 * @param mixed        $message Error message of the plugin.
	 * @param mixed        $data    Error data of the plugin.
	 * @param list<string> $values  Secret values to redact.
	 * @param ErrorCode    $failed  Error code when the plugin's own code cannot be shown.
	 */
	private static function refusal( mixed $code, #[\SensitiveParameter] mixed $message, #[\SensitiveParameter] mixed $data, #[\SensitiveParameter] array $values, ErrorCode $failed ): Failure {
		$known  = is_string( $code ) && 1 === preg_match( '/^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/D', $code ) && Redaction::line( $code, $values ) === $code;
		$line   = Redaction::line( $message, $values );
		$status = is_array( $data ) && is_int( $data['status'] ?? null ) && $data['status'] >= 400 && $data['status'] < 600 ? $data['status'] : $failed->http_status();
		$detail = [];
		try {
			$detail = is_array( $data ) ? (array) Redaction::answer( array_diff_key( $data, [ 'status' => 1, 'exit_status' => 1 ] ), $values, $failed ) : [];
		} catch ( Failure ) {
			$detail = [ 'detail' => Redaction::REPLACED ];
		}
		return new Failure( $known ? $code : $failed->value, '' === $line ? __( 'The plugin that handles the request refused it and gave no message.', 'codebox' ) : $line, $status, $failed->exit_status(), [], $detail );
	}

	/**
	 * Builds the failure of an exception thrown by a plugin. The exception text may contain secrets, so the
	 * server's log gets only file and line.
	 *
	 * @param Throwable $thrown  Exception that was caught.
	 * @param ErrorCode $code    Error code of the failure.
	 * @param string    $message Error message, one sentence.
	 */
	public static function thrown( #[\SensitiveParameter] Throwable $thrown, ErrorCode $code, string $message ): Failure {
		// phpcs:ignore WordPress.PHP.DevelopmentFunctions -- the only trace of a defect.
		error_log( sprintf( 'wp-codebox: %s in %s:%d', $thrown::class, $thrown->getFile(), $thrown->getLine() ) );
		return Failure::because( $code, $message );
	}
}
