<?php
/**
 * What the value of a setting must be.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\ErrorCode;
use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Native\Run;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Each method answers the value as it is to be stored, or throws the sentence an administrator
 * reads. Ranges of limits and the grammar of a command line are the extension's to judge; where
 * it is missing they are judged when a task runs.
 */
final class SettingChecks {

	/** Field of the page to stored field and factor. */
	public const UNITS = [
		'wall_clock_seconds' => [ 'wall_clock_ms', 1000 ],
		'processes'          => [ 'processes', 1 ],
		'memory_mib'         => [ 'memory_bytes', 1048576 ],
		'disk_mib'           => [ 'disk_bytes', 1048576 ],
		'output_mib'         => [ 'output_bytes', 1048576 ],
		'max_age_days'       => [ 'max_age_seconds', 86400 ],
		'max_mib'            => [ 'max_bytes', 1048576 ],
		'artifacts_max_days' => [ 'artifacts_max_age_seconds', 86400 ],
	];

	/**
	 * Wires the checks.
	 *
	 * @param Settings      $settings Settings in force.
	 * @param ExtensionGate $gate     Extension check.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly ExtensionGate $gate
	) {}

	/**
	 * Agents: name to command and success codes. The page posts rows with a `name`.
	 *
	 * @param mixed $value As given.
	 * @return array<string, array{command: string, success_codes: list<int>}>
	 */
	public function agents( mixed $value ): array {
		$agents = [];
		foreach ( $this->rows( $value ) as $key => $row ) {
			$row     = $this->rows( $row );
			$name    = $this->text( $row['name'] ?? ( is_string( $key ) ? $key : '' ) );
			$command = $this->text( $row['command'] ?? '' );
			if ( '' === $name && '' === $command ) {
				continue;
			}
			if ( 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/', $name ) ) {
				/* translators: %s: name as typed. */
				throw $this->refused( sprintf( __( '"%s" cannot be the name of an agent; use letters, digits, dot, dash and underscore.', 'wp-codebox' ), $name ) );
			}
			if ( isset( $agents[ $name ] ) ) {
				/* translators: %s: name of an agent. */
				throw $this->refused( sprintf( __( 'Two agents are called "%s".', 'wp-codebox' ), $name ) );
			}
			if ( '' === $command || null === $this->gate->failure() && [] === Run::splitCommand( $command ) ) {
				/* translators: %s: name of an agent. */
				throw $this->refused( sprintf( __( 'The agent "%s" has no command line.', 'wp-codebox' ), $name ) );
			}
			$agents[ $name ] = [
				'command'       => $command,
				'success_codes' => $this->codes( $name, $row['success_codes'] ?? '' ),
			];
		}
		return $agents;
	}

	/**
	 * Exit codes, as a list or as `0, 2`.
	 *
	 * @param string $name  Agent.
	 * @param mixed  $value As given.
	 * @return list<int>
	 */
	private function codes( string $name, mixed $value ): array {
		$parts = is_array( $value ) ? $value : preg_split( '/[\s,]+/', $this->text( $value ), -1, PREG_SPLIT_NO_EMPTY );
		$codes = array_values( array_unique( array_map( fn( mixed $part ): int => $this->whole( $part, 255 ) ?? -1, $parts ) ) );
		if ( in_array( -1, $codes, true ) ) {
			/* translators: %s: name of an agent. */
			throw $this->refused( sprintf( __( 'The success codes of the agent "%s" must be numbers from 0 to 255.', 'wp-codebox' ), $name ) );
		}
		return [] === $codes ? [ 0 ] : $codes;
	}

	/**
	 * One of the agents, or none.
	 *
	 * @param mixed $value As given.
	 */
	public function default_agent( mixed $value ): string {
		$name = $this->name( $value );
		if ( '' !== $name && ! isset( $this->settings->agents()[ $name ] ) ) {
			/* translators: %s: name as typed. */
			throw $this->refused( sprintf( __( 'There is no agent "%s" that could be the default.', 'wp-codebox' ), $name ) );
		}
		return $name;
	}

	/**
	 * A name of one line.
	 *
	 * @param mixed $value As given.
	 */
	public function name( mixed $value ): string {
		$name = $this->text( $value );
		if ( null !== $value && ! is_string( $value ) || strlen( $name ) > 200 || 1 !== preg_match( '/^[^\p{C}]*$/u', $name ) ) {
			throw $this->refused( __( 'A name must be one line of at most 200 bytes.', 'wp-codebox' ) );
		}
		return $name;
	}

	/**
	 * Components, as a list or as JSON.
	 *
	 * @param mixed $value As given.
	 * @return list<array<string, mixed>>
	 */
	public function components( mixed $value ): array {
		if ( is_string( $value ) && '' !== trim( $value ) ) {
			$value = json_decode( $value, true ) ?? false;
		}
		$rows = '' === $value ? [] : $this->rows( $value );
		foreach ( $rows as $row ) {
			if ( ! is_array( $row ) || 1 !== preg_match( '/^[a-z0-9][a-z0-9-]{0,99}$/', is_string( $row['slug'] ?? null ) ? $row['slug'] : '' ) ) {
				throw $this->refused( __( 'Component contracts must be a JSON list of objects that each have a slug.', 'wp-codebox' ) );
			}
		}
		return array_values( $rows );
	}

