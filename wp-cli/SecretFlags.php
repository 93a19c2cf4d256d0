<?php
/**
 * Secrets that an operator lends to a run.
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
 * `--secret-env=NAME[=HOST[,HOST]]`: the value is read from the environment of this command,
 * never from an argument. Without hosts it can only open the model of the task.
 */
final class SecretFlags {

	/**
	 * The secrets as the extension takes them.
	 *
	 * @param array<string, mixed> $flags Flags.
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
	 * One secret.
	 *
	 * @param string $text As given.
	 * @return array{env: string, value: string, hosts: list<string>}
	 */
	private static function secret( string $text ): array {
		if ( 1 !== preg_match( '/^([A-Z_][A-Z0-9_]*)(?:=(.*))?$/D', $text, $parts ) ) {
			// What is no name may be a value in the wrong place: it is not repeated.
			throw Failure::because( ErrorCode::SecretInvalid, __( '--secret-env must be NAME[=HOST[,HOST]]; NAME is a variable of the environment.', 'codebox' ) );
		}
		$value = getenv( $parts[1] );
		if ( false === $value ) {
			/* translators: %1$s: name of an environment variable. */
			throw Failure::because( ErrorCode::SecretInvalid, Sentence::of( __( '--secret-env=%1$s: the environment has no variable %1$s; export it, its value never belongs on the command line.', 'codebox' ), $parts[1] ) );
		}
		return [
			'env'   => $parts[1],
			'value' => $value,
			'hosts' => FlagList::split( '--secret-env', $parts[2] ?? '' ),
		];
	}
}
