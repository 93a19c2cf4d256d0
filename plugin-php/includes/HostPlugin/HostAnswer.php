<?php
/**
 * Answers of plugins of this site that do work on request.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\HostPlugin;

use Throwable;
use WP_Error;
use WPCodebox\Connector\PluginResponse;
use WPCodebox\Connector\Redaction;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * Calls a plugin and converts its answer to plain JSON data of bounded size, without known forms of secrets. An
 * exception of the plugin goes to the server's log only.
 */
final class HostAnswer {

	/** Maximum size of a request that is passed to a plugin, in bytes of JSON. */
	public const MOST_BYTES = 1048576;

	/**
	 * Calls a plugin.
	 *
	 * @param callable(): mixed $call    Calls the plugin.
	 * @param ErrorCode         $failed  Error code when it throws.
	 * @param string            $message Error message when it throws, one sentence.
	 * @throws Failure With the error code.
	 */
	public static function of( callable $call, ErrorCode $failed, string $message ): mixed {
		try {
			return $call();
		} catch ( Failure $failure ) {
			throw $failure;
		} catch ( Throwable $thrown ) {
			throw PluginResponse::thrown( $thrown, $failed, $message );
		}
	}

	/**
	 * Returns the answer as an object in plain data.
	 *
	 * @param mixed     $answer  Value that the plugin returned.
	 * @param ErrorCode $failed  Error code of a `WP_Error` whose own code cannot be shown.
	 * @param ErrorCode $invalid Error code of a value that is not an object in JSON.
	 * @return array<string, mixed>
	 * @throws Failure With one of the error codes, or the plugin's own.
	 */
	public static function document( mixed $answer, ErrorCode $failed, ErrorCode $invalid ): array {
		if ( $answer instanceof WP_Error ) {
			throw self::refusal( $answer, $failed );
		}
		$plain = is_array( $answer ) ? Redaction::answer( $answer, [], $invalid ) : null;
		if ( ! is_array( $plain ) || [] === $plain || array_is_list( $plain ) ) {
			throw Failure::because( $invalid, __( 'The plugin that handles the request must return an array with named keys, which is not empty, or a WP_Error.', 'codebox' ) );
		}
		return $plain;
	}

	/**
	 * Converts a `WP_Error` of a plugin to a failure without secrets.
	 *
	 * @param WP_Error  $error  Error of the plugin.
	 * @param ErrorCode $failed Error code when the plugin's own cannot be shown.
	 */
	public static function refusal( WP_Error $error, ErrorCode $failed ): Failure {
		if ( 'ability_callback_exception' === $error->get_error_code() ) {
			// WordPress caught an exception of an ability and put its text into the message.
			return Failure::because( $failed, __( 'The ability that handles the request threw an exception.', 'codebox' ) );
		}
		try {
			PluginResponse::response( $error, [], $failed, $failed );
		} catch ( Failure $failure ) {
			return $failure;
		}
		return Failure::because( $failed, __( 'The plugin that handles the request refused it.', 'codebox' ) );
	}

	/**
	 * Checks the size of the objects that a caller gave, before they are passed to a plugin.
	 *
	 * @param array<string, mixed> $input   Input of an ability.
	 * @param ErrorCode            $invalid Error code when the input is too large or cannot be written as JSON.
	 * @throws Failure With the error code.
	 */
	public static function bounded( array $input, ErrorCode $invalid ): void {
		Redaction::plain( $input, $invalid, __( 'The input', 'codebox' ), self::MOST_BYTES );
	}

	/**
	 * Returns the input with the named fields trimmed: strings, and the strings of a list.
	 *
	 * @param array<string, mixed> $input  Input of an ability.
	 * @param list<string>         $fields Fields whose value is one string or a list of strings.
	 * @return array<string, mixed>
	 */
	public static function trimmed( array $input, array $fields ): array {
		foreach ( array_intersect( $fields, array_keys( $input ) ) as $field ) {
			$value = $input[ $field ];
			if ( is_string( $value ) ) {
				$input[ $field ] = trim( $value );
			} elseif ( is_array( $value ) && array_is_list( $value ) ) {
				$input[ $field ] = array_map( static fn( mixed $item ): mixed => is_string( $item ) ? trim( $item ) : $item, $value );
			}
		}
		return $input;
	}

	/**
	 * Returns the members that are not empty. PHP would encode an empty object as a list.
	 *
	 * @param array<string, mixed> $members Members of a document.
	 * @return array<string, mixed>
	 */
	public static function filled( array $members ): array {
		return array_filter( $members, static fn( mixed $value ): bool => ! in_array( $value, [ null, '', [] ], true ) );
	}

	/**
	 * Returns the first id in an answer that differs from the expected one; null when all agree. An answer may repeat the
	 * id under several names.
	 *
	 * @param array<string, mixed> $answer   Answer of a plugin.
	 * @param list<string>         $names    Names of the id.
	 * @param string               $expected Id of the request.
	 */
	public static function foreign( array $answer, array $names, string $expected ): ?string {
		foreach ( $names as $name ) {
			if ( isset( $answer[ $name ] ) && $answer[ $name ] !== $expected ) {
				return is_string( $answer[ $name ] ) ? Redaction::line( $answer[ $name ] ) : $name;
			}
		}
		return null;
	}

	/**
	 * Builds a diagnosis for an answer.
	 *
	 * @param ErrorCode $code     Code.
	 * @param string    $message  One sentence.
	 * @param string    $field    Field of the input; '' for none.
	 * @param string    $severity `error`, `warning` or `info`.
	 * @return array<string, string>
	 */
	public static function diagnosis( ErrorCode $code, string $message, string $field = '', string $severity = 'error' ): array {
		return [
			'code'     => $code->value,
			'message'  => $message,
			'severity' => $severity,
		] + ( '' === $field ? [] : [ 'field' => $field ] );
	}
}
