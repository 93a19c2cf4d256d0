<?php
/**
 * Validates the settings about applying changes.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\DirectApply;

use WPCodebox\Failure;

defined( 'ABSPATH' ) || exit;

/** Each method returns the value to store, or throws the error message for the administrator. */
final class SettingChecks {

	/**
	 * Validates a switch. The settings page posts nothing for a switch that is off.
	 *
	 * @param mixed $value Value as the caller gave it.
	 */
	public static function flag( mixed $value ): bool {
		$flag = null === $value || '' === $value ? false : filter_var( $value, FILTER_VALIDATE_BOOLEAN, FILTER_NULL_ON_FAILURE );
		return $flag ?? throw Failure::invalid_input( __( 'This setting must be true or false.', 'codebox' ) );
	}

	/**
	 * Validates the switch of direct apply. Turning it on writes the file that answers the recovery link, and fails when
	 * that file cannot be written.
	 *
	 * @param mixed $value Value as the caller gave it.
	 */
	public static function direct_apply( mixed $value ): bool {
		$flag = self::flag( $value );
		if ( $flag ) {
			RecoveryFile::write();
		}
		return $flag;
	}

	/**
	 * Validates URLs of this site, given as a list or one per line. Requests go only to this site.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @return list<string>
	 */
	public static function health_urls( mixed $value ): array {
		$lines = is_string( $value ) ? explode( "\n", $value ) : (array) $value;
		$urls  = [];
		foreach ( $lines as $line ) {
			$url = is_string( $line ) ? trim( $line ) : '?';
			if ( '' === $url ) {
				continue;
			}
			if ( wp_parse_url( $url, PHP_URL_HOST ) !== wp_parse_url( home_url(), PHP_URL_HOST ) || ! in_array( wp_parse_url( $url, PHP_URL_SCHEME ), [ 'http', 'https' ], true ) ) {
				/* translators: %s: URL as typed. */
				throw Failure::invalid_input( sprintf( __( '"%s" is not a URL of this site; give its whole address, with https://.', 'codebox' ), $url ) );
			}
			$urls[] = $url;
		}
		return $urls;
	}
}
