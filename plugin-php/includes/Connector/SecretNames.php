<?php
/**
 * Names whose values are secrets.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Connector;

defined( 'ABSPATH' ) || exit;

/**
 * The profile `provider_proxy`: it judges what providers and their callers say to each other, so it reads
 * a name word by word. `access_token` is a secret; `max_tokens`, `total_tokens`, `key` and `value`
 * are the everyday words of every model API.
 */
final class SecretNames {

	/** Anywhere in a name. */
	private const PARTS = '/secret|passw(?:or)?d|passphrase|credential|authorization|cookie|(?:api|private|access|signing|encryption|master)_?keys?(?:_|$)|^bearer$|(?:access|refresh|auth|session|security|bearer|api|(?:^|_)id)_?tokens?(?:_value)?$/';

	/** Names of secrets, and what is known of them. */
	private const NAMES_ONLY = [ 'secret_env', 'secretenv', 'secret_env_names', 'credential_names', 'credential_status', 'secrets_redacted' ];

	/** Tokens of text or of a list's pages. */
	private const HARMLESS = '/(?:^|_)(?:page|continuation|next|start|stop|eos|bos|pad|sep|unk|mask|special)_token$/';

	/**
	 * Whether a text under this name is a secret.
	 *
	 * @param string $name     Name of a member or header.
	 * @param bool   $text_bit Whether it stands beside a probability, as the tokens of an answer do.
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
	 * Whether a header of this name may carry a credential.
	 *
	 * @param string $name Name of a header.
	 */
	public static function in_header( string $name ): bool {
		return self::has( $name ) || 1 === preg_match( '/auth|api[-_]?key|token|secret|passw|cookie|signature|x-goog-api|x-functions-key/i', $name );
	}
}
