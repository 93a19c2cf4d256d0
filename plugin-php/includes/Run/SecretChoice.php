<?php
/**
 * The values of the secrets that a task names.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\Authority;
use WPCodebox\ErrorCode;
use WPCodebox\Failure;
use WPCodebox\Sentence;

defined( 'ABSPATH' ) || exit;

/**
 * A task only names secrets. A plugin of this site supplies value and hosts, and thereby
 * decides who may use which; for the operator alone the environment of the command is read too.
 * One without hosts can only open the model of the task.
 */
final class SecretChoice {

	/**
	 * The secrets as the extension takes them.
	 *
	 * @param array<string, mixed>       $input     Task input.
	 * @param Authority                  $authority User or operator the call runs as.
	 * @param list<array<string, mixed>> $lent      Secrets the operator lends: {env, value, hosts}.
	 * @return list<array{env: string, value: string, hosts: list<string>}>
	 * @throws Failure `wp_codebox_secret_invalid` for a name that nobody supplies.
	 */
	public function resolve( array $input, Authority $authority = Authority::User, #[\SensitiveParameter] array $lent = [] ): array {
		$names = array_values( array_unique( array_map( 'strval', (array) ( $input['secret_env'] ?? [] ) ) ) );
		$names = array_values( array_diff( $names, array_column( $lent, 'env' ) ) );
		if ( [] === $names ) {
			return $lent;
		}
		/**
		 * Supplies secrets of a run. The sandbox gets a placeholder under each name; the value
		 * goes only to the hosts given with it, which the run's network policy must allow.
		 *
		 * @param array<string, array{value: string, hosts?: list<string>}> $values  By name; a key of the model needs no hosts.
		 * @param list<string>                                             $names   Names the task asks for.
		 * @param int                                                      $user_id Who asks; 0 for the operator.
		 */
		$values  = apply_filters( 'wp_codebox_secret_values', [], $names, get_current_user_id() );
		$secrets = $lent;
		foreach ( $names as $name ) {
			$row = is_array( $values ) ? ( $values[ $name ] ?? null ) : null;
			if ( null === $row && Authority::Operator === $authority && is_string( getenv( $name ) ) ) {
				$row = [
					'value' => getenv( $name ),
					'hosts' => [],
				];
			}
			if ( ! is_array( $row ) || ! is_string( $row['value'] ?? null ) || ! is_array( $row['hosts'] ?? [] ) ) {
				throw Failure::because(
					ErrorCode::SecretInvalid,
					/* translators: %s: name of an environment variable. */
					Sentence::of( __( 'No plugin of this site supplies the secret %s to this user.', 'codebox' ), $name ),
					[ __( 'A host plugin answers the filter wp_codebox_secret_values with {value, hosts} for each name.', 'codebox' ), __( 'The operator exports it in the environment of WP-CLI.', 'codebox' ) ]
				);
			}
			$secrets[] = [
				'env'   => $name,
				'value' => $row['value'],
				'hosts' => array_values( array_map( 'strval', $row['hosts'] ?? [] ) ),
			];
		}
		return $secrets;
	}
}
