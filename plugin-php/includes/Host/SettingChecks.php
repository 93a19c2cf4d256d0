<?php
/**
 * Validates the values of settings.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Host;

use WPCodebox\ExtensionGate;
use WPCodebox\Failure;
use WPCodebox\Model\ProviderRows;
use WPCodebox\Model\Providers;
use WPCodebox\Native\Run;
use WPCodebox\Run\AgentChoice;
use WPCodebox\Settings;
use WPCodebox\ShareSettings;

defined( 'ABSPATH' ) || exit;

/**
 * Each method returns the value to store, or throws the error message for the administrator. The extension
 * checks ranges of limits and the command-line grammar; without the extension these checks happen when a task
 * runs.
 */
final class SettingChecks {

	/**
	 * Creates the object with its dependencies.
	 *
	 * @param Settings      $settings Effective settings.
	 * @param ExtensionGate $gate     Check that the PHP extension is loaded and its version fits.
	 */
	public function __construct(
		private readonly Settings $settings,
		private readonly ExtensionGate $gate
	) {}

	/**
	 * Validates agents: command and success codes by name. The settings page posts rows with a `name`.
	 *
	 * @param mixed $value Value as the caller gave it.
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
			if ( 1 !== preg_match( '/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/D', $name ) ) {
				/* translators: %s: name as typed. */
				throw Failure::invalid_input( sprintf( __( '"%s" cannot be the name of an agent; use at most 64 letters, digits, dots, dashes and underscores, and begin with a letter or digit.', 'codebox' ), $name ) );
			}
			if ( isset( $agents[ $name ] ) ) {
				/* translators: %s: name of an agent. */
				throw Failure::invalid_input( sprintf( __( 'Two agents are called "%s".', 'codebox' ), $name ) );
			}
			if ( '' === $command || null === $this->gate->failure() && [] === Run::splitCommand( $command ) ) {
				/* translators: %s: name of an agent. */
				throw Failure::invalid_input( sprintf( __( 'The agent "%s" has no command line.', 'codebox' ), $name ) );
			}
			$agents[ $name ] = [
				'command'       => $command,
				'success_codes' => $this->codes( $name, $row['success_codes'] ?? '' ),
			];
		}
		return $agents;
	}

	/**
	 * Validates exit codes, given as a list or as `0, 2`.
	 *
	 * @param string $name  Name of the agent.
	 * @param mixed  $value Value as the caller gave it.
	 * @return list<int>
	 */
	private function codes( string $name, mixed $value ): array {
		$parts = is_array( $value ) ? $value : preg_split( '/[\s,]+/', $this->text( $value ), -1, PREG_SPLIT_NO_EMPTY );
		$codes = array_values( array_unique( array_map( static fn( mixed $part ): int => SettingUnits::whole( $part, 255 ) ?? -1, $parts ) ) );
		if ( in_array( -1, $codes, true ) ) {
			/* translators: %s: name of an agent. */
			throw Failure::invalid_input( sprintf( __( 'The success codes of the agent "%s" must be numbers from 0 to 255.', 'codebox' ), $name ) );
		}
		return [] === $codes ? [ 0 ] : $codes;
	}

	/**
	 * Validates the default agent: one of the agents, or none.
	 *
	 * @param mixed $value Value as the caller gave it.
	 */
	public function default_agent( mixed $value ): string {
		$name = $this->name( $value );
		if ( '' !== $name && ! in_array( $name, AgentChoice::names( $this->settings ), true ) ) {
			/* translators: %s: name as typed. */
			throw Failure::invalid_input( sprintf( __( 'There is no agent "%s" that could be the default.', 'codebox' ), $name ) );
		}
		return $name;
	}

	/**
	 * Validates model providers, given as a map or as JSON.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @return array<string, array<string, mixed>>
	 */
	public function providers( mixed $value ): array {
		if ( is_string( $value ) ) {
			$value = '' === trim( $value ) ? [] : json_decode( $value, true );
			if ( ! is_array( $value ) || [] !== $value && array_is_list( $value ) ) {
				throw Failure::invalid_input( __( 'The setting for model providers must be a JSON object that has an object for the id of each provider.', 'codebox' ) );
			}
		}
		return array_map( static fn( array $row ): array => array_diff_key( $row, [ 'id' => true ] ), ProviderRows::permitted( $this->rows( $value ) ) );
	}

	/**
	 * Validates the default provider: one of the providers with a base URL, or none.
	 *
	 * @param mixed $value Value as the caller gave it.
	 */
	public function default_provider( mixed $value ): string {
		$id = $this->name( $value );
		if ( '' !== $id && '' === ( ( new Providers( $this->settings ) )->all()[ $id ]->base_url ?? '' ) ) {
			/* translators: %s: id as typed. */
			throw Failure::invalid_input( sprintf( __( 'There is no model provider "%s" with a base URL that could be the default.', 'codebox' ), $id ) );
		}
		return $id;
	}

	/**
	 * Validates the instructions of the built-in agent: plain text of several lines.
	 *
	 * @param mixed $value Value as the caller gave it.
	 */
	public function instructions( mixed $value ): string {
		$text = str_replace( "\r\n", "\n", $this->text( $value ) );
		if ( null !== $value && ! is_string( $value ) || strlen( $text ) > 65536 || 1 !== preg_match( '/^[^\p{C}\n\t]*(?:[\n\t][^\p{C}\n\t]*)*$/uD', $text ) ) {
			throw Failure::invalid_input( __( 'Instructions must be plain text of at most 64 KiB.', 'codebox' ) );
		}
		return $text;
	}

	/**
	 * Validates a name, e.g. of a model: one line of text.
	 *
	 * @param mixed $value Value as the caller gave it.
	 */
	public function name( mixed $value ): string {
		$name = $this->text( $value );
		if ( null !== $value && ! is_string( $value ) || strlen( $name ) > 200 || 1 !== preg_match( '/^[^\p{C}]*$/uD', $name ) ) {
			throw Failure::invalid_input( __( 'A name must be one line of at most 200 bytes.', 'codebox' ) );
		}
		return $name;
	}

	/**
	 * Validates component contracts (plugins that every sandbox loads), given as a list or as JSON.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @return list<array<string, mixed>>
	 */
	public function components( mixed $value ): array {
		if ( is_string( $value ) && '' !== trim( $value ) ) {
			$value = json_decode( $value, true ) ?? false;
		}
		$rows = '' === $value ? [] : $this->rows( $value );
		foreach ( $rows as $row ) {
			if ( ! is_array( $row ) || 1 !== preg_match( '/^[a-z0-9][a-z0-9-]{0,99}$/D', is_string( $row['slug'] ?? null ) ? $row['slug'] : '' ) ) {
				throw Failure::invalid_input( __( 'The plugins that every sandbox loads (component contracts) must be a JSON list of objects, each with a "slug" of small letters, digits and dashes.', 'codebox' ) );
			}
		}
		return array_values( $rows );
	}

	/**
	 * Validates the ids of trusted signing keys, given as a list or one per line.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @return list<string>
	 */
	public function keys( mixed $value ): array {
		$keys = is_string( $value ) ? preg_split( '/[\s,]+/', $value, -1, PREG_SPLIT_NO_EMPTY ) : $this->rows( $value );
		$ids  = [];
		foreach ( array_values( $keys ) as $index => $key ) {
			$ids[] = is_string( $key ) ? strtolower( trim( $key ) ) : '';
			if ( 1 !== preg_match( Settings::KEY_ID, $ids[ $index ] ) ) {
				// The message does not repeat the value, because it may be a key that was pasted by mistake.
				/* translators: %d: position in the list, from 1. */
				throw Failure::invalid_input( sprintf( __( 'Trusted key %d is not the id of a signing key. An id has 64 hex digits; do not paste the key itself.', 'codebox' ), $index + 1 ) );
			}
		}
		return array_values( array_unique( $ids ) );
	}

	/**
	 * Validates defaults and ceilings of limits. A default above its ceiling is refused, because no task
	 * could get it.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @return array{defaults: array<string, int>, ceilings: array<string, int>}
	 */
	public function limits( mixed $value ): array {
		$value  = $this->rows( $value );
		$limits = [
			'defaults' => SettingUnits::stored( $value['defaults'] ?? null, Settings::LIMIT_FIELDS, $this->settings->default_limits() ),
			'ceilings' => SettingUnits::stored( $value['ceilings'] ?? null, Settings::LIMIT_FIELDS, $this->settings->limit_ceilings() ),
		];
		$ceilings = ShareSettings::ceilings( $limits['ceilings'] );
		$above    = array_key_first( array_diff_assoc( $limits['ceilings'], $ceilings ) );
		if ( null !== $above ) {
			/* translators: 1: name of a limit, 2: number. */
			$text = __( 'The ceiling of %1$s is above %2$d, the most that the operator allows (wp_codebox.max_limits in php.ini).', 'codebox' );
			throw Failure::invalid_input( sprintf( $text, $above, $ceilings[ $above ] ) );
		}
		foreach ( $limits['defaults'] as $field => $default ) {
			if ( $default > ( $ceilings[ $field ] ?? PHP_INT_MAX ) ) {
				/* translators: %s: name of a limit. */
				throw Failure::invalid_input( sprintf( __( 'The default of %s is above its ceiling.', 'codebox' ), $field ) );
			}
		}
		if ( null === $this->gate->failure() ) {
			foreach ( array_filter( $limits ) as $asked ) {
				Run::validate(
					[ 'goal' => 'settings' ],
					[
						'site'      => 'settings',
						'wordpress' => untrailingslashit( ABSPATH ),
						'limits'    => $asked,
						'share'     => [ 'ceilings' => $limits['ceilings'] ],
					]
				);
			}
		}
		return $limits;
	}

	/**
	 * Validates the number of parallel runs of the site or of one user; 0 uses the default.
	 *
	 * @param mixed $value Value as the caller gave it.
	 */
	public function max_runs( mixed $value ): int {
		$host   = $this->settings->host_max_runs();
		$number = null === $value || '' === $value ? 0 : SettingUnits::whole( $value, $host ?? 256 );
		if ( null === $number ) {
			/* translators: %d: largest number. */
			throw Failure::invalid_input( sprintf( __( 'The maximum number of parallel runs must be a whole number from 0 to %d, the most that the host allows.', 'codebox' ), $host ?? 256 ) );
		}
		return $number;
	}

	/**
	 * Validates the caps of model cost in a calendar month.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @return array<string, int>
	 */
	public function spend( mixed $value ): array {
		return SettingUnits::stored( $value, ShareSettings::SPEND_FIELDS, ShareSettings::spend_caps() );
	}

	/**
	 * Validates the retention limits: age and size above which garbage collection removes data.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @return array<string, int>
	 */
	public function retention( mixed $value ): array {
		return SettingUnits::stored( $value, Settings::RETENTION_FIELDS, $this->settings->retention() );
	}

	/**
	 * Returns a string without surrounding spaces; '' for any other type.
	 *
	 * @param mixed $value Value as the caller gave it.
	 */
	private function text( mixed $value ): string {
		return is_scalar( $value ) ? trim( (string) $value ) : '';
	}

	/**
	 * Returns an array unchanged and null as an empty array; fails for any other type.
	 *
	 * @param mixed $value Value as the caller gave it.
	 * @return array<mixed>
	 */
	private function rows( mixed $value ): array {
		if ( null !== $value && ! is_array( $value ) ) {
			throw Failure::invalid_input( __( 'This setting must be an array; in JSON, an array or an object.', 'codebox' ) );
		}
		return $value ?? [];
	}
}
