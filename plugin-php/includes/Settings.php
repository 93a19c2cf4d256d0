<?php
/**
 * Host settings, and the filters over them.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

defined( 'ABSPATH' ) || exit;

/**
 * Options of the whole installation: network options on multisite, plain options elsewhere.
 */
final class Settings {

	public const AGENTS        = 'wp_codebox_agents';
	public const DEFAULT_AGENT = 'wp_codebox_default_agent';
	public const TRUSTED_KEYS  = 'wp_codebox_trusted_keys';
	public const ALL           = [ self::AGENTS, self::DEFAULT_AGENT, self::TRUSTED_KEYS ];

	/**
	 * Agents the site offers by name.
	 *
	 * @return array<string, array{command: string, success_codes: list<int>}>
	 */
	public function agents(): array {
		$agents = [];
		foreach ( $this->map( self::AGENTS ) as $name => $row ) {
			if ( ! is_string( $name ) || ! is_array( $row ) || ! is_string( $row['command'] ?? null ) || '' === trim( $row['command'] ) ) {
				continue;
			}
			$codes           = is_array( $row['success_codes'] ?? null ) ? array_values( array_filter( $row['success_codes'], 'is_int' ) ) : [];
			$agents[ $name ] = [
				'command'       => $row['command'],
				'success_codes' => [] === $codes ? [ 0 ] : $codes,
			];
		}
		return $agents;
	}

	/** Name of the agent that runs when a task names none; empty when there is none. */
	public function default_agent(): string {
		$stored = get_site_option( self::DEFAULT_AGENT, '' );
		/**
		 * Filters the name of the agent that runs when a task names none.
		 *
		 * @param string $name Name of a row of the option `wp_codebox_agents`, or ''.
		 */
		$name = apply_filters( 'wp_codebox_default_agent', is_string( $stored ) ? $stored : '' );
		return is_string( $name ) ? $name : '';
	}

	/**
	 * Ids of further signing keys whose bundles may be applied here, beside this host's own.
	 *
	 * @return list<string>
	 */
	public function trusted_keys(): array {
		$stored = array_values( array_filter( $this->map( self::TRUSTED_KEYS ), 'is_string' ) );
		/**
		 * Filters the keys a bundle may be signed with. The answer can only narrow:
		 * a key that the settings do not name stays untrusted.
		 *
		 * @param list<string> $keys Key ids from the option `wp_codebox_trusted_keys`.
		 */
		$filtered = apply_filters( 'wp_codebox_trusted_keys', $stored );
		return is_array( $filtered ) ? array_values( array_intersect( $stored, array_filter( $filtered, 'is_string' ) ) ) : [];
	}

	/**
	 * An option that holds a list or map; anything else counts as empty.
	 *
	 * @param string $option Name.
	 * @return array<mixed>
	 */
	private function map( string $option ): array {
		$value = get_site_option( $option, [] );
		return is_array( $value ) ? $value : [];
	}
}
