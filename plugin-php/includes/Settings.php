<?php
/**
 * Host settings.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use WPCodebox\Connector\Scope;

defined( 'ABSPATH' ) || exit;

/**
 * Options of the whole installation: network options on multisite, plain options elsewhere.
 * What may be stored is judged by SettingRules; what is read here is checked again, since an
 * option can also be written past them.
 */
final class Settings {

	public const AGENTS              = 'wp_codebox_agents';
	public const DEFAULT_AGENT       = 'wp_codebox_default_agent';
	public const DEFAULT_PROVIDER    = 'wp_codebox_default_provider';
	public const DEFAULT_MODEL       = 'wp_codebox_default_model';
	public const PROVIDERS           = 'wp_codebox_providers';
	public const INSTRUCTIONS        = 'wp_codebox_agent_instructions';
	public const COMPONENT_CONTRACTS = 'wp_codebox_component_contracts';
	public const TRUSTED_KEYS        = 'wp_codebox_trusted_keys';
	public const TRUSTED_CALLERS     = 'wp_codebox_trusted_callers';
	public const LIMITS              = 'wp_codebox_limits';
	public const MAX_RUNS            = 'wp_codebox_max_runs';
	public const RETENTION           = 'wp_codebox_retention';

	/** Fields of a task's limits. */
	public const LIMIT_FIELDS = [ 'wall_clock_ms', 'processes', 'memory_bytes', 'disk_bytes', 'output_bytes' ];

