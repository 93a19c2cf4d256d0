<?php
/**
 * Plans changes of the state that plugins keep, and makes those of options.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Guest\Command;

require_once __DIR__ . '/ownership.php';

/**
 * Plans one change for each option and table of a plugin.
 */
final class Fuzz_State {
	/** Maximum number of planned changes. */
	private const ACTIONS = 500;

	/** Modes in which no change is made, whatever execute_mutations says. */
	private const PLANNING = array( 'plan', 'plan-only', 'dry-run', 'none' );

	/** Whether the caller asked to make the changes. */
	private readonly bool $execute;

	/** Name of the strategy. */
	private readonly string $mode;

	/** Whether requests to other hosts are allowed during a change. */
	private readonly bool $external;

	/**
	 * Conditions of a change: whether each is required.
	 *
	 * @var array<string,bool>
	 */
	private readonly array $required;

	/**
	 * Creates the object.
	 *
	 * @param Arguments $arguments Arguments of the guest command.
	 */
	public function __construct( Arguments $arguments ) {
		$mode           = cut( $arguments->first( 'mutation_mode' ), 100 );
		$this->execute  = $arguments->truth( 'execute_mutations', false );
		$this->mode     = '' === $mode ? ( $this->execute ? 'round-trip' : 'plan-only' ) : $mode;
		$this->external = $arguments->truth( 'external_dispatch', false );
		$this->required = array(
			'connectedState'    => $arguments->truth( 'connected_state_required_for_mutation', true ),
			'runtimeIsolation'  => $arguments->truth( 'runtime_isolation_required_for_mutation', true ),
			'disposableSandbox' => $arguments->truth( 'disposable_sandbox_required', true ),
		);
	}

	/**
	 * Plans the changes, makes them if asked to, and returns the result.
	 *
	 * @return array<string,mixed> `wp-codebox/wordpress-plugin-module-state-plan/v1`.
	 */
	public function document(): array {
		$reason  = $this->reason();
		$found   = ( new Ownership() )->document();
		$actions = array();
		foreach ( array( 'option' => $found['options'], 'table' => $found['tables'] ) as $kind => $rows ) {
			foreach ( $rows as $row ) {
				foreach ( $row['plugins'] as $plugin ) {
					if ( count( $actions ) < self::ACTIONS ) {
						$actions[] = $this->action( $kind, $row, $plugin, $reason );
					}
				}
			}
		}
		$failed  = array_filter( $actions, static fn ( array $row ): bool => 'failed' === $row['status'] );
		$reasons = array();
		foreach ( array_count_values( array_column( $actions, 'skipReason' ) ) as $code => $count ) {
			$reasons[] = array(
				'code'    => $code,
				'message' => self::sentence( (string) $code ),
				'actions' => $count,
			);
		}
		return result( 'wordpress-plugin-module-state-plan', array() === $failed ? 'ok' : 'error' ) + array(
			'mutationMode'     => $this->mode,
			'executeMutations' => $this->execute,
			'safeguards'       => array(
				'externalDispatch'  => $this->external,
				'connectedState'    => array( 'required' => $this->required['connectedState'], 'satisfied' => false ),
				'runtimeIsolation'  => array( 'required' => $this->required['runtimeIsolation'], 'satisfied' => true ),
				'disposableSandbox' => array( 'required' => $this->required['disposableSandbox'], 'satisfied' => true ),
			),
			'plannedActions'   => $actions,
			'skipReasons'      => $reasons,
			'totals'           => array( 'actions' => count( $actions ) ) + array_count_values( array_column( $actions, 'status' ) ),
			'diagnostics'      => array_map(
				static fn ( array $row ): array => array(
					'code'    => 'mutation-failed',
					'message' => "{$row['kind']} {$row['name']}: {$row['failure']}",
				),
				array_values( $failed )
			),
		);
	}

	/**
	 * Returns why no change may be made; null when changes are made.
	 */
	private function reason(): ?string {
		return match ( true ) {
			! $this->execute => 'execution-not-requested',
			in_array( $this->mode, self::PLANNING, true ) => 'planning-mode',
			// A sandbox holds no credentials of an outside service, so no plugin can be connected to one.
			$this->required['connectedState'] => 'connected-state-missing',
			default => null,
		};
	}

