<?php
/**
 * Parses `--secret-env`, the secrets that the operator passes to a run.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Cli;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * `--secret-env=NAME[=HOST[,HOST]]`: the value comes from the environment of this command, never from an
 * argument. Without hosts the secret can only be the API key of the task's model.
 */
final class SecretFlags {

	/**
	 * Returns the secrets in the form the extension takes.
	 *
	 * @param array<string, mixed> $flags Flags of the command line, by name.
	 * @return list<array{env: string, value: string, hosts: list<string>}>
	 * @throws Failure `wp_codebox_secret_invalid`.
	 */
	public static function secrets( array $flags ): array {
		if ( ! isset( $flags['secret-env'] ) ) {
			return [];
		}
		return array_map( [ self::class, 'secret' ], FlagList::one_or_json( '--secret-env', (string) $flags['secret-env'] ) );
	}

	/**
	 * Parses one secret.
	 *
	 * @param string $text Value as the user typed it.
	 * @return array{env: string, value: string, hosts: list<string>}
	 */
	private static function secret( string $text ): array {
		if ( 1 !== preg_match( '/^([A-Z_][A-Z0-9_]*)(?:=(.*))?$/D', $text, $parts ) ) {
			// A malformed name may be a secret value typed in the wrong place, so the message does not repeat
			// it.
			throw Failure::because( ErrorCode::SecretInvalid, __( '--secret-env must be NAME[=HOST[,HOST]]: the name of an environment variable in capital letters, and the hosts that may get its value.', 'codebox' ) );
		}
		$value = getenv( $parts[1] );
		if ( false === $value ) {
			/* translators: %1$s: name of an environment variable. */
			throw Failure::because( ErrorCode::SecretInvalid, Sentence::of( __( '--secret-env=%1$s: the environment has no variable %1$s; export it, and do not put its value on the command line.', 'codebox' ), $parts[1] ) );
		}
		return [
			'env'   => $parts[1],
			'value' => $value,
			'hosts' => FlagList::split( '--secret-env', $parts[2] ?? '' ),
		];
	}
}