	/**
	 * Key ids, as a list or one a line.
	 *
	 * @param mixed $value As given.
	 * @return list<string>
	 */
	public function keys( mixed $value ): array {
		$keys = is_string( $value ) ? preg_split( '/[\s,]+/', $value, -1, PREG_SPLIT_NO_EMPTY ) : $this->rows( $value );
		foreach ( $keys as $key ) {
			if ( ! is_string( $key ) || 1 !== preg_match( '/^[A-Za-z0-9._:-]{1,128}$/', $key ) ) {
				throw $this->refused( __( 'A trusted key is given by its id, one a line; paste no key itself.', 'wp-codebox' ) );
			}
		}
		return array_values( array_unique( $keys ) );
	}

	/**
	 * Defaults and ceilings. A default above its ceiling could never be had.
	 *
	 * @param mixed $value As given.
	 * @return array{defaults: array<string, int>, ceilings: array<string, int>}
	 */
	public function limits( mixed $value ): array {
		$value  = $this->rows( $value );
		$limits = [
			'defaults' => $this->quantities( $value['defaults'] ?? null, Settings::LIMIT_FIELDS, $this->settings->default_limits() ),
			'ceilings' => $this->quantities( $value['ceilings'] ?? null, Settings::LIMIT_FIELDS, $this->settings->limit_ceilings() ),
		];
		foreach ( $limits['defaults'] as $field => $default ) {
			if ( $default > ( $limits['ceilings'][ $field ] ?? PHP_INT_MAX ) ) {
				/* translators: %s: name of a limit. */
				throw $this->refused( sprintf( __( 'The default of %s is above its ceiling.', 'wp-codebox' ), $field ) );
			}
		}
		if ( null === $this->gate->failure() ) {
			foreach ( array_filter( $limits ) as $asked ) {
				Run::validate(
					[
						'site'      => 'settings',
						'goal'      => 'settings',
						'wordpress' => untrailingslashit( ABSPATH ),
						'limits'    => $asked,
					]
				);
			}
		}
		return $limits;
	}

	/**
	 * Number of runs; 0 leaves it to the host.
	 *
	 * @param mixed $value As given.
	 */
	public function max_runs( mixed $value ): int {
		$host   = $this->settings->host_max_runs();
		$number = null === $value || '' === $value ? 0 : $this->whole( $value, $host ?? 256 );
		if ( null === $number ) {
			/* translators: %d: largest number. */
			throw $this->refused( sprintf( __( 'Runs at once must be a whole number from 0 to %d, which is what the host allows.', 'wp-codebox' ), $host ?? 256 ) );
		}
		return $number;
	}

	/**
	 * Ages and sizes.
	 *
	 * @param mixed $value As given.
	 * @return array<string, int>
	 */
	public function retention( mixed $value ): array {
		return $this->quantities( $value, Settings::RETENTION_FIELDS, $this->settings->retention() );
	}

	/**
	 * Quantities by their stored names or by those of the page; empty ones are left out. What the
	 * page shows rounded and posts back as it was stays as it is stored.
	 *
	 * @param mixed              $value   As given.
	 * @param list<string>       $fields  Stored names.
	 * @param array<string, int> $current As stored now.
	 * @return array<string, int>
	 */
	private function quantities( mixed $value, array $fields, array $current ): array {
		$numbers = [];
		foreach ( $this->rows( $value ) as $name => $given ) {
			[ $field, $factor ] = in_array( $name, $fields, true ) ? [ $name, 1 ] : ( self::UNITS[ $name ] ?? [ '', 1 ] );
			if ( ! in_array( $field, $fields, true ) ) {
				/* translators: %s: name as given. */
				throw $this->refused( sprintf( __( 'There is no setting "%s" here.', 'wp-codebox' ), sanitize_key( (string) $name ) ) );
			}
			if ( null === $given || '' === $given || 0 === $given || '0' === $given ) {
				continue;
			}
			$number = $this->whole( $given, intdiv( PHP_INT_MAX, $factor ) );
			if ( null === $number ) {
				/* translators: %s: name of a setting. */
				throw $this->refused( sprintf( __( '%s must be a whole number; leave it empty for none.', 'wp-codebox' ), $name ) );
			}
			$old               = $current[ $field ] ?? 0;
			$numbers[ $field ] = 0 !== $old && self::shown( $old, $factor ) === $number ? $old : $number * $factor;
		}
		return $numbers;
	}

	/**
	 * A stored value in the unit of its field on the page.
	 *
	 * @param int $value  As stored.
	 * @param int $factor Unit of the field.
	 */
	public static function shown( int $value, int $factor ): int {
		return max( 1, intdiv( $value, $factor ) );
	}

	/**
	 * A whole number from 0, given as number or digits; null when it is none.
	 *
	 * @param mixed $value As given.
	 * @param int   $max   Largest accepted.
	 */
	private function whole( mixed $value, int $max ): ?int {
		$text   = is_int( $value ) || is_string( $value ) ? trim( (string) $value ) : '';
		$number = 1 === preg_match( '/^[0-9]{1,18}$/', $text ) ? (int) $text : -1;
		return $number >= 0 && $number <= $max ? $number : null;
	}

	/**
	 * Text without spaces around it; anything else is empty.
	 *
	 * @param mixed $value As given.
	 */
	private function text( mixed $value ): string {
		return is_scalar( $value ) ? trim( (string) $value ) : '';
	}

	/**
	 * A list or map.
	 *
	 * @param mixed $value As given.
	 * @return array<mixed>
	 */
	private function rows( mixed $value ): array {
		if ( null !== $value && ! is_array( $value ) ) {
			throw $this->refused( __( 'This setting must be a list.', 'wp-codebox' ) );
		}
		return $value ?? [];
	}

	/**
	 * A refusal.
	 *
	 * @param string $sentence What is wrong.
	 */
	private function refused( string $sentence ): Failure {
		return Failure::because( ErrorCode::InputInvalid, $sentence );
	}
}
