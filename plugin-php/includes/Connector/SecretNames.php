<?php
/**
 * Recognizes secrets by the name of their member or header.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

defined( 'ABSPATH' ) || exit;

/**
 * Implements the redaction profile `provider_proxy` for traffic with model providers. The profile splits a
 * name into words: `access_token` is a secret; `max_tokens`, `total_tokens`, `key` and `value` are ordinary
 * members of model APIs.
 */
final class SecretNames {

	/** Pattern of the words in a normalized name that mark its value as a secret. */
	private const PARTS = '/secret|passw(?:or)?d|passphrase|credential|authorization|cookie|(?:api|private|access|signing|encryption|master)_?keys?(?:_|$)|^bearer$|(?:access|refresh|auth|session|security|bearer|api|(?:^|_)id)_?tokens?(?:_value)?$/';

	/** Members that hold only names or statuses of secrets, so they are not redacted. */
	private const NAMES_ONLY = [ 'secret_env', 'secretenv', 'secret_env_names', 'credential_names', 'credential_status', 'secrets_redacted' ];

	/** Token names that mean text tokens or pagination cursors. */
	private const HARMLESS = '/(?:^|_)(?:page|continuation|next|start|stop|eos|bos|pad|sep|unk|mask|special)_token$/';

	/**
	 * Checks whether the value under this name is a secret.
	 *
	 * @param string $name     Name of a member or header.
	 * @param bool   $text_bit Whether the value appears beside a log probability, as text tokens of a
	 *   response do.
	 */
	public static function has( string $name, bool $text_bit = false ): bool {
		$name = strtolower( (string) preg_replace( [ '/(?<=[a-z0-9])(?=[A-Z])/', '/[^A-Za-z0-9]+/' ], '_', $name ) );
		$name = trim( $name, '_' );
		if ( in_array( $name, self::NAMES_ONLY, true ) ) {
			return false;
		}
		if ( 1 === preg_match( self::PARTS, $name ) ) {
			return true;
		}
		return 1 === preg_match( '/(?:^|_)token$/', $name ) && 1 !== preg_match( self::HARMLESS, $name ) && ! $text_bit;
	}

	/**
	 * Checks whether a header of this name may carry a credential.
	 *
	 * @param string $name Header name.
	 */
	public static function in_header( string $name ): bool {
		return self::has( $name ) || 1 === preg_match( '/auth|api[-_]?key|token|secret|passw|cookie|signature|x-goog-api|x-functions-key/i', $name );
	}
}
