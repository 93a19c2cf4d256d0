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
use WPCodebox\Native\Changes;
use WPCodebox\Native\Extension;
use WPCodebox\Native\Runs;
use WPCodebox\Model\ProviderOverview;
use WPCodebox\Run\AgentChoice;
use WPCodebox\Settings;
use WPCodebox\ShareSettings;

defined( 'ABSPATH' ) || exit;

/**
 * Adds one section to Site Health's debug information: versions, configuration, counts. Paths and names
 * configured by the site are marked private, so the copy button leaves them out. The section contains no
 * command line, key or secret.
 */
final class DebugInfo {

	/**
	 * Creates the section with its dependencies.
	 *
	 * @param ExtensionGate $gate     Check that the PHP extension is loaded and its version fits.
	 * @param Site          $site     Site the plugin runs on.
	 * @param Settings      $settings Settings of the host (plugin settings page and constants).
	 */
	public function __construct(
		private readonly ExtensionGate $gate,
		private readonly Site $site,
		private readonly Settings $settings
	) {}

	/** Registers the filter of Site Health's debug information. */
	public function register(): void {
		add_filter( 'debug_information', [ $this, 'add' ] );
	}

	/**
	 * Adds the section about Codebox to the debug information.
	 *
	 * @param mixed $info Sections collected so far.
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
	 * Returns the fields of the site's settings.
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
			'direct_apply'   => $this->field( __( 'Direct apply', 'codebox' ), $this->settings->direct_apply() ? __( 'On', 'codebox' ) : __( 'Off', 'codebox' ) ),
			'max_runs'       => $this->field( __( 'Runs at once', 'codebox' ), (string) ( $this->settings->max_runs() ?? __( 'Not set', 'codebox' ) ) ),
			'user_max_runs'  => $this->field(
				__( 'Runs at once for one user', 'codebox' ),
				(string) ( ShareSettings::user_max_runs() ?? __( 'Half of all', 'codebox' ) )
			),
			'spend'          => $this->field( __( 'Caps of model cost in a month', 'codebox' ), $amounts( ShareSettings::spend_caps() ) ),
		];
	}

	/**
	 * Returns the last measured isolation level and the numbers of bundles and runs. Unreadable numbers are omitted; the tests
	 * of Site Health report why.
	 *
	 * @return array<string, array<string, mixed>>
	 */
	private function host(): array {
		$last   = IsolationHealth::last();
		$fields = [ 'level' => $this->field( __( 'Isolation level seen last', 'codebox' ), $last['level'] ?? __( 'Not tested yet', 'codebox' ) ) ];
		try {
			$fields['bundles'] = $this->field( __( 'Bundles of this site', 'codebox' ), (string) count( Artifacts::list( $this->site->id() ) ) );
			$fields['runs']    = $this->field( __( 'Runs of this site on record', 'codebox' ), (string) Runs::list( $this->site->id(), [ 'limit' => 1 ] )['total'] );
			$changes           = Changes::list( $this->site->id() );
			$fields['changes'] = $this->field(
				__( 'Applied changes that can be taken back', 'codebox' ),
				/* translators: 1: number of changes, 2: size, as 3 MB. */
				sprintf( __( '%1$d, with old files of %2$s', 'codebox' ), count( $changes ), (string) size_format( (int) array_sum( array_column( $changes, 'bytes' ) ) ) )
			);
		} catch ( Throwable ) {
			return $fields;
		}
		return $fields;
	}

	/**
	 * Returns the effective configuration of the extension.
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
	 * Builds one field of the debug information.
	 *
	 * @param string $label   Label of the field.
	 * @param string $value   Value of the field.
	 * @param bool   $private Whether the copy button omits the field.
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
