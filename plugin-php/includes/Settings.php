<?php
/**
 * Settings of the host.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox;

use WPCodebox\Connector\GrantFilter;
use WPCodebox\Connector\Scope;

defined( 'ABSPATH' ) || exit;

/**
 * Options of the whole installation: network options on multisite, plain options elsewhere. SettingRules
 * validates values on storage; this class checks them again on reading, because code can bypass that
 * validation.
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
	public const DIRECT_APPLY        = 'wp_codebox_direct_apply';
	public const FOUR_EYES           = 'wp_codebox_four_eyes';
	public const HEALTH_URLS         = 'wp_codebox_health_urls';
	public const FORGET_CHANGES      = 'wp_codebox_forget_changes';
	public const GIT_BRANCH          = 'wp_codebox_git_branch';

	/** Pattern of the id of a signing key: the SHA-256 of its public key. */
	public const KEY_ID = '/^[0-9a-f]{64}$/D';

	/** Names of the limits that a task can have. */
	public const LIMIT_FIELDS = [ 'wall_clock_ms', 'processes', 'memory_bytes', 'disk_bytes', 'output_bytes' ];

	/** Names of the fields of the git branch. */
	public const GIT_BRANCH_FIELDS = [ 'repository', 'directory', 'branch', 'base', 'author', 'committer' ];

	/** Names of the retention limits, as the extension defines them. */
	public const RETENTION_FIELDS = [ 'max_age_seconds', 'max_bytes', 'artifacts_max_age_seconds' ];

	/**
	 * Returns the agents that the settings define, by name.
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

	/** Returns the name of the default agent; '' when there is none. */
	public function default_agent(): string {
		/**
		 * Filters the name of the agent used when a task names none.
		 *
		 * @param string $name Name of a row of the option `wp_codebox_agents`, or ''.
		 */
		$name = apply_filters( 'wp_codebox_default_agent', $this->stored( self::DEFAULT_AGENT ) );
		return is_string( $name ) ? $name : '';
	}

	/** Returns the id of the default model provider; '' when there is none. */
	public function default_provider(): string {
		/**
		 * Filters the id of the model provider used when a task names none.
		 *
		 * @param string $name The option `wp_codebox_default_provider`, or ''.
		 */
		$name = apply_filters( 'wp_codebox_default_provider', $this->stored( self::DEFAULT_PROVIDER ) );
		return is_string( $name ) ? $name : '';
	}

	/** Returns the id of the default model; '' when there is none. */
	public function default_model(): string {
		/**
		 * Filters the id of the model used when a task names none.
		 *
		 * @param string $name The option `wp_codebox_default_model`, or ''.
		 */
		$name = apply_filters( 'wp_codebox_default_model', $this->stored( self::DEFAULT_MODEL ) );
		return is_string( $name ) ? $name : '';
	}

	/**
	 * Returns the configured model providers besides the built-in ones; Model\Providers parses the rows.
	 *
	 * @return array<mixed>
	 */
	public function providers(): array {
		return $this->map( self::PROVIDERS );
	}

	/** Returns the site's instructions for the built-in agent, sent with each task. */
	public function instructions(): string {
		/**
		 * Filters the site's instructions for the built-in agent, which it gets in addition to the task.
		 * Include no secrets: the model provider receives this text.
		 *
		 * @param string $text The option `wp_codebox_agent_instructions`, or ''.
		 */
		$text = apply_filters( 'wp_codebox_agent_instructions', $this->stored( self::INSTRUCTIONS ) );
		return is_string( $text ) ? trim( $text ) : '';
	}

	/**
	 * Returns the site's component contracts: plugins that every sandbox loads.
	 *
	 * @return list<array<string, mixed>> Rows with a `slug`; a later row with the same slug replaces an
	 *   earlier one.
	 */
	public function component_contracts(): array {
		/**
		 * Filters the component contracts of the site: plugins that every sandbox loads.
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
	 * Returns the ids of trusted signing keys besides this host's own key. The extension refuses a malformed id, so
	 * those are left out.
	 *
	 * @return list<string>
	 */
	public function trusted_keys(): array {
		$stored = array_values( (array) preg_grep( self::KEY_ID, array_filter( $this->map( self::TRUSTED_KEYS ), 'is_string' ) ) );
		/**
		 * Filters the trusted signing keys. The filter can only restrict: a key that the settings do not list
		 * stays untrusted.
		 *
		 * @param list<string> $keys Key ids from the option `wp_codebox_trusted_keys`.
		 */
		$filtered = apply_filters( 'wp_codebox_trusted_keys', $stored );
		$filtered = is_array( $filtered ) ? array_filter( $filtered, 'is_string' ) : [];
		if ( [] !== array_diff( $filtered, $stored ) ) {
			PermissionFilter::widened( 'wp_codebox_trusted_keys' );
		}
		return array_values( array_intersect( $stored, $filtered ) );
	}

	/**
	 * Returns the scopes (rights for browser sandboxes) that are granted to application passwords.
	 *
	 * @param mixed $authorization Field `authorization` of the input, as the caller claims it.
	 * @param mixed $input         Ability input.
	 * @return array<string, list<string>> Scopes by id of the application password.
	 */
	public function trusted_callers( mixed $authorization = [], mixed $input = [] ): array {
		$stored = [];
		foreach ( $this->map( self::TRUSTED_CALLERS ) as $uuid => $scopes ) {
			if ( is_string( $uuid ) && is_array( $scopes ) ) {
				$stored[ $uuid ] = array_values( array_intersect( Scope::names(), array_filter( $scopes, 'is_string' ) ) );
			}
		}
		return GrantFilter::left( $stored, $authorization, $input );
	}

	/**
	 * Returns the limits of a task that requests none.
	 *
	 * @return array<string, int> Values by field of the task's `limits`.
	 */
	public function default_limits(): array {
		return $this->numbers( $this->map( self::LIMITS )['defaults'] ?? [], self::LIMIT_FIELDS );
	}

	/**
	 * Returns the highest limits that a task may request.
	 *
	 * @return array<string, int> Values by field of the task's `limits`.
	 */
	public function limit_ceilings(): array {
		return $this->numbers( $this->map( self::LIMITS )['ceilings'] ?? [], self::LIMIT_FIELDS );
	}

	/** Returns the site's limit of parallel runs; null when the host's limit applies. */
	public function own_max_runs(): ?int {
		$stored = get_site_option( self::MAX_RUNS, 0 );
		return is_numeric( $stored ) && (int) $stored > 0 ? (int) $stored : null;
	}

	/** Returns the host's limit `wp_codebox.max_runs`; null when the extension does not report one. */
	public function host_max_runs(): ?int {
		$host = ExtensionGate::info()['max_runs'] ?? null;
		return is_int( $host ) ? $host : null;
	}

	/** Returns the effective limit of parallel runs, never above the host's limit; null when no limit is known. */
	public function max_runs(): ?int {
		$given = array_filter( [ $this->own_max_runs(), $this->host_max_runs() ], 'is_int' );
		return [] === $given ? null : min( $given );
	}

	/** Returns whether the plugin itself writes approved changes into this site. */
	public function direct_apply(): bool {
		return true === (bool) get_site_option( self::DIRECT_APPLY, false );
	}

	/**
	 * Returns repository, branches and people of the git branch adapter; '' for a field that is not set.
	 *
	 * @return array<string, string>
	 */
	public function git_branch(): array {
		$stored = array_filter( $this->map( self::GIT_BRANCH ), 'is_string' );
		return array_intersect_key( $stored, array_flip( self::GIT_BRANCH_FIELDS ) ) + array_fill_keys( self::GIT_BRANCH_FIELDS, '' );
	}

	/** Returns whether the user who asked for a change may not approve it. */
	public function four_eyes(): bool {
		return true === (bool) get_site_option( self::FOUR_EYES, false );
	}

	/**
	 * Returns the further pages, chosen by the administrator, that show whether the site works after a change.
	 *
	 * @return list<string> Absolute URLs.
	 */
	public function health_urls(): array {
		return array_values( array_filter( $this->map( self::HEALTH_URLS ), 'is_string' ) );
	}

	/**
	 * Returns the age and size limits that garbage collection uses by default. Bundles are kept unless
	 * `artifacts_max_age_seconds` is set.
	 *
	 * @return array<string, int> `max_age_seconds`, `max_bytes`, `artifacts_max_age_seconds`; only the fields
	 *   that are set.
	 */
	public function retention(): array {
		return $this->numbers( $this->map( self::RETENTION ), self::RETENTION_FIELDS );
	}

	/**
	 * Reads an option that holds a list or map; any other type counts as empty.
	 *
	 * @param string $option Name of the option.
	 * @return array<mixed>
	 */
	private function map( string $option ): array {
		$value = get_site_option( $option, [] );
		return is_array( $value ) ? $value : [];
	}

	/**
	 * Reads an option that holds text, before any filter; any other type counts as empty.
	 *
	 * @param string $option Name of the option.
	 */
	public function stored( string $option ): string {
		$value = get_site_option( $option, '' );
		return is_string( $value ) ? $value : '';
	}

	/**
	 * Returns those of the given fields that hold a positive integer.
	 *
	 * @param mixed        $row    Stored row.
	 * @param list<string> $fields Names of the fields.
	 * @return array<string, int>
	 */
	private function numbers( mixed $row, array $fields ): array {
		$row = is_array( $row ) ? array_intersect_key( $row, array_flip( $fields ) ) : [];
		return array_filter( $row, static fn( mixed $value ): bool => is_int( $value ) && $value > 0 );
	}
}
