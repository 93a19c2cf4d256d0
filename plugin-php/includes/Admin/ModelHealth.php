<?php
/**
 * Site Health test of the default model.
 *
 * @package WPCodebox
 */

declare(strict_types=1);

namespace WPCodebox\Admin;

use WPCodebox\Model\ProviderOverview;
use WPCodebox\Settings;

defined( 'ABSPATH' ) || exit;

/**
 * Registers one direct test when a default model is set: it checks that a key exists. The test sends no
 * request.
 */
final class ModelHealth {

	/**
	 * Creates the test with its dependencies.
	 *
	 * @param Settings $settings Settings of the host (plugin settings page and constants).
	 */
	public function __construct( private readonly Settings $settings ) {}

	/** Registers the filter of Site Health tests. */
	public function register(): void {
		add_filter( 'site_status_tests', [ $this, 'tests' ] );
	}

	/**
	 * Adds the test of the default model to those of Site Health.
	 *
	 * @param mixed $tests Tests collected so far.
	 * @return mixed
	 */
	public function tests( mixed $tests ): mixed {
		if ( is_array( $tests ) && '' !== $this->settings->default_provider() && '' !== ProviderOverview::of( $this->settings )->configured() ) {
			$tests['direct']['wp_codebox_model'] = [
				'label' => __( 'Codebox model', 'codebox' ),
				'test'  => [ $this, 'model_test' ],
			];
		}
		return $tests;
	}

	/**
	 * Checks whether the default model has its credential.
	 *
	 * @return array<string, mixed>
	 */
	public function model_test(): array {
		$id   = $this->settings->default_provider();
		$row  = ProviderOverview::of( $this->settings )->rows()[ $id ] ?? null;
		$good = null !== $row && in_array( $row['status'], [ 'available', 'not-required' ], true );
		/* translators: 1: id of a model provider, 2: status. */
		$found = null === $row ? sprintf( __( 'There is no model provider "%s" with a base URL on this site.', 'codebox' ), $id ) : sprintf( __( 'Credentials of the model provider %1$s: %2$s.', 'codebox' ), $id, $row['status'] );
		return HealthResult::of(
			'wp_codebox_model',
			$good ? 'good' : 'recommended',
			$good ? __( 'The built-in agent of Codebox has a usable model', 'codebox' ) : __( 'The default model of Codebox cannot be used', 'codebox' ),
			[ $found ],
			$good ? [] : [ __( 'Connect the provider (Settings, Connectors), set its key for this PHP as an environment variable or constant, or choose another default in the settings of Codebox.', 'codebox' ), __( 'If the credentials are denied, turn on AI for this site, or have the operator allow the key for the host of the provider (wp_codebox.provider_keys in php.ini, or WP_CODEBOX_PROVIDER_KEYS in wp-config.php).', 'codebox' ) ]
		);
	}
}
