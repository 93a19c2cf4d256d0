<?php
/**
 * The values of the secrets that a task names.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Run;

use WPCodebox\ErrorCode;
use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/**
 * A task only names secrets. A plugin of this site supplies value and hosts, and thereby
 * decides who may use which; nothing is read from the database or the environment here.
 */
final class SecretChoice {

	/**
	 * The secrets as the extension takes them.
	 *
	 * @param array<string, mixed> $input Task input.
	 * @return list<array{env: string, value: string, hosts: list<string>}>
	 * @throws Failure `wp_codebox_secret_invalid` for a name that nobody supplies.
	 */
	public function resolve( array $input ): array {
		$names = array_values( array_unique( array_map( 'strval', (array) ( $input['secret_env'] ?? [] ) ) ) );
		if ( [] === $names ) {
			return [];
		}
		/**
		 * Supplies secrets of a run. The sandbox gets a placeholder under each name; the value
		 * goes only to the hosts given with it, which the run's network policy must allow.
		 *
		 * @param array<string, array{value: string, hosts: list<string>}> $values  By name.
		 * @param list<string>                                             $names   Names the task asks for.
		 * @param int                                                      $user_id Who asks; 0 for the operator.
		 */
		$values  = apply_filters( 'wp_codebox_secret_values', [], $names, get_current_user_id() );
		$secrets = [];
		foreach ( $names as $name ) {
			$row = is_array( $values ) ? ( $values[ $name ] ?? null ) : null;
			if ( ! is_array( $row ) || ! is_string( $row['value'] ?? null ) || ! is_array( $row['hosts'] ?? null ) ) {
				throw Failure::because(
					ErrorCode::SecretInvalid,
					sprintf( 'No plugin of this site supplies the secret %s to this user.', $name ),
					[ 'A host plugin answers the filter wp_codebox_secret_values with {value, hosts} for each name.' ]
				);
			}
			$secrets[] = [
				'env'   => $name,
				'value' => $row['value'],
				'hosts' => array_values( array_map( 'strval', $row['hosts'] ) ),
			];
		}
		return $secrets;
	}
}
