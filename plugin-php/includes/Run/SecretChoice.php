<?php
/**
 * Values of the secrets that a task names.
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
 * A task contains only names of secrets. A plugin of this site supplies value and hosts and thereby decides
 * which user may use a secret; for the operator, the command's environment is read too. A secret without
 * hosts can only be the API key of the task's model.
 */
final class SecretChoice {

	/**
	 * Returns the secrets of a task with their values, as rows of the run request.
	 *
	 * @param array<string, mixed>       $input     Task input.
	 * @param Authority                  $authority User or operator the call runs as.
	 * @param list<array<string, mixed>> $lent      Secrets from `--secret-env`, each {env, value, hosts}.
	 * @return list<array{env: string, value: string, hosts: list<string>}>
	 * @throws Failure `wp_codebox_secret_invalid` for a name without a supplied value.
	 */
	public function resolve( array $input, Authority $authority = Authority::User, #[\SensitiveParameter] array $lent = [] ): array {
		$names = $this->names( $input );
		$names = array_values( array_diff( $names, array_column( $lent, 'env' ) ) );
		if ( [] === $names ) {
			return $lent;
		}
		/**
		 * Supplies secrets of a run. The sandbox gets a placeholder under each name; the value is sent only
		 * to the hosts given with it, which the run's network policy must allow.
		 *
		 * @param array<string, array{value: string, hosts?: list<string>}> $values  Secrets by name; an API
		 *   key of the model needs no hosts.
		 * @param list<string>                                             $names   Names that the task
		 *   requests.
		 * @param int                                                      $user_id User id of the caller; 0
		 *   for the operator.
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
					[ __( 'Install a plugin that answers the filter wp_codebox_secret_values with {value, hosts} for each name.', 'codebox' ), __( 'Or the operator exports the secret as an environment variable and starts the task with WP-CLI.', 'codebox' ) ]
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

	/**
	 * Returns the names of the secrets that a task gets: its own, else those of the site.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return list<string>
	 */
	private function names( array $input ): array {
		$names = (array) ( $input['secret_env'] ?? [] );
		if ( [] === $names && empty( $input['inherit']['connectors'] ) ) {
			/**
			 * Filters the names of the secrets of a task that names none and inherits no connector. The values
			 * come from the filter `wp_codebox_secret_values`.
			 *
			 * @param list<string> $names Empty.
			 */
			$default = apply_filters( 'wp_codebox_default_secret_env', [] );
			$names   = array_filter( is_array( $default ) ? $default : [], 'is_string' );
		}
		return array_values( array_unique( array_map( 'strval', $names ) ) );
	}
}
