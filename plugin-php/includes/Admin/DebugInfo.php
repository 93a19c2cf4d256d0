<?php
/**
 * Debug information.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use Throwable;
use WPCodebox\ExtensionGate;
use WPCodebox\Host\Site;
use WPCodebox\Native\Artifacts;
use WPCodebox\Native\Extension;
use WPCodebox\Native\Runs;
use WPCodebox\Model\ProviderOverview;
use WPCodebox\Run\AgentChoice;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * One section of Site Health's debug information: versions, configuration, counts. Paths and
 * names a site gave are private, so they stay out of what is copied to a support forum. There
 * is no command line, no key and no secret in it.
 */
final class DebugInfo {

	/**
	 * Wires the section.
	 *
	 * @param ExtensionGate $gate     Extension check.
	 * @param Site          $site     This site.
	 * @param Settings      $settings Host settings.
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly Site $site,
		private readonly Settings $settings
	) {}

	/** Registers the hook. */
	public function register(): void {
		add_filter( 'debug_information', [ $this, 'add' ] );
	}

	/**
	 * Adds the section.
	 *
	 * @param mixed $info Sections so far.
	 * @return mixed
	 */
	public function add( mixed $info ): mixed {
		if ( ! is_array( $info ) ) {
			return $info;
		}
		$failure = $this->gate->failure();
		$fields  = [
			'plugin'    => $this->field( __( 'Plugin version', 'codebox' ), \WPCodebox\VERSION ),
			'extension' => $this->field( __( 'Extension', 'codebox' ), null === $failure ? Extension::version() : $failure->getMessage() ),
			'abilities' => $this->field( __( 'Abilities API', 'codebox' ), function_exists( 'wp_register_ability' ) ? __( 'Available', 'codebox' ) : __( 'Missing', 'codebox' ) ),
		] + $this->settings();
		if ( null === $failure ) {
			$fields += $this->host() + $this->configuration();
		}
		$info['wp-codebox'] = [
			'label'  => 'Codebox',
			'fields' => $fields,
		];
		return $info;
	}

	/**
	 * What the site set.
	 *
	 * @return array<string, array<string, mixed>>
	 */
	private function settings(): array {
		$amounts = static fn( array $numbers ): string => [] === $numbers ? __( 'Not set', 'codebox' ) : implode( ', ', array_map( static fn( string $name, int $value ): string => "$name $value", array_keys( $numbers ), $numbers ) );
		$overview = ProviderOverview::of( $this->settings );
		$keys     = array_map( static fn( string $id, array $row ): string => trim( $id . ' ' . $row['status'] . ' ' . $row['source'] ), array_keys( $overview->rows() ), $overview->rows() );
		return [
			'agent_presets'  => $this->field( __( 'Agents by preset', 'codebox' ), implode( ', ', AgentChoice::presets() ) ),
			'providers'      => $this->field( __( 'Model providers and their keys', 'codebox' ), implode( ', ', $keys ), true ),
			'model'          => $this->field( __( 'Default model', 'codebox' ), $overview->configured(), true ),
			'agents'         => $this->field( __( 'Agents', 'codebox' ), (string) count( $this->settings->agents() ) ),
			'default_agent'  => $this->field( __( 'Default agent', 'codebox' ), $this->settings->default_agent(), true ),
			'trusted_keys'   => $this->field( __( 'Trusted keys', 'codebox' ), (string) count( $this->settings->trusted_keys() ) ),
			'limit_defaults' => $this->field( __( 'Default limits', 'codebox' ), $amounts( $this->settings->default_limits() ) ),
			'limit_ceilings' => $this->field( __( 'Ceilings of limits', 'codebox' ), $amounts( $this->settings->limit_ceilings() ) ),
			'retention'      => $this->field( __( 'Retention', 'codebox' ), $amounts( $this->settings->retention() ) ),
			'max_runs'       => $this->field( __( 'Runs at once', 'codebox' ), (string) ( $this->settings->max_runs() ?? __( 'Not set', 'codebox' ) ) ),
		];
	}

	/**
	 * Level and counts. What cannot be counted is left out; the tests of Site Health say why.
	 *
	 * @return array<string, array<string, mixed>>
	 */
	private function host(): array {
		$last   = IsolationHealth::last();
		$fields = [ 'level' => $this->field( __( 'Isolation level seen last', 'codebox' ), $last['level'] ?? __( 'Not tested yet', 'codebox' ) ) ];
		try {
			$fields['bundles'] = $this->field( __( 'Bundles of this site', 'codebox' ), (string) count( Artifacts::list( $this->site->id() ) ) );
			$fields['runs']    = $this->field( __( 'Runs of this site on record', 'codebox' ), (string) Runs::list( $this->site->id(), [ 'limit' => 1 ] )['total'] );
		} catch ( Throwable ) {
			return $fields;
		}
		return $fields;
	}

	/**
	 * Effective configuration of the extension.
	 *
	 * @return array<string, array<string, mixed>>
	 */
	private function configuration(): array {
		$fields = [];
		foreach ( array_diff_key( Extension::info(), [ 'agents' => true ] ) as $name => $value ) {
			$text = is_array( $value ) ? implode( ', ', array_filter( $value, 'is_scalar' ) ) : ( is_scalar( $value ) ? (string) $value : '' );
			$fields[ 'extension_' . $name ] = $this->field( $name, $text, str_contains( $text, '/' ) );
		}
		return $fields;
	}

	/**
	 * One field.
	 *
	 * @param string $label   Label.
	 * @param string $value   Value.
	 * @param bool   $private Whether it stays out of what is copied.
	 * @return array<string, mixed>
	 */
	private function field( string $label, string $value, bool $private = false ): array {
		return [
			'label'   => $label,
			'value'   => $value,
			'private' => $private,
		];
	}
}