	/** Fields of the retention; the names are the extension's. */
	public const RETENTION_FIELDS = [ 'max_age_seconds', 'max_bytes', 'artifacts_max_age_seconds' ];

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
		/**
		 * Filters the name of the agent that runs when a task names none.
		 *
		 * @param string $name Name of a row of the option `wp_codebox_agents`, or ''.
		 */
		$name = apply_filters( 'wp_codebox_default_agent', $this->stored( self::DEFAULT_AGENT ) );
		return is_string( $name ) ? $name : '';
	}

	/** Name of the model provider an agent should use when the task names none; empty when there is none. */
	public function default_provider(): string {
		/**
		 * Filters the name of the model provider for tasks that name none.
		 *
		 * @param string $name The option `wp_codebox_default_provider`, or ''.
		 */
		$name = apply_filters( 'wp_codebox_default_provider', $this->stored( self::DEFAULT_PROVIDER ) );
		return is_string( $name ) ? $name : '';
	}

	/** Name of the model an agent should use when the task names none; empty when there is none. */
	public function default_model(): string {
		/**
		 * Filters the name of the model for tasks that name none.
		 *
		 * @param string $name The option `wp_codebox_default_model`, or ''.
		 */
		$name = apply_filters( 'wp_codebox_default_model', $this->stored( self::DEFAULT_MODEL ) );
		return is_string( $name ) ? $name : '';
	}

	/**
	 * Model providers of this site, beside those that are built in; Model\Providers reads the rows.
	 *
	 * @return array<mixed>
	 */
	public function providers(): array {
		return $this->map( self::PROVIDERS );
	}

	/** What the host wants said to the model of the built-in agent beside each task. */
	public function instructions(): string {
		/**
		 * Filters what the built-in agent is told beside its task. It is not from the author of
		 * the task. No secrets: the model's provider reads it.
		 *
		 * @param string $text The option `wp_codebox_agent_instructions`, or ''.
		 */
		$text = apply_filters( 'wp_codebox_agent_instructions', $this->stored( self::INSTRUCTIONS ) );
		return is_string( $text ) ? trim( $text ) : '';
	}

	/**
	 * Components a sandbox of this site should know, by slug.
	 *
	 * @return list<array<string, mixed>> Each with a `slug`; a later row of the same slug replaces an earlier one.
	 */
	public function component_contracts(): array {
		/**
		 * Filters the components a sandbox should know.
		 *
		 * @param list<array<string, mixed>> $contracts Rows of the option `wp_codebox_component_contracts`, each with a `slug`.
		 */
		$rows   = apply_filters( 'wp_codebox_component_contracts', array_values( $this->map( self::COMPONENT_CONTRACTS ) ) );
		$chosen = [];
		foreach ( is_array( $rows ) ? $rows : [] as $row ) {
			if ( is_array( $row ) && is_string( $row['slug'] ?? null ) && '' !== $row['slug'] ) {
				$chosen[ $row['slug'] ] = $row;
			}
		}
		return array_values( $chosen );
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
	 * Application passwords that are trusted with scopes.
	 *
	 * @return array<string, list<string>> Id of an application password to its scopes.
	 */
	public function trusted_callers(): array {
		$stored = [];
		foreach ( $this->map( self::TRUSTED_CALLERS ) as $uuid => $scopes ) {
			if ( is_string( $uuid ) && is_array( $scopes ) ) {
				$stored[ $uuid ] = array_values( array_intersect( Scope::names(), array_filter( $scopes, 'is_string' ) ) );
			}
		}
		/**
		 * Filters the application passwords that are trusted with scopes of browser sandboxes. The
		 * answer can only narrow: what the settings do not grant stays refused.
		 *
		 * @param array<string, list<string>> $callers Id of an application password to its scopes, from the option `wp_codebox_trusted_callers`.
		 */
		$filtered = apply_filters( 'wp_codebox_trusted_browser_session_callers', $stored );
		$granted  = [];
		foreach ( is_array( $filtered ) ? array_intersect_key( $stored, $filtered ) : [] as $uuid => $scopes ) {
			$left = is_array( $filtered[ $uuid ] ) ? array_filter( $filtered[ $uuid ], 'is_string' ) : [];

			$granted[ $uuid ] = array_values( array_intersect( $scopes, $left ) );
		}
		return array_filter( $granted );
	}

	/**
	 * What a task gets that does not ask.
	 *
	 * @return array<string, int> Field of the task's `limits` to value.
	 */
	public function default_limits(): array {
		return $this->numbers( $this->map( self::LIMITS )['defaults'] ?? [], self::LIMIT_FIELDS );
	}

	/**
	 * The most a task may ask for.
	 *
	 * @return array<string, int> Field of the task's `limits` to value.
	 */
	public function limit_ceilings(): array {
		return $this->numbers( $this->map( self::LIMITS )['ceilings'] ?? [], self::LIMIT_FIELDS );
	}

	/** Runs that may be alive at once as the site wants it; null when it leaves that to the host. */
	public function own_max_runs(): ?int {
		$stored = get_site_option( self::MAX_RUNS, 0 );
		return is_numeric( $stored ) && (int) $stored > 0 ? (int) $stored : null;
	}

	/** What the host's `wp_codebox.max_runs` allows; null when the extension does not say. */
	public function host_max_runs(): ?int {
		$host = ExtensionGate::info()['max_runs'] ?? null;
		return is_int( $host ) ? $host : null;
	}

	/** Runs that may be alive at once: never more than the host allows. Null when nobody says. */
	public function max_runs(): ?int {
		$given = array_filter( [ $this->own_max_runs(), $this->host_max_runs() ], 'is_int' );
		return [] === $given ? null : min( $given );
	}

	/**
	 * What a collection removes that is not told otherwise. Bundles are kept unless
	 * `artifacts_max_age_seconds` is set.
	 *
	 * @return array<string, int> `max_age_seconds`, `max_bytes`, `artifacts_max_age_seconds`; only those that are set.
	 */
	public function retention(): array {
		return $this->numbers( $this->map( self::RETENTION ), self::RETENTION_FIELDS );
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

	/**
	 * An option that holds text, as it is stored, before any filter; anything else counts as empty.
	 *
	 * @param string $option Name.
	 */
	public function stored( string $option ): string {
		$value = get_site_option( $option, '' );
		return is_string( $value ) ? $value : '';
	}

	/**
	 * The positive whole numbers among some fields.
	 *
	 * @param mixed        $row    As stored.
	 * @param list<string> $fields Names.
	 * @return array<string, int>
	 */
	private function numbers( mixed $row, array $fields ): array {
		$row = is_array( $row ) ? array_intersect_key( $row, array_flip( $fields ) ) : [];
		return array_filter( $row, static fn( mixed $value ): bool => is_int( $value ) && $value > 0 );
	}
}