	/**
	 * Plans the change of one option or table, and makes it unless a reason forbids it.
	 *
	 * @param string              $kind   Kind: option or table.
	 * @param array<string,mixed> $row    Row of the inventory.
	 * @param string              $plugin Main file of the plugin.
	 * @param ?string             $reason Why no change may be made.
	 * @return array<string,mixed>
	 */
	private function action( string $kind, array $row, string $plugin, ?string $reason ): array {
		$planned = array(
			'kind'      => $kind,
			'name'      => $row['name'],
			'plugin'    => $plugin,
			'operation' => 'option' === $kind ? 'change-and-restore' : 'inspect',
		);
		$reason ??= 'table' === $kind ? 'table-not-changed' : ( $row['secret'] ? 'secret' : null );
		return $planned + ( null === $reason ? $this->change( (string) $row['name'] ) : array(
			'status'     => 'planned',
			'skipReason' => $reason,
		) );
	}

	/**
	 * Changes an option, reads it back and restores it.
	 *
	 * @param string $name Name of the option.
	 * @return array<string,mixed>
	 */
	private function change( string $name ): array {
		$stored  = $GLOBALS['wpdb']->get_var( $GLOBALS['wpdb']->prepare( "SELECT option_value FROM {$GLOBALS['wpdb']->options} WHERE option_name = %s", $name ) );
		$changed = self::other( (string) $stored );
		if ( null === $changed ) {
			return array(
				'status'     => 'planned',
				'skipReason' => 'object-value',
			);
		}
		$block = static fn ( $answer, array $request, string $url ) => in_array( parse_url( $url, PHP_URL_HOST ), array( 'localhost', '127.0.0.1' ), true ) ? $answer : new \WP_Error( 'external_dispatch', 'external_dispatch is false' );
		$this->external || add_filter( 'pre_http_request', $block, PHP_INT_MAX, 3 );
		$failure = null;
		$before  = get_option( $name );
		try {
			update_option( $name, $changed );
			wp_cache_delete( $name, 'options' );
			wp_cache_delete( 'alloptions', 'options' );
			$failure = get_option( $name ) == $changed ? null : 'the option did not return the changed value; a filter of the option may replace it';
		} catch ( \Throwable $thrown ) {
			$failure = get_class( $thrown ) . ': ' . cut( $thrown->getMessage(), 300 );
		}
		try {
			update_option( $name, $before );
		} catch ( \Throwable $thrown ) {
			$failure = 'restoring it threw ' . get_class( $thrown ) . ': ' . cut( $thrown->getMessage(), 300 );
		}
		remove_filter( 'pre_http_request', $block, PHP_INT_MAX );
		return array( 'status' => null === $failure ? 'executed' : 'failed' ) + ( null === $failure ? array() : array( 'failure' => $failure ) );
	}

	/**
	 * Returns another value of the same shape; null for a serialized object, because PHP would have to create the object.
	 *
	 * @param string $stored Stored value.
	 */
	private static function other( string $stored ): mixed {
		$value = stored_value( $stored );
		return match ( true ) {
			is_string( $value ) && is_numeric( $value ) => (string) ( (float) $value + 1 ),
			is_string( $value ) => $value . '-codebox',
			is_array( $value ) && 1 !== preg_match( '/[OC]:\d+:/', $stored ) => $value + array( 'codebox' => 'changed' ),
			default => null,
		};
	}

	/**
	 * Returns the sentence for a reason.
	 *
	 * @param string $code Code of the reason.
	 */
	private static function sentence( string $code ): string {
		return match ( $code ) {
			'execution-not-requested' => 'execute_mutations is not set',
			'planning-mode' => 'mutation_mode only plans',
			'connected-state-missing' => 'plugins in a sandbox are not connected to their services; set connected_state_required_for_mutation=false to change the option nevertheless',
			'table-not-changed' => 'this command does not change rows of tables; use wordpress.db-operation',
			'secret' => 'the option contains a secret',
			default => 'the option holds an object of a plugin class',
		};
	}
}
