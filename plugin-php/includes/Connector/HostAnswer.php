<?php
/**
 * What a plugin of the site answers a request with.
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
 * An array is the response; an array with `success: false`, or a `WP_Error`, is a refusal. Nothing of it
 * reaches a caller or a log before it was searched for the values the plugin had.
 */
final class HostAnswer {

	/**
	 * The response in an answer, cleaned. `{success: true, response: …}` is unwrapped.
	 *
	 * @param mixed        $answer  As answered; not null.
	 * @param list<string> $values  Values that must not come through.
	 * @param ErrorCode    $failed  What a refusal without a code of its own is.
	 * @param ErrorCode    $invalid What an answer is that is none.
	 * @return array<mixed>
	 * @throws Failure The plugin's own code, or one of the two.
	 */
	public static function response( #[\SensitiveParameter] mixed $answer, #[\SensitiveParameter] array $values, ErrorCode $failed, ErrorCode $invalid ): array {
		if ( is_wp_error( $answer ) ) {
			throw self::refusal( $answer->get_error_code(), $answer->get_error_message(), $answer->get_error_data(), $values, $failed );
		}
		if ( ! is_array( $answer ) ) {
			throw Failure::because( $invalid, __( 'The plugin that carries such requests out answered neither an array nor a WP_Error.', 'codebox' ) );
		}
		if ( false === ( $answer['success'] ?? null ) ) {
			$error = is_array( $answer['error'] ?? null ) ? $answer['error'] : [];
			throw self::refusal( $error['code'] ?? '', $error['message'] ?? '', $error['data'] ?? null, $values, $failed );
		}
		$clean = Redaction::answer( $answer, $values, $invalid );
		return true === ( $clean['success'] ?? null ) && is_array( $clean['response'] ?? null ) ? $clean['response'] : (array) $clean;
	}

	/**
	 * A refusal of the plugin.
	 *
	 * @param mixed        $code    Its code.
	 * @param mixed        $message Its sentence.
	 * @param mixed        $data    Its detail.
	 * @param list<string> $values  Values that must not come through.
	 * @param ErrorCode    $failed  Code when it has none that can be shown.
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
		return new Failure( $known ? $code : $failed->value, '' === $line ? __( 'The plugin that carries such requests out refused.', 'codebox' ) : $line, $status, $failed->exit_status(), [], $detail );
	}

	/**
	 * An exception of a plugin. Its text may hold what the plugin was handed: the server's log gets the place only.
	 *
	 * @param Throwable $thrown  What was caught.
	 * @param ErrorCode $code    What it is.
	 * @param string    $message One sentence.
	 */
	public static function thrown( #[\SensitiveParameter] Throwable $thrown, ErrorCode $code, string $message ): Failure {
		// phpcs:ignore WordPress.PHP.DevelopmentFunctions -- the only trace of a defect.
		error_log( sprintf( 'wp-codebox: %s in %s:%d', $thrown::class, $thrown->getFile(), $thrown->getLine() ) );
		return Failure::because( $code, $message );
	}
}
